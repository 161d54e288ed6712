"""What may be wrong in a model, mechanism by mechanism, and which set of them explains some logs."""
