"""Logs at the control rate: values, slopes and noise of every column, with stated errors."""
