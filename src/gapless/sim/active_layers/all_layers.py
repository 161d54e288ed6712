"""All layers that are on in a simulation.

Commands pass their layers once per control interval, before play, delay and lag; efforts in every physics step; wind
and pushes, readings, and fields of the model that depend on place or time once per control interval.
"""

import mujoco
import numpy as np
from mujoco.batch import Batch

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.active_layers.active_layer import ActiveLayer, Ids
from gapless.sim.active_layers.model_layers import ModelLayers
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.draws import Bits, Draws
from gapless.sim.realism.layer import SIGNAL_KINDS, LayerContext
from gapless.sim.realism.layers.environment import TEMPERATURE
from gapless.sim.targets.drive import driven_joint, is_filter
from gapless.sim.targets.target import Fields

SEED = 0  # of all draws: worlds differ by their identity, and robot 7 of a fleet is the same in every simulation


class ActiveLayers:
    """The layers that are on, in the order in which signals pass them."""

    def __init__(self, blueprint: CompiledProject, batch: Batch, fields: Fields, place: int | None) -> None:
        """Puts `fields.active_layers` in order; see `Simulation` for `place`."""
        model, num_worlds = blueprint.model, fields.num_worlds
        self._step_s, self._interval_s = float(model.opt.timestep), blueprint.interval_s
        self._num_substeps, self._fields = blueprint.num_substeps, fields
        self._draws = Draws(SEED, np.arange(num_worlds, dtype=np.uint64), median=True)
        self._count = 0
        self.any = bool(fields.active_layers)
        on = {
            kind: [one for one in fields.active_layers.values() if one.layer.acts_on == kind] for kind in SIGNAL_KINDS
        }
        commands, readings = np.arange(model.nu), np.arange(len(blueprint.project.measurements))
        self.on_commands = [one.attach(commands) for one in on["command"]]
        self.on_readings = [one.attach(readings) for one in on["reading"]]
        on_efforts = on["effort"]
        joints, forces = (_collect_columns(on_efforts, kind) for kind in ("joint", "body"))
        on_joints = [one.attach(joints) for one in on_efforts if one.kind == "joint"]
        self.on_efforts = [one for one in on_joints if not one.layer.is_weather]
        self._weather = [one for one in on_joints if one.layer.is_weather]
        self._pushes = [one.attach(forces) for one in on_efforts if one.kind == "body"]
        of_drive = [one.layer for one in self.on_efforts if not one.layer.adds or "load" in one.layer.needs]
        self._drive_force = _DriveForce(fields, batch, joints, of_drive[0].name) if of_drive else None
        self._address, self._dofs = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
        self._control, self._qpos, self._qvel = (batch.bind(name) for name in ("ctrl", "qpos", "qvel"))
        self._joint_force = batch.bind("qfrc_applied") if on_joints else None
        self._body_force = batch.bind("xfrc_applied") if self._pushes else None
        self._bodies, self._axes = np.divmod(forces, 3)
        self._weather_force, self._calm = np.zeros((num_worlds, len(joints))), np.zeros((num_worlds, len(forces)))
        self.push = np.zeros((num_worlds, model.nv))  # forces on degrees of freedom besides those of layers [N·m, N]
        self._on_model = ModelLayers(blueprint, batch, fields, place)
        self._last_reading: Array | None = None

    def update(self, ids: Ids) -> None:
        """Reads the knobs of some worlds, and writes to the model what follows from them."""
        if self._drive_force is not None:
            self._drive_force.update()
        self._on_model.update(ids, self._draws)

    def reset(self, ids: Ids, rng: np.random.Generator) -> None:
        """Gives some worlds other random numbers, for a run that begins."""
        worlds = self._draws.worlds.copy()
        worlds[ids] = rng.integers(1 << 63, size=len(ids), dtype=np.uint64)
        self._draws = Draws(SEED, worlds)
        self._on_model.begin(ids, self._draws)

    def begin_prediction(self, identity: Bits | None) -> None:
        """Begins predictions of all worlds with draws of these identities, (num_worlds,); with medians for None."""
        worlds = self._draws.worlds if identity is None else identity
        self._draws, self._count = Draws(SEED, worlds, median=identity is None), 0
        self.push = np.zeros_like(self.push)
        self._on_model.begin(None, self._draws)

    def draw_noise(self, num_columns: int) -> Array:
        """Returns standard normal numbers of this control interval, (num_worlds, num_columns)."""
        return self._draws.at(self._count).normal("stated noise", num_columns)

    def begin(self, resting: Array, ids: Ids | None) -> None:
        """Begins layers on commands and efforts in some worlds, or all; `resting`, (num_worlds, nu), was in force."""
        context = LayerContext(self._interval_s, self._draws)
        for layer in self.on_commands:
            layer.begin(resting, context, ids)
        for layer in self._weather:
            layer.begin(np.zeros_like(self._weather_force), context, ids)
        for layer in self._pushes:
            layer.begin(self._calm, context, ids)
        if self.on_efforts:
            given, effort = self._joint_state(resting)
            for layer in self.on_efforts:
                layer.begin(effort, LayerContext(self._step_s, self._draws, load=effort, **given), ids)

    def apply_to_command(self, sent: Array) -> Array:
        """Returns commands after their layers, (num_worlds, nu); to be called once per control interval."""
        self._count += 1
        return _pass_through(self.on_commands, sent, LayerContext(self._interval_s, self._draws.at(self._count)))

    def apply_to_past(self, history: Array) -> Array:
        """Returns past commands after their layers, (num_worlds, num_past, nu); they begin with the oldest."""
        out = history.copy()
        for layer in self.on_commands:
            layer.begin(out[:, 0], LayerContext(self._interval_s, self._draws))
            for k in range(out.shape[1]):
                out[:, k] = layer.act(out[:, k], LayerContext(self._interval_s, self._draws.at(k)))
        return out

    def apply_to_surroundings(self) -> None:
        """Pushes bodies and changes the model as place and time ask for; once per control interval."""
        context = LayerContext(self._interval_s, self._draws.at(self._count))
        if self._body_force is not None:
            self._body_force[:, self._bodies, self._axes] = _pass_through(self._pushes, self._calm, context)
        if self._weather and self._joint_force is not None:
            self._weather_force = _pass_through(self._weather, np.zeros_like(self._weather_force), context)
            self._joint_force[:, self._dofs] = self._weather_force + self.push[:, self._dofs]
        self._on_model.step(context.draws)

    def apply_to_efforts(self, substep: int) -> None:
        """Adds to the efforts of joints what layers make of them; before each physics step, controls being set."""
        assert self._joint_force is not None
        draws = self._draws.at(self._count * self._num_substeps + substep)
        given, before = self._joint_state(self._control)
        effort = before
        for layer in self.on_efforts:
            effort = layer.act(effort, LayerContext(self._step_s, draws, load=effort, **given))
        self._joint_force[:, self._dofs] = (effort - before) + self._weather_force + self.push[:, self._dofs]

    def begin_readings(self, reading: Array, ids: Ids) -> Array:
        """Returns the readings when some worlds begin; those of the others stay as they were."""
        context = LayerContext(self._interval_s, self._draws.at(self._count), **self._warmth())
        some = None if len(ids) == len(reading) else ids
        for layer in self.on_readings:
            layer.begin(reading, context, some)
            reading = layer.act(reading, context, some)
        if self._last_reading is None:
            self._last_reading = reading
        self._last_reading = self._last_reading.copy()
        self._last_reading[ids] = reading[ids]
        return self._last_reading.copy()

    def apply_to_reading(self, reading: Array) -> Array:
        """Returns readings after their layers, (num_worlds, num_measurements); once per control interval."""
        context = LayerContext(self._interval_s, self._draws.at(self._count), **self._warmth())
        self._last_reading = _pass_through(self.on_readings, reading, context)
        return self._last_reading.copy()

    def _joint_state(self, control: Array) -> tuple[dict[str, Array], Array]:
        """Returns `position` and `velocity`, and what drives exert, (num_worlds, num_joints) each."""
        given = {"position": self._qpos[:, self._address], "velocity": self._qvel[:, self._dofs]}
        force = self._drive_force
        return given, force.compute(**given, control=control) if force else np.zeros_like(given["position"])

    def _warmth(self) -> dict[str, Array]:
        """Returns how warm it is: as `temperature` says, or its typical value."""
        if not any("warmth_k" in one.layer.needs for one in self.on_readings):
            return {}
        said = [one.values for one in self._fields.active_layers.values() if one.layer is TEMPERATURE]
        return {"warmth_k": (said or [TEMPERATURE.typical(self._fields.num_worlds)])[0]["warmth_k"]}


