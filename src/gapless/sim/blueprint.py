"""A project compiled for simulation: what does not depend on the number of worlds."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.errors import ProjectError
from gapless.core.parameters import ParameterSpace
from gapless.project.model import load_spec
from gapless.project.records import Project
from gapless.sim.measurements import MeasurementReader


@dataclass(frozen=True)
class CompiledProject:
    """A project compiled for simulation."""

    project: Project
    model: mujoco.MjModel  # the compiled model; its time step divides the control interval
    num_substeps: int  # physics steps per control interval
    reader: MeasurementReader  # turns engine state into the project's measurements
    actuator_ids: tuple[int, ...]  # actuator of each command, (num_commands,)

    @property
    def interval_s(self) -> float:
        """Length of a control interval [s]."""
        return 1.0 / self.project.rate_hz

    def command_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the smallest and largest command that the model accepts, (num_commands,) each."""
        ids = list(self.actuator_ids)
        limited = self.model.actuator_ctrllimited[ids].astype(bool)
        low = np.where(limited, self.model.actuator_ctrlrange[ids, 0], -np.inf)
        high = np.where(limited, self.model.actuator_ctrlrange[ids, 1], np.inf)
        return low, high


def compile_project(project: Project, *, max_timestep_s: float | None = None) -> CompiledProject:
    """Returns the project's model made ready to step.

    The time step is the largest that divides the control interval and exceeds neither the model's own nor
    `max_timestep_s`.

    Raises:
        ProjectError: If the model does not compile.
    """
    if mujoco.get_mju_user_warning() is None:  # else it writes to the screen and to a file in the working folder
        mujoco.set_mju_user_warning(lambda message: None)  # each world counts its own warnings, and verbs tell of them
    spec = editable_spec(project)
    try:
        model = spec.compile()
    except ValueError as error:
        text = f"the model does not compile: {str(error).splitlines()[0]}; correct the model: {project.model_path}"
        raise ProjectError(text) from None
    limit_s = min(model.opt.timestep, max_timestep_s or model.opt.timestep)
    num_substeps = max(1, int(np.ceil(1.0 / (project.rate_hz * limit_s) - 1e-6)))
    model.opt.timestep = 1.0 / (project.rate_hz * num_substeps)
    actuator_ids = tuple(model.actuator(item.actuator).id for item in project.commands)
    return CompiledProject(project, model, num_substeps, MeasurementReader.of(project, model), actuator_ids)


def editable_spec(project: Project) -> mujoco.MjSpec:
    """Returns the project's model such that centres and inertias of its bodies may be moved per world.

    Geoms without a name get one, so that their friction has one: of their body, or `BODY_2` and so on.
    """
    spec = load_spec(project.model_path)
    taken = {geom.name for geom in spec.geoms}
    for body in spec.bodies[1:]:
        body.simple = False
        for geom in body.geoms if body.name else []:
            if not geom.name:
                numbered = (f"{body.name}_{number}" for number in range(2, len(taken) + 3))
                geom.name = next(name for name in (body.name, *numbered) if name not in taken)
                taken.add(geom.name)
    return spec


def with_finer_step(blueprint: CompiledProject, factor: int) -> CompiledProject:
    """Returns the same project with a time step `factor` times smaller."""
    return compile_project(blueprint.project, max_timestep_s=blueprint.model.opt.timestep / factor)


EMPTY_SPACE = ParameterSpace(())
