"""Friction, play and lag in drives."""

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


def kept(lag_s: Array, step_s: float) -> Array:
    """Returns the share of the way to the command that a first-order lag leaves after one physics step.

    lag / (lag + step): the discrete lag whose mean delay is exactly `lag_s`, for any step. Its slope at no lag is
    not 0, so that a lag can be fitted from none like any other number, and for lags far above the step it is
    exp(-step / (lag + step / 2)): the engine's force is that of the end of a step, half a step early on average.
    """
    return lag_s / (lag_s + step_s)


def time_constant(lag_s: float, step_s: float) -> float:
    """Returns the time constant of the engine's exact filter that keeps as much in a step: exp(-step / t) = kept."""
    return float(step_s / np.log1p(step_s / lag_s))


def lagged(command: Array, before: Array, keep: Array) -> Array:
    """Returns commands after a first-order lag: y' = u + keep (y - u), one physics step after another.

    Args:
        command: (num_worlds, num_substeps, num_commands) what is sent.
        before: (num_worlds, num_commands) where the lag stood before; the last row returned is where it stands now.
        keep: (num_worlds, num_commands) from `kept`; 0 is ideal: the output is the input.
    """
    out = np.empty_like(command)
    for k in range(command.shape[1]):
        before = command[:, k] + keep * (before - command[:, k])
        out[:, k] = before
    return out
