"""The contract of a world as a check that anyone can run on a robot class of their own.

    from gapless.core.contract import check_world

    def make_world() -> MyRobot: ...
    def start(rng, num_worlds): return Start({"elbow": np.zeros((num_worlds, 1))}, np.zeros((num_worlds, 2)))

    check_world(make_world, start)

It resets and steps the world a few times with small commands: on a robot, the robot moves.
"""

from collections.abc import Callable

import numpy as np

from gapless.core.errors import InputError
from gapless.core.protocols import Start, Step, World
from gapless.core.signal import Array

MakeWorld = Callable[[], World]
MakeStart = Callable[[np.random.Generator, int], Start]


def check_world(
    make_world: MakeWorld,
    start: MakeStart,
    *,
    num_steps: int = 5,
    size: float = 0.1,
    beyond: float | None = None,
    repeatable: bool = True,
) -> None:
    """Checks that a world keeps the contract of `World`; returns nothing if it does.

    Checked are its names and rate, the shape, type and finiteness of what it returns, that a command it says
    it applied is applied unchanged if asked for, that resetting some worlds leaves the others on their way,
    and that the same seed gives the same run. The first breach is an `InputError` with its likely cause.

    Args:
        make_world: Makes the world, anew on each call.
        start: Draws how `num_worlds` runs begin, as `Task.start` does.
        num_steps: Control intervals to run.
        size: Size of the commands, around 0, in model units.
        beyond: A command beyond all limits, to see that it is cut; None to not try: leave it so on a robot.
        repeatable: Whether a seed fixes the run; False for a robot.
    """
    world = make_world()
    _check_description(world)
    first = _check_run(world, start, num_steps, size)
    if beyond is not None:
        _check_limits(world, start, beyond)
    if world.num_worlds > 1:
        _check_partial_reset(world, start, size)
    if repeatable:
        again = _check_run(make_world(), start, num_steps, size)
        _require(np.array_equal(first, again), "the same seed gives another run", "draw from the rng of reset")


def _require(kept: bool, found: str, cause: str) -> None:
    if not kept:
        raise InputError(f"this world breaks the protocol: {found}; correct the likely cause: {cause}")


def _check_description(world: World) -> None:
    for name in ("source", "num_worlds", "rate_hz", "command_names", "measurement_names", "reset", "step"):
        _require(hasattr(world, name), f"it has no {name}", f"set self.{name}, see gapless.core.protocols.World")
    known = ("real", "twin", "sim")
    _require(world.source in known, f"its source is {world.source!r}", f"write one of {', '.join(known)}")
    _require(world.num_worlds >= 1, f"num_worlds is {world.num_worlds}", "a robot has num_worlds = 1")
    _require(0 < world.rate_hz < np.inf, f"rate_hz is {world.rate_hz}", "give the control rate in Hz")
    for what, names in (("command", world.command_names), ("measurement", world.measurement_names)):
        _require(type(names) is tuple, f"{what}_names is {names!r}", "give a tuple of column names")
        _require(all(type(name) is str and name for name in names), f"{what}_names is {names!r}", "give column names")
        _require(len(set(names)) == len(names), f"{what}_names has a name twice: {names}", "two columns in one")
    _require(len(world.measurement_names) > 0, "it measures nothing", "measurement_names is empty")


def _check_array(value: Array, shape: tuple[int, int], what: str) -> None:
    is_array = isinstance(value, np.ndarray)  # pyright: ignore[reportUnnecessaryIsInstance]
    _require(is_array, f"{what} is a {type(value).__name__}", "return a numpy array")
    axes = "axis 0 is num_worlds, also for one robot; axis 1 has one column per name"
    _require(value.shape == shape, f"{what} has shape {value.shape}, expected {shape}", axes)
    _require(value.dtype == np.float64, f"{what} is {value.dtype}", "convert to float64 once, where you read")
    cause = "a sensor without a reading yet, or a simulation that diverged"
    _require(bool(np.isfinite(value).all()), f"{what} has values that are not finite", cause)


def _check_step(world: World, command: Array) -> Step:
    given = command.copy()
    step = world.step(command)
    _require(np.array_equal(command, given), "step changed the command it was given", "copy before clipping")
    _check_array(step.measured, (world.num_worlds, len(world.measurement_names)), "what step measured")
    _check_array(step.applied_command, command.shape, "the applied command")
    return step


def _check_run(world: World, start: MakeStart, num_steps: int, size: float) -> Array:
    """Returns the measurements of a seeded run, (num_steps + 1, num_worlds, num_measurements)."""
    rng = np.random.default_rng(0)
    seen = [world.reset(start(rng, world.num_worlds), rng)]
    _check_array(seen[0], (world.num_worlds, len(world.measurement_names)), "what reset returned")
    for _ in range(max(1, num_steps)):
        command = size * rng.uniform(-1, 1, (world.num_worlds, len(world.command_names)))
        kept = seen[-1].copy()
        step = _check_step(world, command)
        _require(np.array_equal(kept, seen[-1]), "an old measurement changed", "return a copy, not your buffer")
        seen.append(step.measured)
        _check_again(world, step.applied_command)
    return np.stack(seen)


def _check_limits(world: World, start: MakeStart, beyond: float) -> None:
    for sign in (-1.0, 1.0):
        rng = np.random.default_rng(0)
        world.reset(start(rng, world.num_worlds), rng)
        asked = np.full((world.num_worlds, len(world.command_names)), sign * beyond)
        applied = _check_step(world, asked).applied_command
        cut = bool(np.all(np.abs(applied) < beyond))
        _require(cut, f"a command of {sign * beyond:g} is said to be applied", "return the command after limits")
        _check_again(world, applied)


def _check_again(world: World, applied: Array) -> None:
    again = _check_step(world, applied.copy()).applied_command
    cause = "return what was really sent after limits, in the unit it was asked in"
    found = "a command that was applied is not applied unchanged when asked for"
    _require(np.array_equal(applied, again), found, cause)


def _check_partial_reset(world: World, start: MakeStart, size: float) -> None:
    """Checks that the others do not jump when the last world begins anew; in simulation, not at all."""
    rng = np.random.default_rng(1)
    seen = [world.reset(start(rng, world.num_worlds), rng)]
    command = size * rng.uniform(-1, 1, (world.num_worlds, len(world.command_names)))
    for _ in range(20):
        seen.append(_check_step(world, command).measured)
    usual = np.abs(np.diff(np.stack(seen), axis=0)).max(axis=(0, 1))
    now = world.reset(start(rng, 1), rng, np.array([world.num_worlds - 1], dtype=np.intp))
    _check_array(now, (world.num_worlds, len(world.measurement_names)), "what reset of some worlds returned")
    jump = np.abs(now - seen[-1])[:-1]
    allowed = 0.0 if world.source == "sim" else 3 * usual + 1e-9
    cause = "reset ignores ids, or clears the memory of every world"
    _require(bool(np.all(jump <= allowed)), "resetting one world moves the others", cause)
