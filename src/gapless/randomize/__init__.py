"""Which ranges to train on."""
