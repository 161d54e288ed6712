"""Which motion to record so that the wanted parameters are identifiable."""
