"""Forces that a model may lack at one joint or body: what each would be a function of, and of which shape.

A shape is a few forces over time that are added with unknown factors. Each belongs to one variable; a variable is
judged by the best of its shapes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gapless.core.results import RemainderVariable
from gapless.core.signal import Array
from gapless.fit.remainder.motion import Motion

SIGN_SPEED = 0.1  # speed at which dry friction is nearly whole, as a share of the usual speed
SPEEDS = (0.15, 0.3, 0.6, 1.0)  # at which friction falls, as shares of the usual speed
LIMITS = (0.6, 1.0, 1.4, 1.8)  # above which a drive gives less, as shares of its usual effort
WAYS = (0.02, 0.05, 0.1, 0.2, 0.4)  # on which friction builds up [s], at the usual speed
MAX_WAVES = 30.0  # ripples over the range of a joint, at most: more pass within a piece
MAX_PER_TURN = 60  # ripples of a joint that turns more than once: a whole number per turn
WAVE_STEP = 0.25  # between wave numbers that are tried, in ripples over the range


@dataclass(frozen=True)
class Shape:
    """Forces that a variable may cause."""

    variable: RemainderVariable  # what they are a function of
    words: str  # how, for a person to read
    forces: Array  # (num_windows, num_pieces, num_dofs, num_factors) per unit of each factor
    target: str | None  # parameter of a layer or of the model that has this form; None where there is none


MakeShape = Callable[[RemainderVariable, str, list[Array], str | None], Shape]
"""(variable, words, forces of each factor, target within the joint or None) -> its shape."""


@dataclass(frozen=True)
class Place:
    """Where a force may be lacking."""

    kind: str  # `joint` or `body`
    name: str  # name in the model
    dofs: tuple[int, ...]  # degrees of freedom
    addresses: tuple[int, ...]  # of their positions
    body: int  # number of the body that they move


def list_shapes(motion: Motion, place: Place) -> Iterator[Shape]:
    """Yields all shapes of a place."""
    q, v = motion.position[..., place.addresses], motion.velocity[..., place.dofs]
    if place.kind == "body":
        yield from _shapes_of_body(motion, place, q, v)
        return
    yield from _shapes_of_joint(motion, place, q[..., 0], v[..., 0])


def _shapes_of_joint(motion: Motion, place: Place, q: Array, v: Array) -> Iterator[Shape]:
    name, u = place.name, motion.effort[..., place.dofs[0]]
    path, pace = motion.predicted_position[..., place.addresses[0]], motion.predicted_velocity[..., place.dofs[0]]

    def shape(variable: RemainderVariable, words: str, forces: list[Array], target: str | None = None) -> Shape:
        return Shape(variable, words, np.stack(forces, axis=-1)[:, :, None], target and f"joint/{name}/{target}")

    one, usual_v, usual_u = np.ones_like(q), root_mean_square(v), root_mean_square(u)
    sign, driven = np.tanh(v / (SIGN_SPEED * usual_v)), usual_u > 1e-6 * motion.usual.max()
    yield shape("sign of velocity", "dry friction", [one, sign], "frictionloss")
    yield shape("velocity", "damping that bends with speed", [pace, pace * np.abs(pace)], "damping")
    yield shape("velocity", "damping that differs by direction", [pace, np.abs(pace)])
    for speed in (share * usual_v for share in SPEEDS):
        hump = np.exp(-(((v if speed < 0.5 * usual_v else pace) / speed) ** 2)) * sign
        yield shape("velocity", f"friction that falls by {speed:.2g} from standstill", [sign, hump], "friction/hump")
    yield from _shapes_of_position(shape, q, path, sign)
    if driven:
        rubbing = [np.abs(u) * sign, sign]
        yield shape("load", "friction that rises with the load", rubbing, "load-dependent-friction/share")
        yield shape("load", "a drive whose gain depends on its effort", [u, u * np.abs(u)])
        for limit in (share * usual_u for share in LIMITS):
            yield shape("load", f"a drive that gives less above {limit:.2g}", [u, u - np.clip(u, -limit, limit)])
    yield from _shapes_of_age(shape, motion, u if driven else None, sign)
    for way in (seconds * usual_v for seconds in WAYS):
        bent = bend_bristles(motion, v, way)
        yield shape("history", f"friction that builds up over {way:.2g}", [bent, sign], "lugre-friction/coulomb")
    runs = (motion.run[:, None, None] == np.unique(motion.run)).astype(float)
    if runs.shape[2] > 1:
        kinds = [("a pull", one, "load"), ("friction", sign, "frictionloss")]
        for words, force, target in [*kinds, *([("gain", u, None)] if driven else [])]:
            each = list(np.moveaxis(force[..., None] * runs, -1, 0))
            yield shape("run", f"{words} that differs from run to run", each, target)


def _shapes_of_position(shape: MakeShape, q: Array, path: Array, sign: Array) -> Iterator[Shape]:
    low, high = np.quantile(q, [0.01, 0.99])
    width = max(float(high - low), 1e-9)
    place, predicted = ((one - low) / width for one in (q, path))
    angle = np.arccos(np.clip(2 * predicted - 1, -1.0, 1.0))
    smooth = [np.cos(degree * angle) for degree in range(1, 6)]  # Chebyshev polynomials
    yield shape("position", "a spring or cable that bends", smooth, "cable-drag/stiffness")
    yield shape("position", "friction that depends on the place", [sign, *(sign * part for part in smooth)], None)
    per_turn = np.arange(1, MAX_PER_TURN + 1) * width / (2 * np.pi) if width > 2 * np.pi else np.zeros(0)
    for count in (*np.arange(1.0, MAX_WAVES, WAVE_STEP), *per_turn):
        turn = 2 * np.pi * count * place
        waves = [np.sin(turn), np.cos(turn)]
        number = 2 * np.pi * count / width
        yield shape("position", f"a ripple, {number:.3g} rad per unit", waves, "cogging/amplitude")
        yield shape(
            "position", f"friction that waves, {number:.3g} rad per unit", [sign, *(sign * w for w in waves)], None
        )


def _shapes_of_age(shape: MakeShape, motion: Motion, u: Array | None, sign: Array) -> Iterator[Shape]:
    age = motion.time_s / max(float(motion.time_s.max()), 1e-9)
    yield shape("time", "friction that changes with time", [age * sign, age**2 * sign], None)
    yield shape("time", "a pull that changes with time", [age, age**2], None)
    if u is None:
        return
    heat = accumulate_heat(motion, u)
    yield shape("time", "a drive whose gain changes with time", [age * u, age**2 * u], None)
    yield shape("temperature", "a drive whose gain falls with its heat", [heat * u, heat**2 * u], "heating/loss")
    yield shape("temperature", "friction that changes with heat", [heat * sign, heat**2 * sign], None)


def _shapes_of_body(motion: Motion, place: Place, q: Array, v: Array) -> Iterator[Shape]:
    """Yields the shapes of an object on a floor: along its motion, by place, time and run."""
    speed = np.linalg.norm(v[..., :2], axis=-1, keepdims=True)
    along = v / np.maximum(np.hypot(speed, SIGN_SPEED * root_mean_square(speed)), 1e-9)
    along[..., 2:] = np.tanh(v[..., 2:] / np.maximum(SIGN_SPEED * root_mean_square(v[..., 2:]), 1e-9))
    turning = along.copy()
    along[..., 2:], turning[..., :2] = 0.0, 0.0
    both = [along, turning] if v.shape[-1] > 2 else [along]

    def shape(variable: RemainderVariable, words: str, forces: list[Array], target: str | None = None) -> Shape:
        return Shape(variable, words, np.stack(forces, axis=-1), target)

    touching = motion.touching[..., place.body, None]
    yield shape("sign of velocity", "friction on its floor", both)
    yield shape("velocity", "damping", [v, v * np.abs(v)])
    yield shape("load", "friction while it is touched", [*both, *(touching * one for one in both)])
    age = (motion.time_s / max(float(motion.time_s.max()), 1e-9))[..., None]
    yield shape("time", "friction that changes with time", [*both, *(age * one for one in both)])
    low, high = np.quantile(q[..., :2], [0.01, 0.99], axis=(0, 1))
    width = float(np.max(high - low))
    for count in np.arange(1.0, MAX_WAVES / 2, 2 * WAVE_STEP):
        turn = 2 * np.pi * count * (q[..., :2] - low) / max(width, 1e-9)
        pairs = [f(turn[..., 0]) * g(turn[..., 1]) for f in (np.sin, np.cos) for g in (np.sin, np.cos)]
        waves = [along * pair[..., None] for pair in pairs]
        number = f"{2 * np.pi * count / max(width, 1e-9):.3g} rad per m"
        yield shape("position", f"friction of the floor that waves, {number}", [*both, *waves])
    runs = (motion.run[:, None, None] == np.unique(motion.run)).astype(float)
    if runs.shape[2] > 1:
        each = [along * runs[..., k, None] for k in range(runs.shape[2])]
        yield shape("run", "friction that differs from run to run", each)


def bend_bristles(motion: Motion, v: Array, way: float) -> Array:
    """Returns how far bristles that give by `way` are bent, in [-1, 1] (Dahl 1968): z' = (v - |v| z) / way.

    Exact for a velocity that is held over a piece. A window that follows another begins as that one ended; else
    bristles begin as bent as they are in steady motion, or not at all at standstill.
    """
    rate = np.abs(v) * motion.piece_s / way
    fade, steady = np.exp(-rate), np.sign(v)
    bent, before = np.zeros_like(v), dict[tuple[int, int], float]()
    length_s = motion.piece_s * v.shape[1]
    for number in np.lexsort((motion.time_s[:, 0], motion.run)):
        start = (int(motion.run[number]), round(float(motion.time_s[number, 0]) / motion.piece_s))
        z = before.get(start, float(np.tanh(v[number, 0] * 0.1 / way)))
        for piece in range(v.shape[1]):
            end = float(steady[number, piece] + (z - steady[number, piece]) * fade[number, piece])
            bent[number, piece], z = (z + end) / 2, end
        before[start[0], round((float(motion.time_s[number, 0]) + length_s) / motion.piece_s)] = z
    return bent


def accumulate_heat(motion: Motion, u: Array) -> Array:
    """Returns the integral of the squared effort since the start of each run, as a share of the largest.

    Between windows that do not follow each other, the effort is taken to be as in the mean of the two.
    """
    heat = np.zeros_like(u)
    for run in np.unique(motion.run):
        mine = np.flatnonzero(motion.run == run)
        mine = mine[np.argsort(motion.time_s[mine, 0])]
        times, power = motion.time_s[mine].ravel(), (u[mine] ** 2).ravel()
        steps = np.diff(times, prepend=0.0)
        mean = np.concatenate([power[:1], (power[1:] + power[:-1]) / 2])
        heat[mine] = np.cumsum(np.maximum(steps, 0.0) * mean).reshape(len(mine), -1)
    return heat / max(float(heat.max()), 1e-12)


def root_mean_square(values: Array) -> float:
    """Returns the root mean square of all values, at least 1e-9."""
    return max(float(np.sqrt(np.mean(values**2))), 1e-9)
