"""The noise of sensors at rest: what `noise` fits. No model, no simulation."""
