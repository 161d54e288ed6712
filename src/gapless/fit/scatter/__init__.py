"""Knobs of chance: told from how far runs scatter, not from where they go."""
