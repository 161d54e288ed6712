"""The demo, with a budget so small that it ends while one waits."""

from pathlib import Path

import pytest

from gapless import verbs
from gapless.core.errors import InputError
from gapless.loop import verb as loop_verb
from gapless.loop.verb import LoopConfig
from unit.learn.balance import SMALL


@pytest.mark.slow
def test_the_demo_tells_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = LoopConfig(real_episodes=7, num_trials=5, first=SMALL, last=SMALL)
    monkeypatch.setattr(loop_verb, "LoopConfig", lambda: tiny)
    steps: dict[str, float] = {}
    result = verbs.demo(tmp_path / "demo", "balance", progress=lambda label, share: steps.update({label: share}))
    assert result.real_episodes == 7
    assert result.diagnose.causes
    assert result.identify.model is not None
    assert Path(result.identify.model).is_file()
    assert Path(result.last.policy).is_file()
    assert "training in the model as written" in steps
    assert set(steps.values()) == {1.0}  # every step was seen to its end
    page = Path(verbs.report(tmp_path / "demo").path)
    assert "<html" in page.read_text(encoding="utf-8")[:500]


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear diary")
    with pytest.raises(InputError, match="not empty"):
        verbs.copy_example("balance", tmp_path)
    with pytest.raises(InputError, match="this is a file"):
        verbs.copy_example("balance", tmp_path / "thesis.tex")
    verbs.copy_example("balance", tmp_path / "demo")
    assert verbs.copy_example("balance", tmp_path / "demo") == tmp_path / "demo"  # again is fine
    with pytest.raises(InputError, match="another project"):
        verbs.copy_example("push", tmp_path / "demo")
    with pytest.raises(InputError, match="no example 'walk'; choose from: balance, handover, push"):
        verbs.copy_example("walk", tmp_path / "walk")
