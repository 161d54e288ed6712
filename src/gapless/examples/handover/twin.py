"""The twin of the handover example: the arm is as modelled; people differ, hesitate, and change their grip."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start, Step
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.realism.human import ADULTS, Partners, partners, reach_share
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve

NUM_PEOPLE = 8  # in the group of one seed; they take turns
PULLED_M = 0.003  # a parcel this far out of the hand has been pulled at: the grip changes
LET_GO_M = 0.045  # and this far out nobody holds it any more
ASK, ASKED_M = 3, 0.175  # the command that asks, and what counts as asked


def make(seed: int = 0, num_worlds: int = 1) -> "Room":
    """Returns the twin of one seed: one group of people. It shows measurements and outcomes only."""
    return Room(Path(__file__).parent, num_worlds, seed)


class Room:
    """A world in which a robot meets people. Every run is a trial of the next person of the group."""

    source = "twin"

    def __init__(self, directory: Path, num_worlds: int, seed: int) -> None:
        """Builds the arm, and the place that people come to."""
        project = load_project(directory)
        blueprint = compile_project(project)
        self.num_worlds, self.rate_hz = num_worlds, project.rate_hz
        self.command_names, self.measurement_names = project.command_names, project.measurement_names
        self.__seed, self.__turn = seed, 0
        self.__people = partners(ADULTS, seed, np.arange(num_worlds), np.arange(num_worlds))
        lag = resolve("actuator/partner/lag", project, blueprint.model)
        space = ParameterSpace((lag.make_parameter(0.0, lag.nominal),))
        self.__world = Simulation(blueprint, num_worlds, space, noisy=True)
        self.__world.set_parameters(np.full((num_worlds, 1), 0.02))  # hands follow `__reach`, hardly later
        self.__limits = blueprint.command_limits()
        self.__parcel = blueprint.model.joint("parcel")
        partner, hand = blueprint.model.actuator("partner"), blueprint.model.body("hand")
        self.__arm = partner.gainprm[0], -partner.biasprm[2], hand.subtreemass[0]
        self.__since_s, self.__from_m, self.__to_m = np.zeros((3, num_worlds))

    def reset(self, start: Start, rng: np.random.Generator, ids: np.ndarray | None = None) -> np.ndarray:
        """Begins anew from `start`, each run with the next person; see `World.reset`."""
        which = np.arange(self.num_worlds) if ids is None else ids
        person = (self.__turn + np.arange(len(which))) % NUM_PEOPLE
        self.__turn += len(which)
        people = partners(ADULTS, self.__seed, person, rng.integers(0, 2**31, len(which)))
        for item in fields(Partners):
            getattr(self.__people, item.name)[which] = getattr(people, item.name)
        for state in (self.__since_s, self.__from_m, self.__to_m):
            state[which] = 0.0
        side_m = start.positions.get("hand_y", 0.0) + people.hand_m[:, 1:2]
        pose = {"hand_y": side_m, "hand_yaw": people.hand_rad[:, 2:]}
        return self.__world.reset(replace(start, positions={**start.positions, **pose}), rng, ids)

    def step(self, requested_command: np.ndarray) -> Step:
        """Advances one control interval; see `World.step`."""
        applied = np.clip(requested_command, *self.__limits)
        self.__hold()
        seen = applied.copy()
        seen[:, ASK] = self.__reach(applied[:, ASK])
        return Step(self.__world.step(seen).measured, applied)

    def __reach(self, asked_m: np.ndarray) -> np.ndarray:
        """Returns where each person takes the hand, (num_worlds,) [m]: towards the robot if asked, else back."""
        people = self.__people
        there_m = asked_m + people.reach_m - ADULTS.reach_m.median + people.hand_m[:, 0]
        now_m = self.__from_m + (self.__to_m - self.__from_m) * reach_share(people, self.__since_s)
        to_m = np.where(asked_m > ASKED_M, np.clip(there_m, 0.0, 0.55), 0.0)
        changed = to_m != self.__to_m
        self.__from_m[changed], self.__to_m[changed] = now_m[changed], to_m[changed]
        self.__since_s = np.where(changed, 0.0, self.__since_s) + 1 / self.rate_hz
        before, at, after = (reach_share(people, self.__since_s + later_s) for later_s in (-0.02, 0.0, 0.02))
        speed, change = (after - before) / 0.04, (after - 2 * at + before) / 0.02**2
        kp, kd, mass = self.__arm  # what a hand must aim at so that its arm brings it where it shall be
        return self.__from_m + (self.__to_m - self.__from_m) * (at + kd / kp * speed + mass / kp * change)

    def __hold(self) -> None:
        """Sets how firmly each person holds the parcel now."""
        people, out_m = self.__people, self.__world.batch.bind("qpos")[:, self.__parcel.qposadr[0]]
        grip_n = np.where(out_m > PULLED_M, people.pulled_grip_n, people.grip_n)
        self.__world.fields.of("dof_frictionloss")[:, self.__parcel.dofadr[0]] = np.where(out_m > LET_GO_M, 0.5, grip_n)
