"""What signals say: predictions of short windows under every set of dimensions."""
