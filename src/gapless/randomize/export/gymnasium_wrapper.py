"""A Gymnasium wrapper that trains on ranges that gapless found. It needs numpy, mujoco and gymnasium only.

    env = RandomizedModel(gymnasium.make("MyRobot-v0"), seed=0)

It draws when the environment is reset, writes into `env.unwrapped.model` by the names of joints, bodies, geoms and
actuators, and puts everything else back as the model was written. What is drawn per robot is drawn once for this
wrapper, what is drawn per step before every step. `info["parameters"]` of `reset` and `step` holds what is in force.

Delays and zero offsets of actuators act on the action, which must be the controls of all actuators, in the model's
order and units. A delay that is no whole number of control steps mixes two actions: their mean over the step.
Biases and scales of readings act on the observation, where it is said which element is which reading:
`RandomizedModel(env, observation={"q_elbow": 3})`.
"""

from typing import Any

import gymnasium
import mujoco
import numpy as np

# ranges: begin (written by gapless; the rest of the file is the same for all)
RANGES: list[dict[str, Any]] = []
CORRELATED: list[str] = []
ROOT: list[list[float]] = []
CONSTANTS: list[tuple[Any, ...]] = []
EDITS: list[tuple[Any, ...]] = []
PRODUCT: dict[str, bool] = {}
READINGS: list[str] = []
DERIVED = False
# ranges: end

MAX_DRAWS = 100


