"""Logs: reading, writing and looking them over."""
