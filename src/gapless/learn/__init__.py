"""Policies: learned in the batched simulation, run anywhere."""
