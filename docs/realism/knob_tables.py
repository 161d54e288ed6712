"""Writes the tables of these pages from the layers themselves: python docs/realism/knob_tables.py."""

import importlib
import math
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

from gapless.sim.realism import layers
from gapless.sim.realism.human import ADULTS
from gapless.sim.realism.layer import Layer
from gapless.sim.realism.registry import LAYERS

HERE = Path(__file__).parent
BLOCK = re.compile(r"(<!-- (layer|people): ([^>]+?) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
UNITS = {"m": "m", "s": "s", "n": "N", "rad": "rad", "share": "1", "change": "1"}


def home(layer: Layer) -> str:
    """Returns where a layer is defined, `module.NAME`."""
    for item in pkgutil.iter_modules(layers.__path__, f"{layers.__name__}."):
        for name, value in vars(importlib.import_module(item.name)).items():
            if value is layer:
                return f"{item.name}.{name}"
    raise LookupError(layer.name)


def number(value: float) -> str:
    """Returns a number as people write it."""
    if math.isinf(value):
        return "none"
    whole = value == round(value) and abs(value) < 1e6
    return f"{value:.0f}" if whole else f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def table(layer: Layer) -> str:
    """Returns what a page says about a layer besides its equation."""
    needs = f" It needs {', '.join(f'`{name}`' for name in layer.needs)}." if layer.needs else ""
    columns = f" Its columns are {', '.join(layer.columns)}." if layer.columns else ""
    same = [f"`{knob.same_as}` for `{knob.name}`" for knob in layer.knobs if knob.same_as]
    switch = f"\n\nIn a project, write {', '.join(same)}." if same else ""
    rows = [
        f"Acts on: {layer.acts_on}.{columns}{needs} `{home(layer)}`{switch}",
        "",
        "| knob | unit | ideal | range | typical | source of the typical value |",
        "|---|---|---|---|---|---|",
    ]
    for knob in layer.knobs:
        name = f"`{knob.name}`" + ("" if knob.per_column else " (one for all columns)")
        span = f"{number(knob.low)} .. {number(knob.high)}"
        rows.append(
            f"| {name} | {knob.unit} | {number(knob.ideal)} | {span} | {number(knob.typical)} | {knob.source} |"
        )
    return "\n".join(rows) + "\n"


def people() -> str:
    """Returns the table of the bundled population."""
    rows = ["| quantity | unit | median | between people | between trials |", "|---|---|---|---|---|"]
    for item in fields(ADULTS):
        trait = getattr(ADULTS, item.name)
        unit = UNITS[item.name.rsplit("_", 1)[-1]]
        spread = [f"{number(s)} {unit}" if trait.signed else f"{number(s)} (log)" for s in (trait.person, trait.trial)]
        rows.append(f"| `{item.name}` | {unit} | {number(trait.median)} | {spread[0]} | {spread[1]} |")
    return "\n".join(rows) + "\n"


def filled(text: str) -> str:
    """Returns a page with its tables as the layers are now."""
    by_name = {layer.name: layer for layer in LAYERS}

    def block(match: re.Match[str]) -> str:
        return match[1] + (people() if match[2] == "people" else table(by_name[match[3]])) + match[4]

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in sorted(HERE.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
