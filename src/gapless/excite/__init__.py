"""Which motion to record so that the parameters can be told."""
