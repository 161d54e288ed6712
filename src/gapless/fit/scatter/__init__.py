"""Parameters of noise, jitter, losses and pushes: estimated from how far runs scatter, not from where they go."""
