"""The layers, a file per kind; `gapless.sim.realism.registry` lists them all."""
