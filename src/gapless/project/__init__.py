"""A project folder: its `gapless.yaml`, its model, its logs and its owner's code."""
