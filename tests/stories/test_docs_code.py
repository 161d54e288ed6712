"""The code and the tables of the documents: what they show is run, what they list exists."""

import ast
import importlib
import re
import runpy
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
import yaml
from mujoco import MjModel

from architecture.tree import EXAMPLES, ROOT, named
from gapless import verbs
from gapless.core.errors import InputError
from gapless.core.results import Result
from gapless.core.target_path import MOTOR_FIELDS
from gapless.exchange.origin import Statement
from gapless.learn.policy import NetworkPolicy
from gapless.project.load import load_project
from gapless.project.model import load_model
from gapless.sim.targets import resolve

DOCS = ROOT / "docs"
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"(?:# |<!-- )([\w.]+\.(?:py|xml|yaml))(?: -->)?\n")
WITH_MOTOR = """<mujoco><worldbody><body name="puck"><joint name="slide" type="slide"/><geom size=".1" pos="0 0 .2"/>
<site name="tip"/></body></worldbody><actuator><dcmotor name="servo_x" joint="slide" nominal="12 3 20" input="pos"
 controller="10 0 1 0 0 12" cogging=".1 7 .3" lugre="100 1 .1 .2 .01"/></actuator></mujoco>"""  # what `push` lacks
TARGET_ROW = re.compile(
    r"^\| `((?:joint|actuator|body|geom|site|world|measurement)/\S+)` \| (.+?) \|.*\| (\w+) \|$", flags=re.MULTILINE
)
QUICK = ("check", "measure", "report")
SLOW = ("identify", "excite", "diagnose", "randomize", "train", "loop")


@dataclass(frozen=True)
class Code:
    """A fenced block of a document; `file` is the name in its first line, empty where it has none."""

    language: str
    text: str
    file: str


def blocks(document: str) -> list[Code]:
    """Returns the fenced blocks of a document, in order."""
    text = (DOCS / document).read_text(encoding="utf-8")
    found = FENCE.findall(text)
    names = [FILE_NAME.match(code) for _, code in found]
    return [Code(kind, code, m.group(1) if m else "") for (kind, code), m in zip(found, names, strict=True)]


