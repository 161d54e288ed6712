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

from dataclasses import replace
from typing import Any

import gymnasium
import mujoco
import numpy as np

# ranges: begin (written by gapless; the rest of the file is the same for all)
from gapless.core.distribution import Correlation, Range
from gapless.core.distribution.ranges import draw_ranges
from gapless.randomize.export.model_edits import FieldEdit, edit_fields

RANGES: tuple[Range, ...] = ()
CORRELATIONS: tuple[Correlation, ...] = ()
EDITS: tuple[FieldEdit, ...] = ()
READINGS: tuple[str, ...] = ()
DERIVED = False
# ranges: end


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
        self._edits = [self._find_places(edit) for edit in EDITS]
        self._nominal = {edit.field: self._field(edit.field).copy() for edit in EDITS}
        self._is_late = bool(self._nominal.keys() & {"signal.delay_s", "signal.target_offset"})
        if self._is_late and (env.action_space.shape or (0,))[0] != self.model.nu:
            text = f"give an environment whose action is the controls of all {self.model.nu} actuators"
            raise ValueError(f"delays act on controls: {text}")
        self._actions: list[np.ndarray] = []
        self.parameters: dict[str, float] = {}
        self._draw("robot", "episode", "step")

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Draws, writes the model and resets the environment."""
        self._draw("episode", "step")
        self._write()
        self._actions = []
        observation, info = self.env.reset(**options)
        return self._add_reading_errors(observation), info | {"parameters": dict(self.parameters)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment with the action that arrives now."""
        if any(item.per == "step" for item in RANGES):
            self._draw("step")
            self._write()
        arrived = self._delay_action(np.asarray(action, dtype=np.float64)) if self._is_late else action
        observation, reward, terminated, truncated, info = self.env.step(arrived)
        shown = self._add_reading_errors(observation)
        return shown, reward, terminated, truncated, info | {"parameters": dict(self.parameters)}

    def _draw(self, *levels: str) -> None:
        drawn = draw_ranges([item for item in RANGES if item.per in levels], CORRELATIONS, self.rng, 1)
        self.parameters |= {target: float(values[0]) for target, values in drawn.items()}

    def _write(self) -> None:
        """Puts the model back as it was written, and what was drawn into it."""
        drawn = {target: np.array([value]) for target, value in self.parameters.items()}
        for name, values in edit_fields(self._nominal, self._edits, drawn).items():
            self._field(name)[:] = values[0]
        if DERIVED:
            mujoco.mj_setConst(self.model, self.env.unwrapped.data)  # type: ignore[attr-defined]

    def _field(self, name: str) -> np.ndarray:
        if name.startswith("signal."):
            return self._signals[name]
        return getattr(self.model.opt, name[4:]) if name.startswith("opt.") else getattr(self.model, name)

    def _find_places(self, edit: FieldEdit) -> FieldEdit:
        """Returns an edit with its places in this model: by the names of elements, or as they are without a name."""
        places: list[tuple[int, ...]] = []
        for (kind, name), place in zip(edit.elements, edit.places, strict=True):
            found = mujoco.mj_name2id(self.model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name) if name else 0
            if found < 0:
                text = "these ranges are for another model; make them again for this one"
                raise ValueError(f"the environment's model has no {kind} {name!r}: {text}")
            if edit.field.startswith(("dof_", "qpos")):
                found = int((self.model.jnt_dofadr if edit.field.startswith("dof_") else self.model.jnt_qposadr)[found])
            places.append((found, *place[1:]) if name else place)
        return replace(edit, places=tuple(places))

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
