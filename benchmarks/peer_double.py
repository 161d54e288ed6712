"""The peer on the double pendulum: windows from the smoothed state, as they are scored."""

from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import score
import sets
from mujoco import sysid
from peer import Task, bias_parameter, delay_parameter, positive, set_joint
from peer_pendulum import cut_pieces

WINDOW_S = 0.25  # of 0.25 and 0.5 s, the better for the peer on the runs that it has not seen
LINKS = ("upper", "lower")


def parameters(spec: mujoco.MjSpec) -> sysid.ParameterDict:
    """Returns centre and inertia of both links, mass of the lower, armature, friction and bias of both joints, delay.

    The mass of the upper link shows only together with where its centre is.
    """
    params = sysid.ParameterDict()
    for link in LINKS:
        depth, inertia = -spec.body(link).ipos[2], spec.body(link).inertia[0]
        params.add(positive(f"depth {link}", depth, 0.5 * depth, 1.5 * depth, partial(_set_depth, link)))
        params.add(positive(f"inertia {link}", inertia, 0.02 * inertia, 8.0 * inertia, partial(_set_inertia, link)))
    mass = spec.body("lower").mass
    params.add(positive("mass lower", mass, 0.5 * mass, 2.0 * mass, _set_mass))
    for joint in score.DOUBLE_JOINTS:
        fields = (("armature", 0.0022, 0.0002, 0.02), ("damping", 0.01, 1e-4, 0.2), ("frictionloss", 0.1, 1e-3, 0.5))
        for field, start, low, high in fields:
            params.add(positive(f"{field} {joint}", start, low, high, partial(set_joint, joint, field)))
        params.add(bias_parameter(joint, 0.15))
    params.add(delay_parameter(spec, 0.002, 0.02))
    return params


def _set_depth(link: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes how far below its joint a link's centre of mass is."""
    spec.body(link).ipos[2] = -value


def _set_inertia(link: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes a link's moment of inertia about the joint's axis; that along the link shows nowhere."""
    spec.body(link).inertia = [value, value, min(0.0006, 1.9 * value)]


def _set_mass(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the lower link's mass."""
    spec.body("lower").mass = value


def task(logs: list[Path]) -> Task:
    """Returns the set-up on some runs, by path: values of data sheets to start from, plausible friction."""
    stock = mujoco.MjSpec.from_file(str(sets.data_folder() / "double_pendulum" / "model.xml"))
    params = parameters(stock)
    pieces, starts = cut_pieces([score.double_pendulum_run(path) for path in logs], WINDOW_S)
    return Task(stock.copy(), stock, params, pieces, starts, np.array([30.0, 30.0]))