def _collect_columns(layers: list[ActiveLayer], kind: str) -> Ids:
    """Returns all columns of a kind that a layer acts on."""
    return np.array(sorted({int(column) for one in layers if one.kind == kind for column in one.columns}), np.intp)


def _pass_through(layers: list[ActiveLayer], signal: Array, context: LayerContext) -> Array:
    """Returns a signal, (num_worlds, num_columns), after a step of some layers."""
    for layer in layers:
        signal = layer.act(signal, context)
    return signal


class _DriveForce:
    """What drives exert at some joints, as the engine will compute it: layers on efforts act on it.

    force = gain u + bias0 + bias1 length + bias2 speed, within the limits.
    """

    def __init__(self, fields: Fields, batch: Batch, joints: Ids, wanted_by: str) -> None:
        """Finds the actuators of joints; refuses drives of other kinds: a DC motor has torque curves of its own."""
        model = fields.model
        self._fields, self._batch = fields, batch
        found = [(a, list(joints).index(j)) for a in range(model.nu) if (j := driven_joint(model, a)) in joints]
        biases = (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE)
        for actuator, _ in found:
            known = model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
            known &= mujoco.mjtBias(int(model.actuator_biastype[actuator])) in biases
            known &= model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_NONE or is_filter(model, actuator)
            if not known:
                name = model.actuator(actuator).name
                text = f"the layer {wanted_by} needs a motor or servo whose force is known; {name} is of another kind"
                hint = f"use what the engine has for it, such as actuator/{name}/motorconst of a dcmotor"
                raise InputError(f"{text}: {hint}")
        self.ids = np.array([a for a, _ in found], np.intp)
        self._joint = np.array([k for _, k in found], np.intp)
        self._gear = model.actuator_gear[self.ids, 0]
        self._to_joints = np.zeros((len(found), len(joints)))
        self._to_joints[np.arange(len(found)), self._joint] = self._gear
        self._lagging = [(k, int(model.actuator_actadr[a])) for k, (a, _) in enumerate(found) if is_filter(model, a)]
        limited = model.actuator_ctrllimited[self.ids].astype(bool)
        self._least_command = np.where(limited, model.actuator_ctrlrange[self.ids, 0], -np.inf)
        self._most_command = np.where(limited, model.actuator_ctrlrange[self.ids, 1], np.inf)
        self.update()

    def update(self) -> None:
        """Reads the gains and limits in force."""
        fields, ids, gear = self._fields, self.ids, self._gear
        if "actuator_gaintype" in fields.expanded and np.any(
            fields.of("actuator_gaintype")[:, ids] != mujoco.mjtGain.mjGAIN_FIXED.value
        ):
            raise InputError("a servo with a speed limit (actuator/NAME/speed) has a torque curve: drop the layer's")
        self._gain = fields.current("actuator_gainprm")[:, ids, 0].copy()
        bias = fields.current("actuator_biasprm")[:, ids]
        self._bias, self._spring, self._damper = bias[:, :, 0].copy(), bias[:, :, 1] * gear, bias[:, :, 2] * gear
        limited = fields.current("actuator_forcelimited")[:, ids].astype(bool)
        force = fields.current("actuator_forcerange")[:, ids]
        self._least_force = np.where(limited, force[:, :, 0], -np.inf)
        self._most_force = np.where(limited, force[:, :, 1], np.inf)
        self._has_bias = bool(self._bias.any() or self._spring.any() or self._damper.any())

    def compute(self, position: Array, velocity: Array, control: Array) -> Array:
        """Returns what drives exert, (num_worlds, num_joints) [N·m, N], if `control`, (num_worlds, nu), arrives."""
        sent = np.clip(control[:, self.ids], self._least_command, self._most_command)
        for k, address in self._lagging:
            sent[:, k] = self._batch.bind("act")[:, address]
        force = self._gain * sent
        if self._has_bias:
            force += self._bias + self._spring * position[:, self._joint] + self._damper * velocity[:, self._joint]
        np.clip(force, self._least_force, self._most_force, out=force)
        return force @ self._to_joints
