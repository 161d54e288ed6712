import re
from pathlib import Path

import pytest

from architecture.tree import named, tracked_files

# Where packages come from, and where one machine keeps its files, is nobody else's business. The pieces are
# joined here so that this file does not match itself.
_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "download." + "pytorch", "ana" + "conda.org"]
_OPTIONS = ["extra-" + "index" + "-url", "--index" + "-url", "--find" + "-links", "trusted" + "-host"]
_FOLDERS = ["ro" + r"ot\b", "wo" + r"rk\b", "op" + r"t\b", "ho" + r"me/\w", "Us" + r"ers/\w"]

HOST = re.compile("|".join(re.escape(text) for text in _HOSTS + _OPTIONS), re.IGNORECASE)
# The first slash of an absolute path: not one between two names, nor after a dot, a wildcard or a bracket.
MACHINE_PATH = re.compile(r"(?<![\w.*>})\]-])/(?:" + "|".join(_FOLDERS) + ")")


def offending_lines(text: str) -> list[int]:
    lines = enumerate(text.splitlines(), start=1)
    return [number for number, line in lines if HOST.search(line) or MACHINE_PATH.search(line)]


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def test_no_file_names_a_package_host_or_a_path_of_one_machine() -> None:
    files = tracked_files()
    assert len(files) > 20  # an empty list would prove nothing
    found = [f"{named(path)}:{line}" for path in files for line in offending_lines(text_of(path))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "https://files.python" + "hosted.org/x.whl",
        "pip install --extra-" + "index" + "-url somewhere",
        "cd /wo" + "rk/main",
        "torch @ file:///op" + "t/wheels/torch.whl",
        '"/ro' + 'ot"',
        "see /ho" + "me/ann/robot",
    ],
)
def test_the_patterns_catch(text: str) -> None:
    assert offending_lines(text) == [1]


@pytest.mark.parametrize(
    "text", ["joint/ro" + "ot/damping", "src/gapless/wo" + "rk.py", "#!/usr/bin/env bash", "a /optional b"]
)
def test_the_patterns_let_pass(text: str) -> None:
    assert offending_lines(text) == []
