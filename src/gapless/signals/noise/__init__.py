"""The noise of sensors at rest: what `identify --sensor` fits. No model, no simulation."""