class RandomizedModel(gymnasium.Wrapper):
    """Draws the parameters of a MuJoCo model anew, for every episode."""

    def __init__(self, env: gymnasium.Env, seed: int | None = None, observation: dict[str, int] | None = None) -> None:
        """Looks up where everything is; raises ValueError where the environment has another model.

        The environment has `unwrapped.model`, `unwrapped.data` and `unwrapped.dt`, as MuJoCo's have. `observation` has
        reading -> element of the observation that shows it; biases of others are not applied.
        """
        super().__init__(env)
        self.model: mujoco.MjModel = env.unwrapped.model  # type: ignore[attr-defined]
        self.rng = np.random.default_rng(seed)
        self.observation = observation or {}
        unknown = sorted(set(self.observation) - set(READINGS))
        if unknown:
            raise ValueError(f"no reading {unknown[0]!r}; choose from: {', '.join(READINGS) or 'none'}")
        self._signals = {"signal.delay_s": np.zeros(self.model.nu), "signal.target_offset": np.zeros(self.model.nu)}
        self._signals |= {"signal.bias": np.zeros(len(READINGS)), "signal.scale": np.ones(len(READINGS))}
        self._constants = [(field, self._find_index(field, *place), value) for field, place, value in CONSTANTS]
        self._edits = [
            (target, field, tuple(np.transpose([self._find_index(field, *place) for place in places])), knots, table)
            for target, field, places, knots, table in EDITS
        ]
        names = {field for field, *_ in CONSTANTS} | {field for _, field, *_ in EDITS}
        self._nominal = {name: self._field(name).copy() for name in sorted(names)}
        self._is_late = bool(names & {"signal.delay_s", "signal.target_offset"})
        if self._is_late and (env.action_space.shape or (0,))[0] != self.model.nu:
            text = f"give an environment whose action is the controls of all {self.model.nu} actuators"
            raise ValueError(f"delays act on controls: {text}")
        self._actions: list[np.ndarray] = []
        self.parameters: dict[str, float] = {}
        self._draw(("robot", "episode", "step"))

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Draws, writes the model and resets the environment."""
        self._draw(("episode", "step"))
        self._write()
        self._actions = []
        observation, info = self.env.reset(**options)
        return self._add_reading_errors(observation), info | {"parameters": dict(self.parameters)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment with the action that arrives now."""
        if any(item["per"] == "step" for item in RANGES):
            self._draw(("step",))
            self._write()
        arrived = self._delay_action(np.asarray(action, dtype=np.float64)) if self._is_late else action
        observation, reward, terminated, truncated, info = self.env.step(arrived)
        shown = self._add_reading_errors(observation)
        return shown, reward, terminated, truncated, info | {"parameters": dict(self.parameters)}

    def _draw(self, levels: tuple[str, ...]) -> None:
        chosen = [item for item in RANGES if item["per"] in levels]
        for item in chosen:
            if item["target"] not in CORRELATED:
                self.parameters[item["target"]] = draw(self.rng, item)
        group = [item for item in chosen if item["target"] in CORRELATED]
        if group:
            self.parameters.update(draw_together(self.rng, group))

    def _write(self) -> None:
        """Puts the model back as it was written, and then what was drawn into it."""
        for name, nominal in self._nominal.items():
            self._field(name)[:] = nominal
        for field, index, value in self._constants:
            self._field(field)[index] = value
        base = {name: self._field(name).copy() for name in self._nominal}
        for target, field, index, knots, table in self._edits:
            now = np.array([np.interp(self.parameters[target], knots, column) for column in table])
            array, start = self._field(field), base[field][index]
            scaled = array[index] * now / np.where(start == 0, 1.0, start)
            array[index] = np.where(PRODUCT[field] & (start != 0), scaled, array[index] + now - start)
        if DERIVED:
            mujoco.mj_setConst(self.model, self.env.unwrapped.data)  # type: ignore[attr-defined]

    def _field(self, name: str) -> np.ndarray:
        if name.startswith("signal."):
            return self._signals[name]
        return getattr(self.model.opt, name[4:]) if name.startswith("opt.") else getattr(self.model, name)

    def _find_index(self, field: str, kind: str, name: str, index: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the index of a place in a field: by the name of its element, or as it is where it has none."""
        if not name:
            return index
        found = mujoco.mj_name2id(self.model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name)
        if found < 0:
            text = "these ranges are for another model; make them again for this one"
            raise ValueError(f"the environment's model has no {kind} {name!r}: {text}")
        if field.startswith("dof_"):
            found = int(self.model.jnt_dofadr[found])
        if field.startswith("qpos_"):
            found = int(self.model.jnt_qposadr[found])
        return (found, *index[1:])

    def _delay_action(self, action: np.ndarray) -> np.ndarray:
        """Returns the action that arrives now: older ones where it is late, with the offsets of targets."""
        sent = action + self._signals["signal.target_offset"]
        self._actions = [*(self._actions or [sent]), sent]
        late = np.maximum(self._signals["signal.delay_s"], 0.0) / self.env.unwrapped.dt  # type: ignore[attr-defined]
        arrived, last = sent.copy(), len(self._actions) - 1
        for k, steps in enumerate(late):
            whole, share = int(steps), steps - int(steps)
            newer, older = (self._actions[max(last - whole - back, 0)][k] for back in (0, 1))
            arrived[k] = (1 - share) * newer + share * older
        return arrived

    def _add_reading_errors(self, observation: Any) -> Any:
        """Returns the observation with scales and biases where it is said which element is which reading."""
        if not self.observation:
            return observation
        shown = np.array(observation)
        for reading, element in self.observation.items():
            k = READINGS.index(reading)
            shown[element] = self._signals["signal.scale"][k] * shown[element] + self._signals["signal.bias"][k]
        return shown


def draw(rng: np.random.Generator, item: dict[str, Any]) -> float:
    """Returns one value of a range, cut at its ends by drawing again."""
    low, high, mean, std = item["low"], item["high"], item["mean"], item["std"]
    if item["kind"] == "fixed":
        return mean
    if item["kind"] == "uniform":
        return float(rng.uniform(low, high))
    if item["kind"] == "log-uniform":
        return float(np.clip(np.exp(rng.uniform(np.log(low), np.log(high))), low, high))
    if item["kind"] == "beta":
        centre, variance = (mean - low) / (high - low), (std / (high - low)) ** 2
        size = centre * (1 - centre) / variance - 1
        return float(low + (high - low) * rng.beta(centre * size, (1 - centre) * size))
    for _ in range(MAX_DRAWS):
        if item["kind"] == "mixture":
            weights = np.array([part["weight"] for part in item["parts"]])
            part = item["parts"][rng.choice(len(weights), p=weights / weights.sum())]
            value = part["mean"] + part["std"] * rng.standard_normal()
        else:
            value = from_bell(item, rng.standard_normal())
        if low <= value <= high:
            return float(value)
    return float(np.clip(value, low, high))


def draw_together(rng: np.random.Generator, group: list[dict[str, Any]]) -> dict[str, float]:
    """Returns values of correlated ranges; if one is outside its ends, all are drawn again."""
    rows = [CORRELATED.index(item["target"]) for item in group]
    root = np.array(ROOT)[np.ix_(rows, rows)]  # ranges that are drawn at other times do not go along with these
    low, high = (np.array([item[name] for item in group]) for name in ("low", "high"))
    values = low
    for _ in range(MAX_DRAWS):
        bells = root @ rng.standard_normal(len(group))
        values = np.array([from_bell(item, bell) for item, bell in zip(group, bells, strict=True)])
        if ((low <= values) & (values <= high)).all():
            break
    return {item["target"]: float(v) for item, v in zip(group, np.clip(values, low, high), strict=True)}


def from_bell(item: dict[str, Any], bell: float) -> float:
    """Returns a standard normal value as one of a normal or log-normal range."""
    if item["kind"] == "log-normal":
        return float(item["mean"] * np.exp(item["std"] * bell))
    return float(item["mean"] + item["std"] * bell)
