"""The layers that are on in a simulation: their knobs, their states, and when each acts."""
