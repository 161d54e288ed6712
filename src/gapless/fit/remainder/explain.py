"""What remains after a fit, and which variable at which joint or body would explain it.

Errors that a force f(t) makes are, to first order, e = G f + J d: G is what forces do to the readings, J what the
fitted parameters do, which have taken up what they could and give it back. Each hypothesis is fitted to four fifths of
the windows and judged on the others, its shape chosen anew each time, so that a flexible one pays for what it frees.
"""

import numpy as np

from gapless.core.interval import Interval
from gapless.core.results import RemainderForm
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.gather import gather_remainder
from gapless.fit.remainder.judge import Judge, Judged
from gapless.fit.remainder.motion import Motion
from gapless.fit.remainder.shapes import Place, root_mean_square

MIN_LEFT = 1.5  # sum of squares in multiples of that of noise, below which nothing is left to explain
MIN_SHARE = 0.05  # of the remaining error: less is not worth a parameter
MAX_FORMS = 3  # that are named, each beside those before it
LEVEL, NUM_RESAMPLES = 0.95, 400  # of the interval of a share, windows drawn with replacement
TEST_LEVEL = 0.995  # at which a share must exceed 0: some forty hypotheses are tried
MIN_PHASE_RATIO, MIN_PHASE_WINDOWS = 3.0, 4  # explained error in windows of a phase beside that of the others


def explain_remainder(problem: FitProblem, row: Array) -> tuple[RemainderForm, ...]:
    """Returns what the error that remains under a fitted row is a function of, the largest share first.

    Empty where nothing above noise is left, or nothing that is tried explains a significant part of it. Costs about
    as much as two iterations of a fit with a parameter per piece of a window and degree of freedom.

    Args:
        problem: Windows and predictor; its free parameters are those that were fitted.
        row: (num_parameters,) the whole row that was fitted.
    """
    if not len(problem.windows):
        return ()
    remainder, found, known = gather_remainder(problem, row), list[RemainderForm](), list[Array]()
    excess: Array | None = None
    while len(found) < MAX_FORMS and remainder.places:
        judge = Judge(remainder, known)
        if judge.before.sum() < MIN_LEFT * remainder.noise:
            break
        excess = judge.before - remainder.noise / len(judge.before) if excess is None else excess
        judged = [one for place in remainder.places for one in judge.judge_place(place)]
        best = min(judged, key=lambda one: float(one.left.sum()))
        gain = judge.before - best.left
        share, surely = _share_of(gain, excess)
        if share.value < MIN_SHARE or surely <= 0.0:
            break
        found.append(_describe_form(remainder.motion, best, gain, share))
        known.append(judge.respond(best.place, best.shape))
    return tuple(sorted(found, key=lambda form: -form.share.value))


def _share_of(gain: Array, excess: Array) -> tuple[Interval, float]:
    """Returns the share of an error that is explained, and its lower end at `TEST_LEVEL`; windows are resampled.

    `gain` and `excess` are what is explained, and what there was above noise, of each window: sums of squares.
    """
    drawn = np.random.default_rng(0).integers(len(gain), size=(NUM_RESAMPLES, len(gain)))
    shares = gain[drawn].sum(axis=1) / np.maximum(excess[drawn].sum(axis=1), 1e-9)
    low, high, surely = np.quantile(shares, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2, 1.0 - TEST_LEVEL])
    value = float(np.clip(gain.sum() / max(float(excess.sum()), 1e-9), 0.0, 1.0))
    ends = min(value, max(0.0, float(low))), max(value, min(1.0, float(high)))
    return Interval(value, *ends, LEVEL, len(gain), "bootstrap over held-out windows"), float(surely)


def _describe_form(motion: Motion, judged: Judged, gain: Array, share: Interval) -> RemainderForm:
    place, shape = judged.place, judged.shape
    phase, target = _find_phase(motion, place, gain), shape.target
    text = f"{place.kind} {place.name}: {shape.words}, a function of {shape.variable}, would explain {share.percent()}"
    text += " of what remains above noise" + ("" if phase == "throughout" else f", most of it {phase}")
    each = " with `per: run`" if shape.variable == "run" else ""
    text += f"; try `{target}`{each}" if target else "; no parameter has this form"
    kind = "joint" if place.kind == "joint" else "body"
    return RemainderForm(kind, place.name, shape.variable, shape.words, phase, share, target, text)


def _find_phase(motion: Motion, place: Place, gain: Array) -> str:
    """Returns when the explained error shows, from windows in which it is much larger than in others."""
    speed, effort = (np.sqrt(np.sum(one[..., place.dofs] ** 2, axis=-1)) for one in (motion.velocity, motion.effort))
    phases = {
        "in contact": motion.touching[..., place.body].mean(axis=1) > 0.5,
        "near standstill": speed.min(axis=1) < 0.1 * root_mean_square(speed),
        "at high effort": effort.mean(axis=1) > 1.3 * root_mean_square(effort),
    }
    ratios: dict[str, float] = {}
    for name, inside in phases.items():
        if min(inside.sum(), (~inside).sum()) >= MIN_PHASE_WINDOWS:
            ratios[name] = float(gain[inside].mean() / max(float(gain[~inside].mean()), 1e-9))
    name = max(ratios, key=lambda one: ratios[one], default="throughout")
    return name if ratios.get(name, 0.0) > MIN_PHASE_RATIO else "throughout"
