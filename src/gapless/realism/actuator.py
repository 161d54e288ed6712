"""Friction and play in drives."""

import numpy as np

from gapless.core.signal import Array


def backlash(position: Array, command: Array, width: Array) -> Array:
    """Returns the position behind a gear with play after the gear moves to `command`.

    Play operator: the output stays unless the input pushes it, y' = clip(y, u - w/2, u + w/2).

    Args:
        position: (num_worlds, num_commands) output before [rad, m].
        command: (num_worlds, num_commands) input [rad, m].
        width: (num_worlds, num_commands) play [rad, m]; 0 is ideal: the output is the input.
    """
    return np.clip(position, command - width / 2, command + width / 2)


def stribeck(velocity: Array, breakaway: Array, speed: Array) -> Array:
    """Returns the extra friction near standstill, on top of Coulomb friction, as a force on the joint.

    f(v) = -breakaway * exp(-(v / speed)^2) * tanh(20 v / speed): the Stribeck hump, smoothed at zero.

    Args:
        velocity: (num_worlds, num_joints) [rad/s, m/s].
        breakaway: (num_worlds, num_joints) height of the hump [N·m, N]; 0 is ideal.
        speed: (num_worlds, num_joints) Stribeck speed [rad/s, m/s], above 0.
    """
    ratio = velocity / speed
    return -breakaway * np.exp(-(ratio**2)) * np.tanh(20 * ratio)
