"""The Crazyflie, a quadrotor of 27 g: how slow its motors are, found from an accelerometer.

    python benchmarks/crazyflie.py

makes a project folder from a real flight as its owner would, runs `identify` on it, and scores what it found on the
last third of the flight, which was held out: by the corrected model in the engine, and by numpy alone.

The commands are thrusts, from the logged duty cycles by the published curve, because a mapping in gapless.yaml is
linear. Nothing measures where the quadrotor is, and nothing needs to: what an accelerometer at its centre feels along
the rotors' axis is their thrust over the mass, however it flies. The rate is 500 Hz, that of the commands in the log.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import yaml
from sets import data_folder
from tables import Bar, Table, markdown

from gapless.core.results import IdentifyResult
from gapless.identify.verb import identify

MASS_KG, ARM_M, GRAVITY = 0.027, 0.028, 9.81
INERTIA = (1.0286e-5, 1.1052e-5, 1.9546e-5)  # published [kg·m²]
CURVE_N = (0.02127, -0.01118, 0.12013)  # published: thrust of one motor by its duty cycle
YAW_M = 0.006  # torque about the rotor per thrust; of propellers of this size
PLACES = ((1, -1), (-1, -1), (-1, 1), (1, 1))  # of the motors, in arms: front right, back right, back left, front left
IN_THE_AIR_S = (7.0, 41.9)  # of log10; before it stands on the floor, after it falls on its back
RATE_HZ = 500.0
HELD_OUT = "flight_end"
LISTS = {"gain and lag": ("gain", "lag"), "gain, lag and delay": ("gain", "lag", "delay")}
LAG_S = 0.075  # near what others found
WARM_S = 1.0  # at the beginning of what is scored, for lags to forget how they started

QUADROTOR = """<mujoco model="crazyflie">
  <option integrator="implicitfast" timestep="0.002" gravity="0 0 -9.81"/>
  <worldbody>
    <body name="quad">
      <freejoint name="quad"/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia}"/>
      <site name="centre"/>
      {sites}
    </body>
  </worldbody>
  <actuator>
    {motors}
  </actuator>
  <sensor><accelerometer name="accelerometer" site="centre"/></sensor>
</mujoco>
"""


@dataclass(frozen=True)
class Flight:
    """A stretch of the log in the air."""

    times_s: np.ndarray
    """(rows,) [s]."""
    thrusts: np.ndarray
    """(rows, 4) what was asked of each motor [N]."""
    acceleration: np.ndarray
    """(rows,) what the accelerometer felt along the rotors' axis [g]."""

    def between(self, begin_s: float, end_s: float) -> "Flight":
        """Returns a part of it."""
        keep = (self.times_s >= begin_s) & (self.times_s < end_s)
        return Flight(self.times_s[keep], self.thrusts[keep], self.acceleration[keep])


def read_flight() -> Flight:
    """Returns the thrust flight, as logged at about 1 kHz; duty cycles have become thrusts."""
    with np.load(data_folder() / "crazyflie" / "log10.npz") as data:
        duty = data["motor_pwm_u16"] / 65535.0
        thrusts = CURVE_N[0] + CURVE_N[1] * duty + CURVE_N[2] * duty**2
        return Flight(data["t"], thrusts, data["acc_g"][:, 2]).between(*IN_THE_AIR_S)


def parts() -> dict[str, Flight]:
    """Returns the first two thirds of the flight, and the rest, which is held out."""
    flight = read_flight()
    begin_s, end_s = IN_THE_AIR_S
    cut_s = begin_s + 2 * (end_s - begin_s) / 3
    return {"flight_begin": flight.between(begin_s, cut_s), HELD_OUT: flight.between(cut_s, end_s)}


def model_xml() -> str:
    """Returns the quadrotor as its makers describe it, with motors that obey at once."""
    sites, motors = [], []
    for k, (x, y) in enumerate(PLACES):
        sites.append(f'<site name="m{k + 1}" pos="{x * ARM_M} {y * ARM_M} 0"/>')
        yaw = YAW_M * (1 if k % 2 else -1)
        motors.append(f'<motor name="m{k + 1}" site="m{k + 1}" gear="0 0 1 0 0 {yaw}"/>')
    inertia = " ".join(str(value) for value in INERTIA)
    return QUADROTOR.format(mass=MASS_KG, inertia=inertia, sites="".join(sites), motors="".join(motors))


