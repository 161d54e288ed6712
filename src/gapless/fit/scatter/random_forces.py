"""Forces that are drawn anew all the time: do pushes, or commands that come late by chance, explain what fits leave?

No mean model helps where a force is random: what it leaves is judged by its covariance. A window's residual is
r ~ N(0, s^2 + t^2 K): 1 is that of noise and of errors of the start, which are discounted; K = G D G^T is what forces
of covariance D do to the readings. Each hypothesis has its D: pushes on one joint hit some windows and leave others
alone; late commands make a force in proportion to the slope of the command; and whatever a model lacks goes with the
motion. Each is taken at its likeliest s and t.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import toeplitz

from gapless.core.signal import Array
from gapless.fit.remainder.gather import Remainder
from gapless.fit.remainder.motion import Motion
from gapless.fit.remainder.shapes import Place

NOISE_SCALES = 2.0 ** np.arange(0, 9)  # of s^2
FORCE_SCALES = 10.0 ** np.arange(-1.0, 6.1, 0.25)  # of t^2, in units of what noise does
HIT_SHARES = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.45, 0.65])  # of windows, by pushes
PUSH_S = 0.15  # how long a push lasts, about [s]
Kind = Literal["pushes", "jitter", "misfit"]


@dataclass(frozen=True)
class RandomForce:
    """A hypothesis about random forces, at its likeliest."""

    kind: Kind  # what it is
    place: Place | None  # where; None for all drives
    gain: float  # log-likelihood above that of noise alone [nats]
    size: float  # standard deviation of the force [N·m, N], or of the delay [s]
    hit: float  # share of windows that it acts in [1]
    words: str  # what it is, for a person


def weigh_random_forces(remainder: Remainder, residual: Array, drive_slopes: Array) -> list[RandomForce]:
    """Returns all hypotheses, the likeliest first.

    Args:
        remainder: Windows and what forces would change.
        residual: (num_windows, num_per_window) what is left of them beside what parameters explain.
        drive_slopes: (num_windows, num_pieces, nv) how fast what commands ask of drives changes [N·m/s, N/s].
    """
    likelihood = _Likelihood(residual, remainder.weight)
    motion, found = remainder.motion, list[RandomForce]()
    lasting = np.exp(-(motion.time_s[0] - motion.time_s[0, 0]) / PUSH_S)
    joints = [place for place in remainder.places if place.kind == "joint"]
    late = np.zeros(0)
    for dof in (place.dofs[0] for place in joints):
        change = remainder.responses[dof] * drive_slopes[..., dof, None]
        late = late + change if late.size else change
    if late.any():
        gain, size, _ = likelihood.maximise(np.einsum("wpn,wpm->wnm", late, late))
        found.append(RandomForce("jitter", None, gain, size, 1.0, "commands that come late by chance"))
    for place in joints:
        response, dof = remainder.responses[place.dofs[0]], place.dofs[0]
        wander = np.einsum("wpn,pq,wqm->wnm", response, toeplitz(lasting), response, optimize=True)
        gain, size, hit = likelihood.maximise_hits(wander)
        found.append(RandomForce("pushes", place, gain, size, hit, f"pushes on {place.name}"))
        for words, force in _motion_forces(motion, dof).items():
            rank_one = np.einsum("wpn,wp->wn", response, force)
            along = np.einsum("wn,wm->wnm", rank_one, rank_one)
            gain, size, _ = likelihood.maximise(along)
            found.append(RandomForce("misfit", place, gain, size, 1.0, f"{words} of {place.name}"))
        for words, weight in _motion_weights(motion, dof).items():
            gain, size, _ = likelihood.maximise(wander * weight[:, None, None])
            found.append(RandomForce("misfit", place, gain, size, 1.0, f"{words} of {place.name}"))
    gain = likelihood.noise_alone()
    found.append(RandomForce("misfit", None, gain, 0.0, 1.0, "more noise than stated"))
    return sorted(found, key=lambda one: -one.gain)


def _motion_forces(motion: Motion, dof: int) -> dict[str, Array]:
    """Returns forces that a wrong model makes, each with a factor of its own in every window."""
    v, u = motion.velocity[..., dof], motion.effort[..., dof]
    usual = max(float(np.sqrt(np.mean(v**2))), 1e-9)
    return {"a pull": np.ones_like(v), "damping": v, "friction": np.tanh(v / (0.1 * usual)), "gain": u}


def _motion_weights(motion: Motion, dof: int) -> dict[str, Array]:
    """Returns how much a wrong model shows in each window, if it shows where that moves, reverses or works hard."""
    speed, effort = np.abs(motion.velocity[..., dof]), np.abs(motion.effort[..., dof])
    shares: dict[str, Array] = {
        "something always": np.ones(len(speed)),
        "something in motion": np.mean(speed**2, axis=1),
        "something at reversals": np.where(speed.min(axis=1) < 0.15 * np.sqrt(np.mean(speed**2)), 1.0, 0.01),
        "something under load": np.mean(effort**2, axis=1),
    }
    return {words: weight for words, weight in shares.items() if np.ptp(weight) > 0 or words == "something always"}


def _mean_diagonal(matrices: Array) -> float:
    return float(np.mean(np.diagonal(matrices, axis1=1, axis2=2)))


class _Likelihood:
    """Log-likelihoods of windows under covariances."""

    def __init__(self, residual: Array, weight: Array) -> None:
        self._white, self._weight = residual / weight[:, None], weight

    def noise_alone(self) -> float:
        """Returns the gain of noise that is larger than stated, over noise as stated."""
        squares = np.sum(self._white**2, axis=1)
        count = self._white.shape[1]
        gains = [0.5 * float(np.sum(squares * (1 - 1 / s) - count * np.log(s))) for s in NOISE_SCALES]
        return max(gains)

    def maximise(self, covariance: Array) -> tuple[float, float, float]:
        """Returns gain, standard deviation t and 1 of forces that act in every window."""
        gains, unit = self._gains(covariance)
        total = gains.sum(axis=0)
        best = np.unravel_index(int(np.argmax(total)), total.shape)
        return float(total[best]), float(np.sqrt(FORCE_SCALES[best[1]] * unit)), 1.0

    def maximise_hits(self, covariance: Array) -> tuple[float, float, float]:
        """Returns gain, standard deviation t and share of windows of forces that act in some windows only."""
        gains, unit = self._gains(covariance)
        calm = self._calm()  # (num_windows, num_noise_scales)
        found = (-np.inf, 0.0, 0.0)
        for hit in HIT_SHARES:
            mixed = np.logaddexp(np.log1p(-hit) + calm[:, :, None], np.log(hit) + gains).sum(axis=0)
            best = np.unravel_index(int(np.argmax(mixed)), mixed.shape)
            if mixed[best] > found[0]:
                found = float(mixed[best]), float(np.sqrt(FORCE_SCALES[best[1]] * unit)), float(hit)
        return found

    def _calm(self) -> Array:
        squares = np.sum(self._white**2, axis=1)[:, None]
        return 0.5 * (squares * (1 - 1 / NOISE_SCALES) - self._white.shape[1] * np.log(NOISE_SCALES))

    def _gains(self, covariance: Array) -> tuple[Array, float]:
        """Returns log-likelihoods over noise alone, (num_windows, num_noise_scales, num_force_scales), and t^2 of 1."""
        inner = covariance / self._weight[:, None, None] ** 2
        unit = 1.0 / max(_mean_diagonal(inner), 1e-30)
        sizes, directions = np.linalg.eigh(inner * unit)
        along = np.einsum("wij,wi->wj", directions, self._white) ** 2
        sizes = np.maximum(sizes, 0.0)
        gains = np.empty((len(along), len(NOISE_SCALES), len(FORCE_SCALES)))
        for k, s in enumerate(NOISE_SCALES):
            total = s + sizes[:, None] * FORCE_SCALES[:, None]
            gains[:, k] = 0.5 * np.sum(along[:, None] * (1 - 1 / total) - np.log(total), axis=2)
        return gains, unit
