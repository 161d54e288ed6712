"""The commands of the README run, in order, in one empty folder.

A block is run where `<!-- run -->` stands on the line before it:

    <!-- run -->
    ```console
    $ gapless demo balance
    ```
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.tree import ROOT

BLOCK = re.compile(r"<!-- run -->\s*\n```(?:console|sh)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def commands_of(text: str) -> list[str]:
    """Returns the commands of the marked blocks: lines after `$ `, or all lines of a block without any."""
    found: list[str] = []
    for block in BLOCK.findall(text):
        lines = [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]
        typed = [line[2:] for line in lines if line.startswith("$ ")]
        found += typed or [line for line in lines if not line.startswith("#")]
    return found


def test_marked_blocks_are_found() -> None:
    text = "<!-- run -->\n```console\n$ one\nanswer\n$ two \\\n  more\n```\n"
    text += "```sh\nnot me\n```\n<!-- run -->\n```sh\nthree\n```\n"
    assert commands_of(text) == ["one", "two    more", "three"]


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    commands = commands_of(readme.read_text(encoding="utf-8")) if readme.is_file() else []
    if not commands:
        pytest.skip("README.md has no block marked <!-- run -->")
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        options = {"cwd": tmp_path, "env": os.environ | {"PATH": place}, "capture_output": True, "text": True}
        done = subprocess.run(command, shell=True, check=False, **options)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
