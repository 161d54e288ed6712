"""Predictions of logs: episodes at the control rate, cut into windows, run under rows of parameters."""
