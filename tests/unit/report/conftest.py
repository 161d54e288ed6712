"""Small records of every verb, for the tests of the page."""

from collections.abc import Callable
from math import inf, nan

import pytest

from gapless.core.distribution import Range
from gapless.core.interval import wilson
from gapless.core.results import (
    Advice,
    Cause,
    CheckResult,
    ColumnError,
    ConditionRate,
    DiagnoseResult,
    Drift,
    EvaluateResult,
    FitErrors,
    FittedParameter,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    NeuralPosterior,
    Note,
    Probability,
    RandomizeResult,
    Result,
    SampledParameter,
    Since,
    TellingMoment,
    Trace,
    TrainResult,
)

ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture(name="make")
def make_fixture() -> Callable[..., dict[str, Result]]:
    """Returns the function that makes one record per name that the page knows."""
    return make


def make(text: str = "puck_x") -> dict[str, Result]:
    """Returns one record per name that the page knows, with `text` wherever a user's text may stand."""
    trace = Trace(text, text, "m", (0.0, nan, 0.2), (0.0, nan, 0.2), {"model": (0.0, 0.1, inf), text: (0.0, 0.0, 0.0)})
    errors = {text: ColumnError(0.03, 0.4, 0.01, 0.08, "m"), "q": ColumnError(None, None, nan, None, "rad")}
    measure = MeasureResult((ID,), 0.5, 12, errors, {"simulation": wilson(9, 10)}, (trace,))
    parameters = (
        FittedParameter(text, "contact", text, 0.5, 0.3, 0.2, 0.4, 0.95, True, False, 0.0, 1.0),
        FittedParameter("body/puck/mass", "object", "kg", 0.2, 0.2, -inf, inf, 0.95, False, True, 0.1, 0.4),
        FittedParameter("world/tilt/x", "environment", "rad", nan, nan, nan, nan, 0.95, False, False, -0.1, 0.1),
    )
    fit_errors = FitErrors((text,), {text: {"before": 0.03, "after": nan}}, 9.0, 1.2, None)
    identify = IdentifyResult(
        (ID, text),
        parameters,
        (text,),
        fit_errors,
        fit_errors,
        "good",
        (text,),
        text,
        0.5,
        7,
        (trace,),
        posterior=text,
        neural=NeuralPosterior(
            text, 3000, 200, 1000, False, (SampledParameter(text, 0.3, nan, inf, 0.95, None),), (text,)
        ),
        since=Since(text, text, (text, "body/puck/mass"), 0.95, True),
        drift=(
            Drift(text, text, 0.5, 0.7, 0.4, 0.28, 0.53, 0.95, True, text),
            Drift("world/tilt/x", "rad", 0.0, -0.02, -0.02, -0.03, nan, 0.95, False, None),
        ),
    )
    causes = (Cause("contact", 0.9, 0.6, 0.4, 0.8), Cause("object", nan, nan, nan, nan))
    diagnose = DiagnoseResult(
        (ID,),
        causes,
        Probability(0.01),
        Probability(nan),
        (text,),
        (("contact", "object"),),
        (Advice(text, text),),
        7,
        unexplained=nan,
        moments=(
            TellingMoment(text, 12.5, 0.5, text, "contact", 8.44, 1.1),
            TellingMoment(text, nan, 0.5, text, "contact", inf, nan),
        ),
        conditions=(
            ConditionRate(text, text, 12, 9, 0.73, 0.46, 0.91, 0.98),
            ConditionRate("light", text, 0, 0, nan, nan, nan, nan),
        ),
    )
    ranges = (Range(text, "normal", 0.1, 0.5, 0.3, 0.05, text), Range("a/b/c", "fixed", 1.0, 1.0, 1.0))
    randomize = RandomizeResult((ID,), ranges, text, 7)
    train = TrainResult((ID,), text, ID, 1000, wilson(9, 10), ((0, 0.0), (500, nan), (1000, 0.9)), 7)
    return {
        "check": CheckResult((), False, (Note("fault", text, text),), {text: nan}),
        "measure": measure,
        "measure_fitted": measure,
        "identify": identify,
        "diagnose": diagnose,
        "randomize": randomize,
        "train": train,
        "evaluate": EvaluateResult((ID,), "reality", wilson(0, 0), {text: 2}, 7),
        "loop": LoopResult(
            (ID,), wilson(96, 100), wilson(16, 40), wilson(36, 40), 24, 0.8, True, 2,
            measure, measure, identify, diagnose, randomize, train, train, 7,
        ),
    }  # fmt: skip
