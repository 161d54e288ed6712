"""How sure: samples of the fitted parameters, by the normal approximation and by neural estimation."""
