"""Owner's code is loaded only when asked, and its faults are one line with file and line."""

import sys
from pathlib import Path

import pytest

from gapless.core.errors import ProjectError
from gapless.project.code import load_reality, load_task
from gapless.project.load import load_project

TASK = """
from settings import DURATION_S

class Push:
    duration_s = DURATION_S
    observation_size = 1
    action_size = 1
    phases = ("go",)
    def start(self, rng, num_worlds): ...
    def first_command(self, start): ...
    def observe(self, moment): ...
    def command(self, action, moment): ...
    def judge(self, moment, action): ...
"""
TWIN = """
class World:
    source, rate_hz, command_names, measurement_names = "twin", 100.0, (), ()
    def __init__(self, **given):
        self.given = given
        self.num_worlds = given.get("num_worlds", 1)
    def reset(self, start, rng, ids=None): ...
    def step(self, requested_command): ...
def make(seed): return World(seed=seed)
def both(seed, num_worlds): return World(seed=seed, num_worlds=num_worlds)
def neither(): return World()
def more(seed, port): return World()
def nothing(seed): return 3
def fails(seed): raise RuntimeError("two\\nlines")
"""


def project_with(arm: Path, key: str, value: str, **files: str):
    for name, text in files.items():
        (arm / f"{name}.py").write_text(text)
    path = arm / "gapless.yaml"
    path.write_text(path.read_text() + f"{key}: {value}\n")
    return load_project(arm)


def test_task_imports_its_neighbours_and_leaves_nothing_behind(arm: Path, tmp_path: Path) -> None:
    project = project_with(arm, "task", "task.py:Push", task=TASK, settings="DURATION_S = 2.5")
    before = list(sys.path)
    assert load_task(project).duration_s == 2.5
    assert sys.path == before
    assert "settings" not in sys.modules
    assert not (arm / "__pycache__").exists()
    (arm / "settings.py").write_text("DURATION_S = 3.5")  # another project's file of the same name
    assert load_task(project).duration_s == 3.5


@pytest.mark.parametrize(
    ("name", "given"), [("make", {"seed": 4}), ("both", {"seed": 4, "num_worlds": 8}), ("neither", {})]
)
def test_reality_gets_what_it_accepts(arm: Path, name: str, given: dict[str, int]) -> None:
    project = project_with(arm, "reality", f"twin.py:{name}", twin=TWIN)
    assert load_reality(project, seed=4, num_worlds=8).given == given  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("key", "value", "text", "words"),
    [
        ("task", "tsk.py:Push", TASK, ["no file tsk.py", "task.py"]),
        ("task", "task.py:Pus", TASK, ["task.py:Pus does not exist", "from: Push"]),
        ("task", "task.py:x", "x = 3", ["not a class or function"]),
        ("task", "task.py:Push", "class Push:\n  duration_s = 1", ["without observation_size", "judge()"]),
        ("task", "task.py:Push", "\n\nimport nowhere_at_all", ["ModuleNotFoundError", "task.py:3"]),
        ("task", "task.py:Push", "class Push(:", ["SyntaxError", "task.py:1"]),
        ("task", "task.py:Push", "import sys\nsys.exit(3)", ["SystemExit", "task.py:2"]),
        ("task", "task.py:Push", "class Push:\n  def __init__(self, a): ...", ["no arguments", "'a'"]),
        ("reality", "task.py:more", TWIN, ["'port'", "default values"]),
        ("reality", "task.py:nothing", TWIN, ["made a int without source", "step()"]),
        ("reality", "task.py:fails", TWIN, ["calling fails raised RuntimeError: two lines", "task.py:14"]),
    ],
)
def test_fault_is_one_line(arm: Path, key: str, value: str, text: str, words: list[str]) -> None:
    project = project_with(arm, key, value, task=text, settings="DURATION_S = 1")
    with pytest.raises(ProjectError) as caught:
        load_task(project) if key == "task" else load_reality(project, 0, 1)
    found = str(caught.value)
    assert len(found.splitlines()) == 1
    assert all(word in found for word in words), found


def test_project_without_task(arm: Path) -> None:
    with pytest.raises(ProjectError, match=r"no task: write task: task\.py:Push"):
        load_task(load_project(arm))
    with pytest.raises(ProjectError, match=r"no reality: write reality: twin\.py:make"):
        load_reality(load_project(arm), 0, 1)
