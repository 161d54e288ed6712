"""The command line: words in, results out. No logic."""
