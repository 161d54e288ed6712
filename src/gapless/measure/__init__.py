"""How far simulation is from reality, and whether a project is sound."""
