"""Which earlier fit is compared with: found in the catalogue, or named."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gapless
from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import FitErrors, FittedParameter, IdentifyResult, to_json
from gapless.core.signal import TimeSeries
from gapless.data.stored_results import store_result
from gapless.fit.data import ProjectData, read_project_data
from gapless.identify.drift import find_earlier_fit, recorded_span
from gapless.identify.verb import identify
from gapless.project.fingerprint import fingerprint
from unit.identify.realities import WHATEVER, write_reality

NOTHING = FitErrors((), {}, None, None, None)
GAIN = FittedParameter("actuator/motor/gain", "actuator", "1", 1.0, 0.8, 0.79, 0.81, 0.95, True, False, 0.3, 2.0)


def fit(recorded_to: str | None, inputs: tuple[str, ...] = ("other",)) -> IdentifyResult:
    return IdentifyResult(inputs, (GAIN,), (), NOTHING, NOTHING, "good", (), None, 0.3, 0, recorded_to=recorded_to)


def keep(evidence: ProjectData, result: IdentifyResult, project: str | None = None) -> str:
    config = {"project": project or fingerprint(evidence.project), "window_s": result.window_s}
    return store_result(
        evidence.catalogue, result, Provenance("identify", gapless.__version__, result.inputs, config, 0)
    )


@pytest.fixture
def evidence(tmp_path: Path) -> ProjectData:
    """Returns logs of two days in June."""
    write_reality(tmp_path, {"actuator/motor/gain": 0.6}, parameters=WHATEVER[:2], num_logs=2)
    for k in range(2):
        (tmp_path / "logs" / f"run{k}.json").write_text(json.dumps({"recorded_at": f"2026-06-0{k + 2}T10:00:00+02:00"}))
    return read_project_data(tmp_path)


def stamped(recorded_at: str | None) -> Episode:
    nothing = TimeSeries(np.arange(2.0), np.zeros((2, 0)), (), ())
    return Episode("run", "real", nothing, nothing, recorded_at=recorded_at)


def test_a_span_is_known_only_if_every_log_says_when() -> None:
    early, late = "2026-03-01T23:30:00-05:00", "2026-03-02T05:00:00"  # 04:30 UTC; without a zone it is UTC
    assert recorded_span([stamped(late), stamped(early)]) == (early, late)
    assert recorded_span([stamped(early), stamped(None)]) == (None, None)
    assert recorded_span([]) == (None, None)


def test_the_earliest_fit_counts_and_of_the_same_day_the_last_made(evidence: ProjectData) -> None:
    assert find_earlier_fit(evidence, None, 0.3) is None
    keep(evidence, fit("2026-04-01T10:00:00"))
    keep(evidence, fit("2026-03-01T10:00:00"))
    wanted = keep(evidence, replace(fit("2026-03-01T10:00:00"), seed=1))
    found = find_earlier_fit(evidence, None, 0.3)
    assert found is not None
    assert found[0] == wanted


@pytest.mark.parametrize(
    "unsuited",
    [
        fit("2026-06-02T09:00:00"),  # 1 h after the first of these logs, which say 10:00 two hours east of UTC
        fit(None),
        replace(fit("2026-03-01T10:00:00"), verdict="refused"),
        replace(fit("2026-03-01T10:00:00"), window_s=0.5),
    ],
)
def test_fits_that_do_not_suit_are_not_compared_with(evidence: ProjectData, unsuited: IdentifyResult) -> None:
    keep(evidence, unsuited)
    assert find_earlier_fit(evidence, None, 0.3) is None


def test_fits_of_another_model_or_of_these_logs_are_not_compared_with(evidence: ProjectData) -> None:
    keep(evidence, fit("2026-03-01T10:00:00"), project="another")
    keep(evidence, fit("2026-03-01T10:00:00", evidence.ids[:1]))
    assert find_earlier_fit(evidence, None, 0.3) is None


def test_a_kept_fit_that_was_deleted_stops_nothing(evidence: ProjectData) -> None:
    identity = keep(evidence, fit("2026-03-01T10:00:00"))
    evidence.catalogue.artefact_path(identity, "result.json").unlink()
    assert find_earlier_fit(evidence, None, 0.3) is None


def test_a_named_fit_is_compared_with_whenever_it_was_made(evidence: ProjectData, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(to_json(fit(None))))
    result = identify(tmp_path, since=path)
    assert result.since is not None
    assert result.since.fit == str(path)
    # The earlier fit has the gain only, this one the damping too: fitted again without it in order to compare.
    assert result.since.refitted
    assert result.since.compared == ("actuator/motor/gain",)
    (found,) = result.drift
    assert found.change == pytest.approx(0.6 / 0.8 - 1, abs=0.03)
    assert found.since is None


def test_fits_of_before_there_was_a_comparison_can_be_named(evidence: ProjectData, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    later = ("posterior", "neural", "recorded_from", "recorded_to", "since", "drift")
    path.write_text(json.dumps({key: value for key, value in to_json(fit(None)).items() if key not in later}))
    assert find_earlier_fit(evidence, path, 0.3) is not None


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (replace(fit(None), verdict="refused", reasons=("nothing moves",)), "--since: that fit was refused"),
        (fit(None, ("a", "b")), "2 logs are in both fits .run0, run1.: choose others with --logs PATTERN"),
    ],
)
def test_a_named_fit_that_cannot_be_compared_with_is_bad_input(
    evidence: ProjectData, tmp_path: Path, result: IdentifyResult, message: str
) -> None:
    path = tmp_path / "fit.json"
    own = replace(result, inputs=evidence.ids) if len(result.inputs) == 2 else result
    path.write_text(json.dumps(to_json(own)))
    with pytest.raises(InputError, match=message):
        find_earlier_fit(evidence, path, 0.3)


def test_a_named_fit_that_is_damaged_is_bad_input(evidence: ProjectData, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(to_json(fit(None)) | {"parameters": 5}))
    with pytest.raises(InputError, match=r"--since: .*run (identify|the verb) again"):
        find_earlier_fit(evidence, path, 0.3)
    with pytest.raises(InputError, match="no such file"):
        find_earlier_fit(evidence, tmp_path / "none.json", 0.3)


def test_logs_are_chosen_by_pattern(evidence: ProjectData, tmp_path: Path) -> None:
    assert read_project_data(tmp_path, ["run1"]).ids == evidence.ids[1:]
    assert read_project_data(tmp_path, ["*0.csv", "run?"]).ids == evidence.ids
    with pytest.raises(InputError, match=r"no log is called walk\*; choose from: run0, run1"):
        read_project_data(tmp_path, ["run0", "walk*"])
