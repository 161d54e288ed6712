"""Small records of every verb, for the tests of the page."""

from collections.abc import Callable
from math import inf, nan

import pytest

from gapless.core.distribution import Range
from gapless.core.interval import wilson
from gapless.core.results import (
    Advice,
    AllanCurve,
    AuditedColumn,
    AuditedParameter,
    AuditResult,
    Cause,
    CheckResult,
    ColumnError,
    ColumnNoise,
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
    NoiseTerm,
    Note,
    Probability,
    RandomizeResult,
    Result,
    SampledParameter,
    SensorResult,
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


def make(text: str = "puck_x", unit: str | None = None) -> dict[str, Result]:
    """Returns one record per name that the page knows, with `text` wherever a user's text may stand.

    Units are `text` too, unless `unit` says otherwise.
    """
    unit = text if unit is None else unit
    trace = Trace(text, text, "m", (0.0, nan, 0.2), (0.0, nan, 0.2), {"model": (0.0, 0.1, inf), text: (0.0, 0.0, 0.0)})
    errors = {text: ColumnError(0.03, 0.4, 0.01, 0.08, "m"), "q": ColumnError(None, None, nan, None, "rad")}
    measure = MeasureResult((ID,), 0.5, 12, errors, {"simulation": wilson(9, 10)}, (trace,))
    parameters = (
        FittedParameter(text, "contact", unit, 0.5, 0.3, 0.2, 0.4, 0.95, True, False, 0.0, 1.0),
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
            Drift(text, unit, 0.5, 0.7, 0.4, 0.28, 0.53, 0.95, True, text),
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
        "noise": make_noise(text, unit),
        "randomize": randomize,
        "audit": make_audit(text, unit),
        "train": train,
        "evaluate": EvaluateResult((ID,), "reality", wilson(0, 0), {text: 2}, 7),
        "loop": LoopResult(
            (ID,), wilson(96, 100), wilson(16, 40), wilson(36, 40), 24, 0.8, True, 2,
            measure, measure, identify, diagnose, randomize, train, train, 7,
        ),
    }  # fmt: skip


def make_noise(text: str, unit: str) -> SensorResult:
    """Returns the noise of three columns: one that is told, one that cannot be told, and one that is refused."""
    taus_s = (0.01, 0.1, 1.0)
    curve = AllanCurve(
        taus_s, (1e-3, 3e-4, 2e-4), (9e-4, 2e-4, nan), (1.1e-3, 4e-4, inf), (1e-3, 3.2e-4, nan),
        {"white": (1e-3, 3e-4, 1e-4), "flicker": (1e-4, 1e-4, 1e-4)},
    )  # fmt: skip
    terms = {
        "bias": NoiseTerm(0.1, -inf, inf, 0.95, 9, "mean", unit, True),
        "white": NoiseTerm(1e-3, 9e-4, 1.1e-3, 0.95, 9, "allan", "m", True),
        "bias_instability": NoiseTerm(2e-4, 1e-4, 3e-4, 0.95, 9, "allan", "m", True),
        "walk": NoiseTerm(0.0, 0.0, 7e-5, 0.95, 9, "allan", "m/√s", False),
        "drift": NoiseTerm(0.0, -1e-6, 1e-6, 0.95, 9, "line", "m/s", False),
    }
    told = ColumnNoise("m", 6000, "good", (), terms, 10.2, None, 9.96e-4, {"density": 1e-4}, curve)
    loose = ColumnNoise(unit, 6000, "poor", (text,), {"white": terms["white"]}, None, 0.32, None, {}, curve)
    refused = ColumnNoise("1", 0, "refused", (text,), {}, None, None, None, {}, None)
    columns = {text: told, "q": loose, "r": refused}
    return SensorResult((ID,), text, columns, "poor", (text,), 100.0, 60.0, (Note("info", text, text),))


def make_audit(text: str, unit: str) -> AuditResult:
    """Returns an audit of four ranges: one too narrow, one too wide, one not varied, one that cannot be told."""
    parameters = (
        AuditedParameter(
            "joint/knee/damping", "actuator", "N*m*s/rad", "cannot tell", True, 0.0, 1.0,
            0.5, -inf, inf, False, 0.0, nan, 0.0, 1.0, 0.0, 0.0, None, 1.0,
        ),
        AuditedParameter(
            text, "contact", unit, "too narrow", True, 0.8, 1.2,
            0.46, 0.45, 0.47, True, 0.37, 0.56, 0.37, 1.2, 0.34, 3.0, 1.0, 1.0,
        ),
        AuditedParameter(
            "actuator/*/delay", "latency", "s", "too wide", True, 0.0, 0.2,
            0.056, 0.055, 0.057, True, 0.045, 0.067, 0.045, 0.067, 0.0, 0.0, 12.4, 0.11,
        ),
        AuditedParameter(
            "joint/knee/frictionloss", "actuator", "N*m", "too narrow", False, 0.0, 0.0,
            0.25, 0.23, 0.27, True, 0.2, 0.3, 0.2, 0.3, 0.25, 2.0, None, 0.0,
        ),
    )  # fmt: skip
    columns = {text: AuditedColumn(0.98, 9.95, 0.57, 40.1, 19.5), "q": AuditedColumn(nan, inf, nan, nan, nan)}
    return AuditResult(
        (ID,), text, "too narrow", ("too narrow", "too wide"), (text,), parameters, columns,
        1.0, 8.6, 0.11, 0.3, 32, 7, (Note("info", text, text),),
    )  # fmt: skip
