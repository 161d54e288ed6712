from gapless.core.results import ColumnHorizon, FitErrors, HorizonErrors
from gapless.identify.verdict import FitFindings, judge_fit
from unit.fit_file import fitted

BEFORE, AFTER, LEFT = 100.0, 5.0, 5.0  # in multiples of the noise


def findings(horizon: HorizonErrors | None) -> FitFindings:
    """Returns a fit that leaves five times what noise explains."""
    errors = FitErrors(("a",), {}, BEFORE, AFTER, LEFT)
    return FitFindings(None, (fitted("joint/j/damping", 1.0),), (), errors, errors, horizon=horizon)


def at_horizon(after: float, motion: float = 1.0, horizon_s: float | None = 1.0) -> HorizonErrors:
    return HorizonErrors(horizon_s, 9, {"q": ColumnHorizon("rad", 0.001, motion, 0.5, after)}, BEFORE, AFTER)


def test_what_precise_sensors_show_is_no_fault_where_it_is_small_at_the_horizon() -> None:
    word, reasons = judge_fit(findings(at_horizon(0.02)))  # 2 % of the motion
    assert word == "good"
    text = "what is left is 5.0 times what noise explains, yet at most 2 % of how far each column moves in 1 s"
    assert text in reasons
    assert judge_fit(findings(at_horizon(0.02, horizon_s=None)))[1][1].endswith("moves in whole runs")


def test_what_is_large_at_the_horizon_is_a_fault() -> None:
    for horizon in (at_horizon(0.06), at_horizon(0.02, motion=0.1), None):
        word, reasons = judge_fit(findings(horizon))
        assert word == "poor"
        assert "what is left is 5.0 times what noise explains: the model lacks something" in reasons


def test_an_error_within_noise_has_no_share_however_little_moves() -> None:
    assert at_horizon(0.003, motion=0.0).worst_share == 0.0
    assert at_horizon(0.004, motion=0.004).worst_share == 1.0
