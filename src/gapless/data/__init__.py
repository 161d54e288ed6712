"""The catalogue of a project: every episode and artefact, where it came from, and SQL over them.

What cannot be stored, read or found raises `CatalogueError`, with a message of one line that says what to do.
"""
