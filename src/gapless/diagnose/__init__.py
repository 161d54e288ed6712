"""Which dimension causes the gap."""
