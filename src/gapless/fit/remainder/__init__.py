"""What remains after a fit: at which joint or body, and a function of what."""
