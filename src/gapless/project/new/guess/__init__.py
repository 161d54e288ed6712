"""Guessing what the columns of a log mean: from their names, their values, and what they do together."""