def make_project(place: Path, fields: tuple[str, ...] | None = ("gain", "lag")) -> Path:
    """Makes the project folder; the parameters are fields of all motors together, or `auto` for None."""
    (place / "logs").mkdir(parents=True, exist_ok=True)
    content = {
        "gapless": 1,
        "name": "Crazyflie",
        "model": "robot.xml",
        "rate_hz": RATE_HZ,
        "commands": {f"thrust{k + 1}": {"actuator": f"m{k + 1}"} for k in range(4)},
        "measurements": {"acc_z": {"sensor": "accelerometer", "axis": 2, "scale": GRAVITY}},  # logged in g
        "logs": "logs",
        "parameters": [{"target": f"actuator/*/{field}"} for field in fields] if fields else "auto",
    }
    (place / "gapless.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    (place / "robot.xml").write_text(model_xml())
    for name, flight in parts().items():
        columns = {f"thrust{k + 1}": flight.thrusts[:, k] for k in range(4)}
        np.savez(place / "logs" / f"{name}.npz", time_s=flight.times_s, acc_z=flight.acceleration, **columns)
    return place


def thrust_by_hand(flight: Flight, lag_s: float, delay_s: float = 0.0) -> np.ndarray:
    """Returns the sum of the motors' thrusts at every row, (rows,) [N], by numpy alone.

    The thrust of row k is that of the commands before it, each held until the next: y' = u + exp(-h / lag) (y - u).
    """
    times_s = flight.times_s
    index = np.searchsorted(times_s, times_s - delay_s + 1e-9, side="right") - 1
    sent = flight.thrusts.sum(axis=1)[np.clip(index, 0, None)]
    thrust = np.empty(len(times_s))
    thrust[0] = sent[0]
    for k, step_s in enumerate(np.diff(times_s)):
        keep = np.exp(-step_s / lag_s) if lag_s > 0 else 0.0
        thrust[k + 1] = sent[k] + keep * (thrust[k] - sent[k])
    return thrust


def residual_by_hand(flight: Flight, gain: float, lag_s: float, delay_s: float = 0.0) -> float:
    """Returns the root mean square of what filtered commands leave of the measured thrust [N]."""
    left = gain * thrust_by_hand(flight, lag_s, delay_s) - MASS_KG * GRAVITY * flight.acceleration
    return _rms(left[flight.times_s >= flight.times_s[0] + WARM_S])


def residual_of_model(flight: Flight, model: mujoco.MjModel) -> float:
    """Returns the root mean square of what a model leaves of the measured thrust [N]: it flies the commands.

    Its pose and velocity are put back in every step: the accelerometer does not feel them, and nothing measured them.
    """
    data, step_s = mujoco.MjData(model), model.opt.timestep
    times_s = np.arange(flight.times_s[0], flight.times_s[-1] - step_s, step_s)
    rows = np.searchsorted(flight.times_s, times_s + 1e-9, side="right") - 1
    measured = np.interp(times_s + step_s, flight.times_s, flight.acceleration)
    felt = np.empty(len(times_s))
    for k, row in enumerate(rows):
        data.qpos[:], data.qvel[:] = model.qpos0, 0.0
        data.ctrl[:] = flight.thrusts[row]
        mujoco.mj_step(model, data)
        felt[k] = data.sensor("accelerometer").data[2]
    left = MASS_KG * (felt - GRAVITY * measured)
    return _rms(left[times_s >= times_s[0] + WARM_S])


def best_of_class(flight: Flight) -> tuple[float, float, float]:
    """Returns residual [N], lag [s] and gain of the best gain and lag for this very flight, by search over lags."""
    scored = flight.times_s >= flight.times_s[0] + WARM_S
    measured = (MASS_KG * GRAVITY * flight.acceleration)[scored]
    found = []
    for lag_s in np.arange(0.04, 0.12, 0.001):
        thrust = thrust_by_hand(flight, float(lag_s))[scored]
        gain = float(thrust @ measured / (thrust @ thrust))
        found.append((_rms(gain * thrust - measured), float(lag_s), gain))
    return min(found)


def values_of(result: IdentifyResult) -> dict[str, float]:
    """Returns field -> value of the fitted parameters."""
    return {p.target.rpartition("/")[2]: p.value for p in result.parameters}


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def table(say: Callable[[str], None]) -> Table:
    """Fits each list of parameters, and returns what was found and the residuals on what was held out."""
    held = parts()[HELD_OUT]
    written = residual_of_model(held, mujoco.MjModel.from_xml_string(model_xml())), residual_by_hand(held, 1.0, 0.0)
    rows = [["as written", "0", "1", "0", *(f"{1e3 * left:.2f}" for left in written), "-"]]
    bars: list[Bar] = []
    for name, fields in LISTS.items():
        say(name)
        row, lag_s, residual = _fitted(name, fields, held)
        rows.append(row)
        bars = bars or [
            Bar(f"{name}: how far the lag is from 0.075 s", abs(lag_s - LAG_S), 0.01),
            Bar(f"{name}: residual, engine [mN]", 1e3 * residual, 13.5),
        ]
    residual, lag_s, gain = best_of_class(held)
    rows.append(
        ["fitted to what is scored", f"{1e3 * lag_s:.0f}", f"{gain:.3f}", "0", "-", f"{1e3 * residual:.2f}", "-"]
    )
    header = ("parameters", "lag [ms]", "gain", "delay [ms]", "engine [mN]", "numpy [mN]", "CPU [s]")
    title = "Crazyflie: thrust by an accelerometer, last third of a flight, fitted on the rest; root mean square"
    return Table(
        title, header, rows, bars, ("The last row is the best gain and lag for the very flight that is scored.",)
    )


def _fitted(name: str, fields: tuple[str, ...] | None, held: Flight) -> tuple[list[str], float, float]:
    """Returns the row of one list of parameters, its lag [s] and its residual in the engine [N]."""
    with tempfile.TemporaryDirectory() as folder:
        begin_s = time.process_time()
        result = identify(make_project(Path(folder), fields), [HELD_OUT])
        cpu_s = time.process_time() - begin_s
        model = mujoco.MjModel.from_xml_path(str(result.model))
    value = {"delay": 0.0} | values_of(result)
    (lag,) = (p for p in result.parameters if p.target.endswith("lag"))
    by_hand = residual_by_hand(held, value["gain"], value["lag"], value["delay"])
    found = f"{1e3 * lag.value:.1f} [{1e3 * lag.low:.1f}, {1e3 * lag.high:.1f}]"
    residual = residual_of_model(held, model)
    delay = f"{1e3 * value['delay']:.1f}"
    row = [name, found, f"{value['gain']:.3f}", delay, f"{1e3 * residual:.2f}", f"{1e3 * by_hand:.2f}", f"{cpu_s:.0f}"]
    return row, lag.value, residual


def main() -> None:
    """Prints the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(markdown(table(lambda text: None)))


if __name__ == "__main__":
    main()
