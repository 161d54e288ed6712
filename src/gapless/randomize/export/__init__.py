"""Training ranges written for other training stacks; `formats` has them all."""
