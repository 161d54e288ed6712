"""Reading the event configurations of Isaac Lab and mjlab, as people write them, as training ranges."""
