"""The twin of the balance example: a stand-in for a real cart-pole, with effects that the model lacks."""

from pathlib import Path

import numpy as np

from gapless.sim.twin import Imperfections, Twin


def make(seed: int = 0, num_worlds: int = 1) -> Twin:
    """Returns the twin of one seed. Its numbers stay inside: it shows measurements and outcomes only."""
    rng = np.random.default_rng([1986, seed])
    imperfections = Imperfections(
        parameters={
            "actuator/*/delay": rng.uniform(0.05, 0.08),
            "actuator/motor/gain": rng.uniform(0.35, 0.55),
            "joint/cart/frictionloss": rng.uniform(0.2, 0.6),
            "joint/cart/damping": rng.uniform(0.5, 1.5),
            "joint/pole/damping": rng.uniform(0.001, 0.004),
            "body/pole/mass": 0.15 * rng.uniform(0.8, 1.4),
            "measurement/pole/bias": rng.uniform(-0.02, 0.02),
        },
        stribeck={"cart": (rng.uniform(0.02, 0.1), 0.03)},
        jitter_s=rng.uniform(0.001, 0.005),
        noise={"cart": 0.0005, "pole": 0.001},
        drift={"pole": 0.001},
        quantum={"cart": 0.0002, "pole": 0.0015},
        timestep_s=0.001,
    )
    return Twin(Path(__file__).parent, imperfections, num_worlds, seed)
