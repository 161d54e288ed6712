"""The bundled example projects: `balance` and `push`."""
