"""Equal fingerprints, equal projects: every file that a result depends on counts."""

import hashlib
from pathlib import Path

import pytest

from gapless.project.fingerprint import find_local_modules, fingerprint
from gapless.project.load import load_project

YAML = """gapless: 1
model: robots/{model}
rate_hz: 100
measurements: {{q: {{joint: hinge, quantity: position}}}}
task: code/task.py:Task
reality: code/twin.py:make
"""
MAIN = """<mujoco><compiler meshdir="assets" texturedir="pictures"/>
<include file="parts/arm.xml"/>
<asset><texture name="skin" type="2d" file="skin.png"/><hfield name="ground" file="ground.bin" size="1 1 1 1"/></asset>
</mujoco>"""
ARM = """<mujoco><include file="deep.xml"/>
<worldbody><body name="arm"><joint name="hinge"/><geom type="mesh" mesh="link"/></body></worldbody></mujoco>"""
DEEP = '<mujoco><asset><mesh name="link" file="link.obj"/></asset></mujoco>'
LINK = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = f"""<robot name="arm"><link name="base">{INERTIA}</link><link name="arm">{INERTIA}
<collision><geometry><mesh filename="mesh/link.obj"/></geometry></collision></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""
GROUND = b"\x02\0\0\0\x02\0\0\0" + bytes(16)  # rows, columns, heights as float32
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
FILES = {
    "robots/main.xml": MAIN,
    "robots/parts/arm.xml": ARM,
    "robots/parts/deep.xml": DEEP,
    "robots/assets/link.obj": LINK,
    "robots/parts/link.obj": LINK,  # where nested files look for it, in some versions of the engine
    "robots/pictures/skin.png": PIXEL,
    "robots/assets/ground.bin": GROUND,
    "robots/arm.urdf": URDF,
    "robots/mesh/link.obj": LINK,
    "code/task.py": "import json\nfrom rewards import shaped\nfrom tools.shapes import box\n\nclass Task: ...\n",
    "code/rewards.py": "import importlib\nlater = importlib.import_module('weights')\ndef shaped(): ...\n",
    "code/weights.py": "WEIGHT = 1\n",
    "code/tools/__init__.py": "",
    "code/tools/shapes.py": "from . import sizes\nfrom .colours import red\nbox = 1\n",
    "code/tools/sizes.py": "",
    "code/tools/colours.py": "red = 1\n",
    "code/twin.py": "def make():\n    import wear\n",
    "code/wear.py": "",
    "code/unrelated.py": "",
}
SEEN = [
    *("gapless.yaml", "robots/main.xml", "robots/parts/arm.xml", "robots/parts/deep.xml", "robots/pictures/skin.png"),
    *("robots/assets/ground.bin", "robots/assets/link.obj", *(n for n in FILES if n.startswith("code/"))),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "gapless.yaml").write_text(YAML.format(model="main.xml"))
    return tmp_path


def edit(path: Path) -> None:
    """Changes a file in a way that leaves it valid."""
    added = {".py": b"\n# edited", ".xml": b"<!-- edited -->", ".urdf": b"<!-- edited -->", ".yaml": b"# edited"}
    content = path.read_bytes()
    content = content[:-1] + b"\x01" if path.suffix == ".bin" else content + added.get(path.suffix, b"\n")
    path.write_bytes(content)


@pytest.mark.parametrize("name", sorted(set(SEEN) - {"code/unrelated.py", "robots/assets/link.obj"}))
def test_an_edit_of_any_file_that_counts_changes_it(folder: Path, name: str) -> None:
    before = fingerprint(load_project(folder))
    assert fingerprint(load_project(folder)) == before
    edit(folder / name)
    assert fingerprint(load_project(folder)) != before


def test_an_edit_of_the_mesh_of_a_nested_file_changes_it(folder: Path) -> None:
    before = fingerprint(load_project(folder))
    for name in ("robots/assets/link.obj", "robots/parts/link.obj"):  # one of them is what the engine reads
        edit(folder / name)
    assert fingerprint(load_project(folder)) != before


def test_an_edit_of_the_mesh_of_a_urdf_changes_it(folder: Path) -> None:
    (folder / "gapless.yaml").write_text(YAML.format(model="arm.urdf"))
    before = fingerprint(load_project(folder))
    edit(folder / "robots/mesh/link.obj")
    assert fingerprint(load_project(folder)) != before


def test_other_files_and_the_place_of_the_folder_change_nothing(folder: Path, tmp_path_factory) -> None:
    before = fingerprint(load_project(folder))
    edit(folder / "code/unrelated.py")
    assert fingerprint(load_project(folder)) == before
    moved = tmp_path_factory.mktemp("elsewhere") / "project"
    folder.rename(moved)
    assert fingerprint(load_project(moved)) == before


def test_a_model_of_one_file_has_the_fingerprint_of_the_version_before(tmp_path: Path) -> None:
    yaml = "gapless: 1\nmodel: m.xml\nrate_hz: 9\nmeasurements: {q: {joint: j, quantity: position}}\n"
    model = '<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'
    (tmp_path / "gapless.yaml").write_text(yaml)
    (tmp_path / "m.xml").write_text(model)
    expected = hashlib.sha256(f"{yaml}\0{model}\0".encode()).hexdigest()[:16]
    assert fingerprint(load_project(tmp_path)) == expected


def test_code_is_parsed_not_run(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("import broken, gone\nraise SystemExit\n")
    (tmp_path / "broken.py").write_text("def (")
    assert {path.name for path in find_local_modules(tmp_path / "task.py")} == {"task.py", "broken.py"}
