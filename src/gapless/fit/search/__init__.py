"""From logs to the structure of a fit: which parameters are fitted, which terms enter, near which row."""
