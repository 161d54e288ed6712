"""Which parameter values make the model match the logs."""
