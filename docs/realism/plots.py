"""Draws the pictures of these pages from the layers themselves: python docs/realism/plots.py."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from drawing import Curve, Panel, write

from gapless.sim.realism.draws import Draws
from gapless.sim.realism.human import ADULTS, partners, reach_share
from gapless.sim.realism.layer import Layer, LayerContext
from gapless.sim.realism.layers import contact, drive, friction
from gapless.sim.realism.layers import environment as environments
from gapless.sim.realism.layers import latency as latencies
from gapless.sim.realism.layers import sensor as sensors
from gapless.sim.realism.signal_path import apply_delay, apply_lag, history_length, lag_remainder, plan_delay

HERE = Path(__file__).parent
COLOURS = ("blue", "orange", "violet")


def run(
    layer: Layer, signal: np.ndarray, step_s: float, seen: Mapping[str, np.ndarray] | None = None, **knobs: object
) -> np.ndarray:
    """Returns what a layer makes of (num_steps, num_columns) in one world; knobs not given are ideal."""
    values = layer.ideal(1) | {name: np.atleast_2d(np.asarray(value, dtype=float)) for name, value in knobs.items()}
    draws, state, out = Draws(1, np.zeros(1, dtype=np.uint64)), (), np.empty_like(signal)
    for k, now in enumerate(signal[:, None]):
        here = LayerContext(step_s, draws.at(k), **{name: item[k, None] for name, item in (seen or {}).items()})
        state = layer.begin(now, values, here) if k == 0 else state
        state, (out[k],) = layer.act(state, now, values, here)
    return out


def line(layer: Layer, signal: np.ndarray, step_s: float = 0.01, **knobs: object) -> np.ndarray:
    """Returns what a layer makes of one column."""
    return run(layer, signal[:, None], step_s, **knobs)[:, 0]


def actuator() -> list[Panel]:
    """Returns the panels of the actuators."""
    speed = np.linspace(-8, 12, 201)
    asked = np.full_like(speed, 9.0)
    curve = line(drive.TORQUE_SPEED, asked, seen={"velocity": speed[:, None]}, stall=3.0, free_speed=10.0, limit=4.0)
    slow = np.linspace(-0.5, 0.5, 401)
    rub = line(friction.FRICTION, 0 * slow, seen={"velocity": slow[:, None]}, coulomb=0.1, hump=0.05, viscous=0.05)
    times = np.arange(0, 2, 0.005)
    sine = 0.5 * np.sin(2 * np.pi * times)
    lagging = apply_lag(sine[None, :, None], sine[None, :1], lag_remainder(np.full((1, 1), 0.05), 0.005))[0, :, 0]
    hot = np.arange(0, 900.0)
    warm = line(drive.HEATING, np.full_like(hot, 3.0), 1.0, loss=2.0, thermal_k_per_w=5.0, time_constant_s=200.0)
    return [
        Panel("The most torque that a motor has", "speed [rad/s]", "torque [N·m]", [Curve("", speed, curve, "orange")]),
        Panel("Friction near standstill", "velocity [rad/s]", "force on the joint [N·m]",
              [Curve("", slow, rub, "orange")]),
        Panel("A command, and what drives make of it", "time [s]", "angle [rad]", [
            Curve("command", times, sine, "gray"),
            Curve("lag of 50 ms", times, lagging, "blue"),
            Curve("play of 0.2 rad", times, line(sensors.ENCODER_BACKLASH, sine, width=0.2), "orange"),
            Curve("at most 2 rad/s", times, line(drive.RATE_LIMIT, sine, 0.005, rate=2.0), "violet"),
        ]),
        Panel("A motor asked for 3 N·m heats up", "time [s]", "torque [N·m]", [Curve("", hot, warm, "orange")]),
    ]  # fmt: skip


def latency() -> list[Panel]:
    """Returns the panels of latency."""
    times = np.arange(0, 1, 0.01)
    sine = np.sin(2 * np.pi * times)
    clock = np.arange(0, 4, 0.01)
    length = history_length(0.037, 0.01)
    held = np.concatenate([np.full(length - 1, sine[0]), sine])[None, :, None]
    delayed = apply_delay(held, plan_delay(np.full((1, 1), 0.037), 0.01, 1, length), len(sine))[0, :, 0]

    def late(layer: Layer, **knobs: object) -> np.ndarray:
        return 1e3 * (clock - line(layer, clock, **knobs))

    stalls = late(latencies.INFERENCE, inference_s=0.008, spike_share=0.03, spike_s=0.02)
    return [
        Panel("Late, and with gaps", "time [s]", "command [1]", [
            Curve("sent", times, sine, "gray"),
            Curve("delay of 37 ms", times, delayed, "blue"),
            Curve("30 % lost", times, line(latencies.DROPPED, sine, share=0.3, burst=4.0), "orange"),
        ]),
        Panel("How late a command is", "time [s]", "age [ms]", [
            Curve("duplicates, 5 %", clock, late(latencies.DUPLICATED, share=0.05, queue=3.0), "gray"),
            Curve("inference, stalls", clock, stalls, "orange"),
            Curve("jitter of 3 ms", clock, late(latencies.JITTER, jitter_s=0.003), "violet"),
        ]),
    ]  # fmt: skip


def allan(rates: np.ndarray, step_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns averaging times [s] and the Allan deviations of (num_samples, num_columns)."""
    sizes = np.unique(np.geomspace(1, len(rates) // 20, 40).astype(int))
    deviations = []
    for size in sizes:
        means = rates[: len(rates) // size * size].reshape(-1, size, rates.shape[1]).mean(axis=1)
        deviations.append(np.sqrt(np.mean(np.diff(means, axis=0) ** 2) / 2))
    return sizes * step_s, np.array(deviations)


def sensor() -> list[Panel]:
    """Returns the panels of sensors."""
    still = np.zeros((40000, 3))
    only_white = allan(run(sensors.IMU, still, 0.05, density=7e-4), 0.05)
    whole = allan(run(sensors.IMU, still, 0.05, density=7e-4, instability=4e-4, tau_s=20.0, walk=1e-5), 0.05)
    pixels = np.arange(160.0)
    scene = np.where(pixels < 60, 1.0, 2.5 + 0.01 * pixels)
    shiny = np.where((pixels > 110) & (pixels < 130), 0.6, 0.0)
    depth = run(sensors.DEPTH, scene[None], 0.03, base_m=0.001, growth_per_m=0.006, flying=1.0, shiny=shiny)[0]
    times = np.arange(0, 4, 0.02)
    hand = 0.3 * np.sin(times * 2)
    seen = line(sensors.NOISE, line(sensors.OCCLUSION, hand, 0.02, share=0.2, blind_s=0.3), 0.02, noise=0.005)
    seen = line(sensors.OUTLIERS, seen, 0.02, share=0.03, size=0.2)
    turn = np.linspace(0, 0.02, 200)
    return [
        Panel("A gyroscope at rest", "averaging time [s]", "Allan deviation [rad/s]", [
            Curve("white noise only", *only_white, "blue"), Curve("all three terms", *whole, "orange")],
            logarithmic=True),
        Panel("One line of a depth camera", "pixel", "depth [m]", [
            Curve("true", pixels, scene, "gray"), Curve("read; 0: none", pixels, depth, "orange", dots=True)]),
        Panel("A tracked hand", "time [s]", "position [m]", [
            Curve("true", times, hand, "gray"), Curve("tracked", times, seen, "orange", dots=True)]),
        Panel("An encoder of 12 bits", "true angle [rad]", "reading [rad]", [
            Curve("true", turn, turn, "gray"),
            Curve("read", turn, line(sensors.QUANTISATION, turn, step=2 * np.pi / 4096), "orange")]),
    ]  # fmt: skip


def contact_and_object() -> list[Panel]:
    """Returns the panels of contacts."""
    along = np.linspace(0, 1, 300)
    place = np.stack([along, 0 * along + 0.02], axis=1)[:, None]
    waves = line(contact.FRICTION_WAVES, 0 * along + 0.5, seen={"place": place}, amplitude=0.3, wavelength_m=0.2)
    patches = line(environments.PATCHES, 0 * along + 0.5, seen={"place": place}, spread=0.25, size_m=0.15)
    speed = np.linspace(0, 3, 200)
    bounce = line(contact.RESTITUTION, 0 * speed + 0.8, seen={"velocity": speed[:, None]}, fall=0.25)
    return [
        Panel("Friction along a floor", "place [m]", "friction coefficient [1]", [
            Curve("as modelled", along, 0 * along + 0.5, "gray"),
            Curve("waves", along, waves, "blue"), Curve("patches", along, patches, "orange")]),
        Panel("Faster impacts bounce less", "speed [m/s]", "restitution [1]", [
            Curve("as modelled", speed, 0 * speed + 0.8, "gray"), Curve("fall 0.25", speed, bounce, "orange")]),
    ]  # fmt: skip


def environment() -> list[Panel]:
    """Returns the panels of the environment."""
    times = np.arange(0, 20, 0.05)
    windy = line(environments.WIND, 0 * times, 0.05, steady=1.0, gust=0.5, tau_s=1.0)
    pushed = line(environments.PUSHES, 0 * times, 0.05, rate_hz=0.3, strength=3.0, length_s=0.3)
    angle = np.linspace(-2, 2, 200)
    still = {"position": angle[:, None], "velocity": 0 * angle[:, None]}
    cable = line(environments.CABLE, 0 * angle, seen=still, stiffness=0.2, slack=0.5)
    warmth = np.linspace(-20, 30, 101)
    nominal = np.ones((1, 3))
    causes = {"thinning_per_k": 0.02, "offset_per_k": 0.01, "weakening_per_k": 0.004}
    moved = np.concatenate([run(environments.TEMPERATURE, nominal, 1.0, warmth_k=warm, **causes) for warm in warmth])
    hours = np.arange(0, 24, 0.1)
    light = line(environments.LIGHT, 0 * hours + 1.0, 360.0, share=0.6, clock_s=0.0)
    return [
        Panel("Wind and pushes", "time [s]", "force [N]", [
            Curve("pushes", times, pushed, "blue"), Curve("wind", times, windy, "orange")]),
        Panel("A cable that is taut beyond 0.5 rad", "angle [rad]", "force [N·m]", [Curve("", angle, cable, "orange")]),
        Panel("One cause, three effects", "warmth [K]", "as a share of nominal [1]", [
            Curve("friction", warmth, moved[:, 0], "orange"), Curve("offset", warmth, moved[:, 1], "violet"),
            Curve("battery", warmth, moved[:, 2], "blue")]),
        Panel("A room with a window", "time of day [h]", "light [1]", [Curve("", hours, light, "orange")]),
    ]  # fmt: skip


def human() -> list[Panel]:
    """Returns the panels of people."""
    times = np.linspace(0, 3.5, 150)
    few = partners(ADULTS, 2, np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    reach = np.stack([reach_share(few, time) for time in times])
    reaches = [
        Curve(f"person {row // 4}" if row % 4 == 0 else "", times, reach[:, row], COLOURS[row // 4])
        for row in range(12)
    ]
    many = partners(ADULTS, 2, np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12))
    reaction = Curve("one trial each", many.person.astype(float), many.reaction_s, "orange", dots=True)
    return [
        Panel("Four reaches of three people", "time after the cue [s]", "share of the way [1]", reaches),
        Panel("People differ, and so do their trials", "person", "reaction time [s]", [reaction]),
    ]


def spread() -> list[Panel]:
    """Returns the panel of a fleet."""
    robot = np.repeat(np.arange(20.0), 12)
    knobs = {"robot": robot[:, None], "fleet": np.full((240, 1), 0.15), "trial": np.full((240, 1), 0.03)}
    draws = Draws(1, np.arange(240, dtype=np.uint64))
    context, signal = LayerContext(0.01, draws), np.ones((240, 1))
    factor = environments.SPREAD.act(environments.SPREAD.begin(signal, knobs, context), signal, knobs, context)[1][:, 0]
    dots = Curve("one trial each", robot, factor, "orange", dots=True)
    return [Panel("Twenty robots of one fleet", "robot", "factor on a parameter [1]", [dots])]


PICTURES = {
    "actuator": (
        actuator,
        "Torque over speed, friction over velocity, a command through drives, torque of a hot motor",
    ),
    "latency": (latency, "Delayed and lost commands, and the age of commands over time"),
    "sensor": (sensor, "Allan deviation of a gyroscope, a line of depth, a tracked hand, a quantised angle"),
    "contact-and-object": (contact_and_object, "Friction along a floor, restitution over speed"),
    "environment": (environment, "Wind and pushes, pull of a cable, effects of temperature, light by hour"),
    "human": (human, "Reaches of three people, reaction times of twelve"),
    "spread": (spread, "Factors of twenty robots in twelve trials each"),
}


if __name__ == "__main__":
    for name, (make, label) in PICTURES.items():
        write(HERE / f"{name}.svg", label, make())
