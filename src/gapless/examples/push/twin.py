"""The twin of the push example: a stand-in for a real robot, with effects that the model lacks."""

from pathlib import Path

import numpy as np

from gapless.sim.twin import Imperfections, Twin


def make(seed: int = 0, num_worlds: int = 1) -> Twin:
    """Returns the twin of one seed. Its numbers stay inside: it shows measurements and outcomes only."""
    rng = np.random.default_rng([2026, seed])
    friction = 0.4 * rng.uniform(0.45, 0.8)
    imperfections = Imperfections(
        parameters={
            "actuator/*/delay": rng.uniform(0.02, 0.06),
            "actuator/servo_x/kp": 120 * rng.uniform(0.5, 0.8),
            "actuator/servo_y/kp": 120 * rng.uniform(0.5, 0.8),
            "joint/tip_x/frictionloss": rng.uniform(0.1, 0.6),
            "joint/tip_y/frictionloss": rng.uniform(0.1, 0.6),
            "joint/tip_x/backlash": rng.uniform(0.0, 0.003),
            "joint/tip_y/backlash": rng.uniform(0.0, 0.003),
            "geom/puck/friction": friction,
            "body/puck/mass": 0.25 * rng.uniform(0.7, 1.5),
            "measurement/puck_x/bias": rng.uniform(-0.01, 0.01),
            "measurement/puck_y/bias": rng.uniform(-0.01, 0.01),
            "world/tilt/x": rng.uniform(-0.01, 0.01),
            "world/tilt/y": rng.uniform(-0.01, 0.01),
        },
        stribeck={"tip_x": (rng.uniform(0.1, 0.4), 0.02), "tip_y": (rng.uniform(0.1, 0.4), 0.02)},
        jitter_s=rng.uniform(0.002, 0.01),
        uneven_friction={"puck": (rng.uniform(0.05, 0.2), 0.15)},
        noise={"tip_x": 0.0003, "tip_y": 0.0003, "puck_x": 0.001, "puck_y": 0.001},
        drift={"puck_x": 0.0005, "puck_y": 0.0005},
        timestep_s=0.001,
    )
    return Twin(Path(__file__).parent, imperfections, num_worlds, seed)
