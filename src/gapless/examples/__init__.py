"""The bundled example projects: `balance`, `handover` and `push`."""
