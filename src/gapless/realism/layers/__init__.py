"""The layers, a file per kind; `gapless.realism.registry` lists them all."""
