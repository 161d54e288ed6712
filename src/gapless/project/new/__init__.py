"""Making a project from a model and one log: guesses, each of them said."""
