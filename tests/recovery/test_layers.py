"""Every layer is found again: logs from the simulation with a knob away from ideal, and `identify` brings it back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start
from gapless.core.results import FittedParameter
from gapless.core.signal import Array, TimeSeries
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext
from gapless.sim.realism.layers.sensor import BIAS
from gapless.sim.realism.registry import LAYERS
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from recovery.layer_cases import CASES, QUICK, Case
from unit.sim.realism.layers.one_layer import run_layer
from unit.sim.scenes import write_project

FINER = 4  # the robot knows no time step


def waves(case: Case, num_commands: int, rng: np.random.Generator) -> Array:
    """Returns commands, (num_steps, num_logs, num_commands)."""
    time_s = np.arange(int(case.seconds * case.rate_hz))[:, None, None, None] / case.rate_hz
    shape = (case.num_logs, num_commands, 5)
    rates_hz, phases = rng.uniform(0.1, case.most_hz, shape), rng.uniform(0, 2 * np.pi, shape)
    return np.sum(case.size / 2 * rng.uniform(0.3, 1.0, shape) * np.sin(2 * np.pi * rates_hz * time_s + phases), axis=3)


def changed(name: str, case: Case, signals: Array) -> Array:
    """Returns what an effect makes of signals over time, written down again without the simulation's own functions."""
    if name == "scale and bias":
        draws = Draws(0, np.arange(signals.shape[1], dtype=np.uint64))
        knobs = BIAS.ideal(signals.shape[1]) | {"scale": np.full((signals.shape[1], 1), case.truth)}
        return run_layer(BIAS, signals, knobs, LayerContext(1 / case.rate_hz, draws))
    if name == "gain":
        return case.truth * signals
    if name in ("command delay", "reading delay"):
        whole, share = divmod(case.truth * case.rate_hz + 1e-9, 1.0)
        late = np.maximum(np.arange(len(signals)) - int(whole), 0)
        return (1 - share) * signals[late] + share * signals[np.maximum(late - 1, 0)]
    out = signals.copy()
    for k in range(1, len(signals)):
        if name == "lag":
            out[k] += case.truth / (case.truth + 1 / case.rate_hz) * (out[k - 1] - signals[k])
        else:
            out[k] = np.clip(out[k - 1], signals[k] - case.truth / 2, signals[k] + case.truth / 2)
    return out


def recorded(name: str, case: Case, blueprint: CompiledProject, seed: int) -> tuple[Array, Array]:
    """Returns commands and readings, (num_steps, num_logs, ...)."""
    rng = np.random.default_rng(seed)
    space = EMPTY_SPACE
    if not case.by_hand:
        target = resolve(case.target, blueprint.project, blueprint.model)
        space = ParameterSpace((Parameter(target.path, target.dimension, target.unit, target.nominal, -1e9, 1e9),))
    world = Simulation(blueprint, case.num_logs, space, 1, noisy=True)
    world.set_parameters(np.full((case.num_logs, len(space)), case.truth))
    commands = waves(case, len(blueprint.project.commands), rng)
    on_commands = name in ("gain", "lag", "backlash", "command delay")
    sent = changed(name, case, commands) if on_commands else commands
    start = Start(
        {joint: rng.uniform(*ends, (case.num_logs, 1)) for joint, ends in case.start.items()},
        np.zeros((case.num_logs, 0)),
    )
    seen = [world.reset(start, rng)]
    seen += [world.step(command).measured for command in sent[:-1]]
    readings = np.stack(seen)
    if case.by_hand and not on_commands:
        readings = changed(name, case, readings)
    return commands, readings


def fitted(name: str, case: Case, folder: Path, seed: int = 1) -> FittedParameter:
    """Returns what `identify` makes of logs that have a layer on."""
    driven = {"u": "{actuator: motor}"} if "<actuator>" in case.model else {}
    listed = [f"{{target: {case.target}{case.bounds}}}"]
    write_project(folder, case.model, driven, case.readings, rate_hz=case.rate_hz, parameters=listed)
    project = load_project(folder)
    coarse = compile_project(project)
    fine = compile_project(project, max_timestep_s=coarse.model.opt.timestep / FINER)
    commands, readings = recorded(name, case, fine, seed)
    times_s = np.arange(len(readings)) / case.rate_hz
    for k in range(case.num_logs):
        sent = TimeSeries(times_s, commands[:, k], project.command_names, project.command_units)
        shown = TimeSeries(times_s, readings[:, k], project.measurement_names, project.measurement_units)
        write_log(project, Episode(f"run{k:02}", "real", sent, shown))
    result = identify(folder, window_s=case.window_s)
    (found,) = result.parameters
    interval = f"[{found.low:.4g}, {found.high:.4g}]"
    print(f"{name}: truth {case.truth:g}, found {found.value:.4g} {interval}: {result.verdict} {result.reasons}")
    return found


def cases() -> list[object]:
    found: list[object] = []
    for name, case in CASES.items():
        marks = [] if name in QUICK else [pytest.mark.slow]
        found.append(pytest.param(name, case, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("name", "case"), cases())
def test_a_layer_is_recovered(name: str, case: Case, tmp_path: Path) -> None:
    found = fitted(name, case, tmp_path)
    assert found.identifiable
    inside = found.low <= case.truth <= found.high
    assert inside or abs(found.value - case.truth) <= case.tolerance * abs(case.truth)
    assert not found.low <= found.nominal <= found.high, "far from what the model says"


@pytest.mark.slow
def test_losses_that_are_not_there_are_not_found(tmp_path: Path) -> None:
    found = fitted("dropped packets", replace(CASES["dropped packets"], truth=0.0), tmp_path)
    assert found.value < 0.01
    assert found.high < 0.05


def test_light_shows_in_no_reading_and_identify_says_so(tmp_path: Path) -> None:
    found = fitted("light of day", Case("world/light-of-day/share", 0.8, seconds=2.0), tmp_path)
    assert not found.identifiable


def test_every_layer_has_a_case() -> None:
    assert {layer.name for layer in LAYERS} <= {*CASES, "light of day"}
