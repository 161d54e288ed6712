"""The catalogue of a project: every episode and artefact, where it came from, and questions about them."""
