"""All of it, again and again, until the target is met."""
