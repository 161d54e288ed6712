"""What outcomes alone say about the gap: which conditions and phases concentrate failures."""
