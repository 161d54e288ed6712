"""LeRobot data sets, v2.1 and v3.0: folders with meta/info.json, rows in Parquet, and videos."""

from functools import partial
from pathlib import Path

from gapless.formats.format import Format
from gapless.formats.lerobot.layout import V21, V30, find_version
from gapless.formats.lerobot.read import read_lerobot
from gapless.formats.lerobot.write import write_lerobot


def _is_v2(path: Path) -> bool:
    return (find_version(path) or "").startswith("v2.")


def _is_other(path: Path) -> bool:
    """Returns whether a folder is a data set of v3.0, or of a version that the reader then refuses by its name."""
    return find_version(path) is not None and not _is_v2(path)


LEROBOT_V21 = Format("lerobot-v2.1", "LeRobot v2.1 data set", _is_v2, read_lerobot, partial(write_lerobot, V21))
LEROBOT_V30 = Format("lerobot-v3.0", "LeRobot v3.0 data set", _is_other, read_lerobot, partial(write_lerobot, V30))
