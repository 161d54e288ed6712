"""Over time: what changed between two fits of one robot."""
