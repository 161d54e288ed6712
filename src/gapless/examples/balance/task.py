"""Balance a pole on a cart that a motor drives."""

import numpy as np

from gapless.core.protocols import Judgement, Moment, Start

TIPPED_RAD = 0.5
RAIL_M = 0.9


class Balance:
    """Keep the pole up and the cart on its rail for five seconds; end upright and near the middle."""

    duration_s = 5.0
    observation_size = 3
    action_size = 1
    phases = ("catch", "hold", "return")

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        """Draws where the cart is and how far the pole leans."""
        cart = rng.uniform(-0.3, 0.3, (num_worlds, 1))
        pole = rng.uniform(-0.15, 0.15, (num_worlds, 1))
        return Start({"cart": cart, "pole": pole}, np.zeros((num_worlds, 0)))

    def first_command(self, start: Start) -> np.ndarray:
        """Returns the command at the start: none."""
        return np.zeros((len(start.goal), 1))

    def observe(self, moment: Moment) -> np.ndarray:
        """Returns cart, pole and last command, in units of about their spread."""
        cart, pole = moment.measured["cart"], moment.measured["pole"]
        return np.stack([cart / 0.4, pole / 0.15, moment.command[:, 0]], axis=1)

    def command(self, action: np.ndarray, moment: Moment) -> np.ndarray:
        """Sends the action to the motor as it is."""
        del moment
        return action

    def judge(self, moment: Moment, action: np.ndarray) -> Judgement:
        """Rewards an upright pole over the middle of the rail, with little effort."""
        cart, pole = moment.measured["cart"], moment.measured["pole"]
        failed = (np.abs(pole) > TIPPED_RAD) | (np.abs(cart) > RAIL_M)
        success = (np.abs(pole) < 0.15) & (np.abs(cart) < 0.4)
        reward = 1.0 - 4.0 * pole**2 - 1.0 * cart**2 - 0.02 * (action**2).sum(axis=1) - 20.0 * failed
        phase = np.where(moment.time_s < 1.5, 0, np.where(failed, 1, 2))
        return Judgement(reward, success, failed, phase)
