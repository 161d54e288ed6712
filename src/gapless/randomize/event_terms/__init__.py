"""Event terms of Isaac Lab and mjlab: a table per stack, by which terms are written and read."""
