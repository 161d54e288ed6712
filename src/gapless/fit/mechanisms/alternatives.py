"""Sets that single changes of a set do not lead to, and yet may explain as much: what looks alike until it is fitted.

Late commands look like slow drives; a lag looks like a delay until accelerations are large; damping stands in for
stiffness, with everything else at other values; a load at the flange, found piece by piece, is masses, lengths and
inertias of all links; a coarse time step looks like a delay; twice all forces on twice all masses is the same motion.
Slopes at the one are wrong for the other, so each is
begun at a point of its own and fitted with slopes that are measured there.
"""

from collections.abc import Iterator

import numpy as np

from gapless.core.signal import Array
from gapless.fit.mechanisms.linear import MechanismSet, add_mechanism
from gapless.fit.mechanisms.set_fits import SetFit, SetFitter
from gapless.sim.targets.target import split_target

DELAY = "actuator/*/delay"
LATENESS = (DELAY, "actuator/*/lag")
# of drives, tried without where a delay is tried instead
SLOWING_FIELDS = ("lag", "backlash", "armature", "damping", "kd", "frictionloss", "mass", "tip_payload")
DRIVE_FIELDS = ("kp", "gain", "kd", "damping", "frictionloss", "armature", "backlash")  # that all drives may share
DELAY_SIZES = (0.4, 1.2)  # of a delay that is tried in place of slow drives, in typical errors
# mean logarithm of squares above noise [1]: where less is left,
MIN_LEFT = 0.15  # nothing stands in for something else,
MIN_LEFT_LATE = 0.03  # not even one kind of lateness for another
# that are multiplied together
FORCE_FIELDS = ("gain", "kp", "kd", "limit", "damping", "frictionloss", "armature", "load", "mass", "tip_payload")
MIN_SCALED = 3  # of them in a set
AS_WRITTEN = 0.2  # typical errors within which a value may as well be the model's
MAX_FEWER = 8  # mechanisms that are tried in the place of several of their dimension
Start = tuple[MechanismSet, Array]  # a set, and the point at which its fit begins


def list_alternatives(fitter: SetFitter, state: SetFit, left: float) -> list[Start]:
    """Returns the sets to try in place of a state that leaves something, each with the point where its fit begins.

    `left` is the mean logarithm of squares above noise that the state leaves.
    """
    found = [*_fewer_of_each_dimension(fitter, state), *_finer_step(fitter, state), *_other_forces(fitter, state)]
    if left > MIN_LEFT_LATE:
        found += _other_lateness(fitter, state)
    if left > MIN_LEFT:
        found += [*_delay_instead(fitter, state), *_other_drive_faults(fitter, state)]
    return found


def _fields(fitter: SetFitter) -> list[str]:
    return [split_target(mechanism.targets[0]).field for mechanism in fitter.mechanisms]


def _delay_instead(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields sets with late commands in place of slow drives.

    Play, inertia and damping together follow commands much as late ones do, and leave what no single change mends.
    """
    targets, fields = [mechanism.targets[0] for mechanism in fitter.mechanisms], _fields(fitter)
    late = targets.index(DELAY) if DELAY in targets else None
    kept = [k for k in state.chosen if fields[k] not in SLOWING_FIELDS]
    if late is None or late in state.chosen or len(kept) == len(state.chosen):
        return
    for size in DELAY_SIZES:
        point = state.point.copy()
        entry = fitter.mechanisms[late].entries[0]
        point[entry] = size * fitter.problem.typical[entry]
        yield add_mechanism(kept, late), point


def _other_lateness(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields sets with one kind of lateness that is as late as all kinds of the state were together."""
    kinds = {k: m.entries[0] for k, m in enumerate(fitter.mechanisms) if m.targets[0] in LATENESS and not m.tied}
    if len(kinds) < 2 or not set(kinds) & set(state.chosen):
        return
    problem, columns = fitter.problem, list(kinds.values())
    row = problem.rows(state.point[None])[0]
    late_s = float(np.sum(row[columns] - problem.fit.base[columns]))
    rest = [k for k in state.chosen if k not in kinds]
    for kind, column in kinds.items():
        if set(state.chosen) & set(kinds) == {kind}:
            continue
        row[columns] = problem.fit.base[columns]
        row[column] += late_s
        yield add_mechanism(rest, kind), np.clip(problem.point_of(row, state.point[-1]), *problem.bounds)


def _other_drive_faults(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields sets in which all drives have another kind of fault than those of the state."""
    fields = _fields(fitter)
    shared = [k for k, m in enumerate(fitter.mechanisms) if m.tied and fields[k] in DRIVE_FIELDS]
    for out in sorted({fields[k] for k in state.chosen} & set(DRIVE_FIELDS)):
        kept = [k for k in state.chosen if fields[k] != out]
        for k in shared:
            if fields[k] != out and k not in kept:
                yield add_mechanism(kept, k), state.point


def _finer_step(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields the set of a state with a finer time step, where that moves readings."""
    last = len(fitter.mechanisms) - 1
    if last not in state.chosen and fitter.problem.shows_step:
        point = state.point.copy()
        point[-1] = 1.0
        yield add_mechanism(state.chosen, last), point


def _other_forces(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields sets with all forces and masses divided by what one of them is off by, without those that are then right.

    Where no force is measured the motion is the same; a fit of everything ends anywhere along the way.
    """
    problem, fields = fitter.problem, _fields(fitter)
    scaled = [k for k in state.chosen if fields[k] in FORCE_FIELDS]
    columns, row = fitter.entries(scaled), problem.rows(state.point[None])[0]
    if len(scaled) < MIN_SCALED:
        return
    for column in columns:
        written = problem.fit.base[column]
        if min(row[column], written) <= 0.0 or row[column] == written:
            continue
        moved = row.copy()
        moved[columns] *= written / row[column]
        point = np.clip(problem.point_of(moved, state.point[-1]), *problem.bounds)
        is_off = np.abs(point) > AS_WRITTEN * problem.typical
        right = [k for k in scaled if not is_off[list(fitter.mechanisms[k].entries)].any()]
        yield tuple(k for k in state.chosen if k not in right), point


def _fewer_of_each_dimension(fitter: SetFitter, state: SetFit) -> Iterator[Start]:
    """Yields sets in which one mechanism takes the place of several of its dimension; those that promise most."""
    kinds = [mechanism.dimension for mechanism in fitter.mechanisms]
    linear = state.linear
    for dimension in dict.fromkeys(kinds[k] for k in state.chosen):
        several = [k for k in state.chosen if kinds[k] == dimension]
        if len(several) > 1 and linear is not None:
            rest = [k for k in state.chosen if k not in several]
            point = np.zeros_like(state.point)
            point[fitter.entries(rest)] = state.point[fitter.entries(rest)]
            sets = [add_mechanism(rest, k) for k, kind in enumerate(kinds) if kind == dimension]
            for chosen in sorted(sets, key=lambda each: -linear.value(each, 0.0))[:MAX_FEWER]:
                yield chosen, point