def run_python(document: str) -> None:
    """Runs the Python blocks of a document in the current folder; those that name a file are written to it."""
    code = blocks(document)
    for block in code:
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
    loose = [block for block in code if block.language == "python" and not block.file]
    assert loose  # a document without code would prove nothing
    for number, block in enumerate(loose):
        exec(compile(block.text, f"{document}, block {number}", "exec"), {"__name__": "__main__"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    return verbs.copy_example("balance", folder / "my-robot")


def section(document: str, heading: str) -> str:
    """Returns the text below a heading, up to the next of the same or a higher level."""
    level = heading.split()[0]
    rest = (DOCS / document).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    assert rest, f"{document} has no heading {heading}"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("document", sorted(DOCS.rglob("*.md")), ids=named)
def test_python_compiles_and_what_it_imports_exists(document: Path) -> None:
    for block in blocks(str(document.relative_to(DOCS))):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gapless"):
                module = importlib.import_module(str(node.module))
                assert [item.name for item in node.names if not hasattr(module, item.name)] == []


def test_your_robot(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_python("your-robot.md")
    printed = capsys.readouterr().out
    assert "the robot keeps the contract" in printed
    assert sorted(path.name for path in (folder / "logs").glob("*.csv")) == [f"first-00{k}.csv" for k in range(4)]
    assert verbs.check(folder).sound
    assert verbs.measure(folder).num_windows == 12  # 4 runs of 1 s have 3 whole windows of 0.3 s each


def test_your_robot_is_a_reality_that_policies_are_tried_on(folder: Path) -> None:
    for block in blocks("your-robot.md"):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    # The servo's target is the goal: observations are angle / 0.5 and (goal - angle) / 0.5; actions are ignored.
    policy = NetworkPolicy((np.array([[0.5, 0.5, 0.0]]),), (np.zeros(1),), 1)
    (folder / "policy.npz").write_bytes(policy.to_bytes())
    found = verbs.evaluate(folder, "policy.npz", num_trials=2)
    assert found.where == "reality"
    assert found.success.value == 1.0  # exp(-1 s / 0.1 s) of at most 1.1 rad remains, far below 0.05 rad


@pytest.mark.parametrize("verb", QUICK)
def test_quick_pages(verb: str, project: Path) -> None:
    if verb == "report":
        verbs.measure(project)
    run_python(f"how-to/{verb}.md")


def test_the_page_of_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = blocks("how-to/new.md")
    log = next(block.text for block in page if block.text.startswith("t_ms"))
    (folder / "runs").mkdir()
    for name in ("run1.csv", "run2.csv"):
        (folder / "runs" / name).write_text(log, encoding="utf-8")
    (folder / "robot.xml").write_bytes((EXAMPLES / "balance" / "robot.xml").read_bytes())
    run_python("how-to/new.md")
    shown = next(block.text for block in page if block.text.startswith("info"))
    assert [line.split(maxsplit=1)[1].replace(": ", " ", 1) for line in shown.splitlines()[:-1]] == [
        line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()
    ]
    written = next(block.text for block in page if block.language == "yaml")
    assert (folder / "my-robot" / "gapless.yaml").read_text(encoding="utf-8") == written


def test_the_page_of_evaluate(project: Path) -> None:
    policy = NetworkPolicy((np.zeros((1, 4)),), (np.zeros(1),), 1)
    (project.parent / "policy.npz").write_bytes(policy.to_bytes())
    run_python("how-to/evaluate.md")


@pytest.mark.parametrize("document", ["results-format.md", "project-folder.md"])
def test_reference_pages(document: str, project: Path) -> None:
    run_python(document)


@pytest.mark.slow
@pytest.mark.parametrize("verb", SLOW)
def test_slow_pages(verb: str, project: Path) -> None:
    if verb == "randomize":
        verbs.identify(project)
    run_python(f"how-to/{verb}.md")


def test_every_verb_has_a_page() -> None:
    about_people = dict.fromkeys(("label", "split", "consent"), "labels-splits-consent")
    elsewhere = {"noise": "sensor-noise", "import_": "import", **about_people}
    pages = {verb: elsewhere.get(verb, verb) for verb in verbs.__all__}
    others = {
        "export-ranges",
        "lerobot",
        "ros",
        "hdf5-rlds",
        "tables",
    }  # what a verb does beside its main task; formats
    assert {path.stem for path in (DOCS / "how-to").glob("*.md")} == {*pages.values(), *others}


def write_shown(document: str, begins: str, path: Path) -> None:
    """Writes the block of a document that begins with a text."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(next(block.text for block in blocks(document) if block.text.startswith(begins)), encoding="utf-8")


def test_the_page_of_import(project: Path) -> None:
    write_shown("how-to/import.md", "t_ms", Path("tuesday/run1.csv"))
    with pytest.raises(InputError) as refused:
        verbs.import_(project, "tuesday")
    assert str(refused.value) in section("how-to/import.md", "## What it means")
    run_python("how-to/import.md")  # into another project, and writes map.yaml
    mapping = verbs.import_(project, "tuesday", map="map.yaml").mapping
    table = next(block.text for block in blocks("how-to/import.md") if "which is" in block.text).splitlines()[1:]
    shown = [tuple(re.split(r" {2,}", line)) for line in table[: len(mapping)]]
    assert shown == [(m.column, m.becomes or "(left out)", m.what or "-", m.reason) for m in mapping]


def test_the_page_of_export(project: Path) -> None:
    verbs.import_("my-data", project / "logs", statement=Statement(source="real"))
    run_python("how-to/export.md")
    assert len(list(Path("out_csv").glob("*.csv"))) == 6


def test_the_page_of_lerobot(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.export(project, "so101_pick", format="lerobot-v3.0")
    run_python("how-to/lerobot.md")
    assert capsys.readouterr().out == ""
    (Path("so101_pick") / "meta" / "tasks.parquet").unlink()
    run_python("how-to/lerobot.md")
    assert "meta/tasks.parquet" in capsys.readouterr().out


def test_the_page_of_ros(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_shown("how-to/ros.md", "# make_arm.py", folder / "make_arm.py")
    runpy.run_path(str(folder / "make_arm.py"))
    run_python("how-to/ros.md")
    assert "/joint_states transport latency 20.0 ms (20.0 to 20.0)" in capsys.readouterr().out
    made = verbs.new("arm.xml", [f"run{k}" for k in range(4)], "arm")
    shown = next(b.text for b in blocks("how-to/ros.md") if b.text.startswith("info     model")).splitlines()
    notes = {f"{note.where}: {note.text}" for note in made.notes}
    assert [line for line in shown if line.startswith("info") and line.split(maxsplit=1)[1] not in notes] == []


def test_the_page_of_hdf5(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.export(project, "lift.hdf5", format="robomimic")
    run_python("how-to/hdf5-rlds.md")
    assert capsys.readouterr().out == "6 []\n"


def test_the_page_of_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_shown("how-to/tables.md", "stamp_ns", folder / "tables" / "teach.csv")
    write_shown("how-to/tables.md", '{"outcome"', folder / "tables" / "teach.json")
    run_python("how-to/tables.md")
    assert capsys.readouterr().out == "2\n4\n"
    found = verbs.query("my-data", "SELECT DISTINCT failed_in, robot_serial, participants FROM episodes")
    assert found.rows == (("lift", "A7", ["P07"]),)
    np.savez("adis16405_static_1h.npz", accel_g=np.zeros((50, 3)), rate_hz=100.0)
    runpy.run_path("add_time.py")
    assert verbs.import_("my-data", "imu.npz").samples == 50


def test_the_page_of_labels_splits_and_consent(project: Path) -> None:
    run_python("how-to/labels-splits-consent.md")
    assert verbs.query(project, "SELECT failed_in, tags FROM episodes WHERE name = 'motion0'").rows[0][0] == "catch"
    assert verbs.split(project).splits[0].num_episodes == 2


def test_every_column_of_the_views_is_explained(project: Path) -> None:
    text = section("how-to/query.md", "## What it means")
    verbs.label(project, ["motion0"], by="ana", outcome="failure")
    for view in ("episodes", "samples", "artefacts", "labels", "splits", "consents"):
        columns = verbs.query(project, f"SELECT * FROM {view} LIMIT 0").columns
        assert columns
        assert [name for name in columns if f"`{name}`" not in text] == []


def test_the_page_of_audit(project: Path) -> None:
    ranges = next(block.text for block in blocks("how-to/audit.md") if "uniform" in block.text)
    Path("ranges.txt").write_text(ranges, encoding="utf-8")
    run_python("how-to/audit.md")


def test_the_page_of_sensor_noise(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez("imu.npz", gyro_rad_s=1e-3 * rng.standard_normal((3000, 3)), rate_hz=100.0)
    run_python("how-to/sensor-noise.md")


@pytest.mark.parametrize("record", Result.__subclasses__(), ids=lambda record: record.verb)
def test_every_field_of_a_result_is_explained(record: type[Result]) -> None:
    text = section("results-format.md", f"## {record.verb}") + section("results-format.md", "## All results")
    assert [item.name for item in fields(record) if f"`{item.name}`" not in text] == []


def test_every_target_in_the_tables_exists_with_its_unit_and_dimension() -> None:
    project = load_project(EXAMPLES / "push")
    model = load_model(project.model_path)
    rows = TARGET_ROW.findall(section("project-folder.md", "## Parameters"))
    names = {"joint": "tip_x", "actuator": "servo_x", "body": "puck", "geom": "puck", "site": "tip"}
    assert len(rows) == 41
    for path, unit, dimension in rows:
        kind = path.partition("/")[0]
        path = path.replace("NAME", names.get(kind, "")).replace("COLUMN", "puck_x")
        elsewhere = kind == "site" or path.rpartition("/")[2] in (*MOTOR_FIELDS, "tip_payload")
        target = resolve(path, project, MjModel.from_xml_string(WITH_MOTOR) if elsewhere else model)
        assert target.dimension == dimension
        its_own = ("unit of the column", "unit of the command")
        assert unit in (target.unit, *its_own) or unit.endswith(f" or {target.unit}"), path


def test_every_target_of_an_element_is_in_the_tables() -> None:
    project = load_project(EXAMPLES / "push")
    model = load_model(project.model_path)
    text = section("project-folder.md", "## Parameters")
    for element in ("joint/tip_x", "actuator/servo_x", "body/puck", "geom/puck", "world", "measurement/puck_x"):
        with pytest.raises(InputError, match="write one of") as caught:
            resolve(f"{element}/nothing", project, model)
        known = str(caught.value).partition("write one of ")[2].split(", ")
        assert [field for field in known if f"/{field}`" not in text and f"`{field}`" not in text] == []


def test_the_list_of_parameters_can_be_read(project: Path) -> None:
    listed = next(b.text for b in blocks("project-folder.md") if b.text.startswith("parameters:"))
    path = project / "gapless.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("parameters: auto\n", listed), encoding="utf-8")
    targets = [entry["target"] for entry in yaml.safe_load(listed)["parameters"]]
    assert [entry.target for entry in load_project(project).parameters] == targets
