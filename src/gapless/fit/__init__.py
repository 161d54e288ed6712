"""The least-squares problem on the batch, and its solver."""
