"""The pages on realism: their tables are those of the layers, their code runs, their pictures exist."""

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import yaml

from architecture.tree import EXAMPLES, ROOT
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.realism.registry import LAYERS
from gapless.sim.targets import resolve

PAGES = ROOT / "docs" / "realism"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(PAGES))
    yield {name: importlib.import_module(name) for name in ("knob_tables", "plots")}
    sys.path.remove(str(PAGES))


def test_tables_are_as_the_layers_are(scripts: dict[str, ModuleType]) -> None:
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if scripts["knob_tables"].filled(text) != text:
            stale.append(page.name)
    assert stale == [], "run python docs/realism/knob_tables.py"


def test_every_layer_has_one_table_and_stands_in_the_index() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    listed = re.findall(r"<!-- layer: (.+?) -->", text)
    assert sorted(listed) == sorted(layer.name for layer in LAYERS)
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[[^|]*\| (.*) \|$", index, flags=re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")}
    assert [layer.name for layer in LAYERS if layer.name not in named and layer.dimension != "spread"] == []


def test_every_picture_is_there_and_shown(scripts: dict[str, ModuleType]) -> None:
    for name, (_, label) in scripts["plots"].PICTURES.items():
        assert (PAGES / f"{name}.svg").is_file()
        assert f"![{label}]({name}.svg)" in (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["actuator", "latency", "contact-and-object", "environment", "human", "spread"])
def test_pictures_can_be_drawn(name: str, scripts: dict[str, ModuleType]) -> None:
    make, _ = scripts["plots"].PICTURES[name]
    assert all(panel.curves for panel in make())


def test_the_parameters_of_the_page_are_those_of_the_example() -> None:
    fences = FENCE.findall((PAGES / "index.md").read_text(encoding="utf-8"))
    listed = next(yaml.safe_load(text)["parameters"] for language, text in fences if language == "yaml")
    blueprint = compile_project(load_project(EXAMPLES / "push"))
    targets = [resolve(entry["target"], blueprint.project, blueprint.model) for entry in listed]
    assert [target.knob is not None for target in targets] == [False, True, True, True]


@pytest.mark.parametrize("page", ["index", "human"])
def test_the_code_runs_and_prints_what_the_page_shows(page: str) -> None:
    fences = FENCE.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for _, code in (fence for fence in fences if fence[0] == "python"):
            exec(compile(code, f"{page}.md", "exec"), {"__name__": "__main__"})
    shown = [text for language, text in fences if language == "text" and text.startswith("the layer")]
    assert not shown or printed.getvalue() == shown[0]
