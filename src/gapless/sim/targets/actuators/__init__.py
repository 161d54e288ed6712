"""What can be wrong in actuators, and what kind of drive they are."""
