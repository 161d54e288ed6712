"""The page on a screen 1200 pixels wide: no table is cut, with names as long as ROS makes them."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from gapless.core.results import Result
from gapless.report import render_page

LONG = "measurement//joint_states.position.shoulder_lift_joint/bias"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
OPTIONS += ["--disable-background-networking", "--disable-component-update"]
MEASURE = """<script>document.querySelectorAll("details").forEach(part => part.open = true);
const boxes = [...document.querySelectorAll(".scroll, .multiples figure"), document.documentElement];
const name = box => box.getAttribute("aria-label") || box.className || box.tagName;
document.title = "widths" + JSON.stringify(boxes.map(box => [name(box), box.scrollWidth, box.clientWidth]));</script>"""
Make = Callable[..., dict[str, Result]]


def page_of(make: Make) -> str:
    return render_page("ur5e", make(LONG, "N·m·s/rad"), code_version="0.1.0", made_at="2025-01-01 12:00 UTC")


def test_long_names_wrap(make: Make) -> None:
    page = page_of(make)
    style = re.search(r"tbody th[^{]*\{([^}]*)\}", page)
    assert style is not None
    assert "nowrap" not in style.group(1)
    assert "overflow-wrap: anywhere" in style.group(1)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here: how wide tables are drawn is not measured")
def test_no_table_is_cut_at_1200_pixels(make: Make, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(re.sub(r"<meta http-equiv=.Content-Security-Policy.*?>", "", page_of(make)) + MEASURE)
    command = [str(BROWSER), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,2000"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], check=False, capture_output=True, text=True, timeout=60
    )
    found = re.search(r"<title>widths(.*?)</title>", done.stdout)
    assert found is not None, done.stderr
    widths = json.loads(unescape(found.group(1)))
    assert len(widths) > 10
    assert [(name, needed, given) for name, needed, given in widths if needed > given] == []
