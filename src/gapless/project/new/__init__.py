"""Makes a project from a model and logs; each guess becomes a note."""
