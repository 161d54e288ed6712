"""Evidence by counterfactual: which dimension, switched on in simulation, makes it fail as reality does."""
