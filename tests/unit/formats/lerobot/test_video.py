import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.core.recording import Recording, Video
from gapless.formats.lerobot import LEROBOT_V30
from gapless.formats.lerobot.check import check_lerobot
from gapless.formats.lerobot.video import sample_image_statistics
from unit.formats.lerobot.sets import (
    KINDS,
    VERSIONS,
    count_frames,
    edit_info,
    edit_table,
    find_real_set,
    list_data,
    make_recording,
    make_video,
    read_set,
    replace_column,
    write_set,
)

CAMERA = "observation.images.front"


def film(folder: Path, codec: str = "libx264") -> list[Recording]:
    """Returns two episodes with a video each."""
    given = [make_recording(number, num_rows=12 + number) for number in range(2)]
    paths = [make_video(folder / f"film_{i}.mp4", len(each.times_s), codec) for i, each in enumerate(given)]
    return [replace(each, videos=(Video(CAMERA, path),)) for each, path in zip(given, paths, strict=True)]


@pytest.mark.parametrize("codec", ["libx264", "libsvtav1"])
def test_videos_go_from_one_version_to_the_other_and_back(codec: str, tmp_path: Path) -> None:
    given = film(tmp_path, codec)
    for number, version in enumerate(["v2.1", "v3.0", "v2.1"]):
        path = write_set(tmp_path / str(number), version, given)
        assert check_lerobot(path) == ()
        given = read_set(path)[0]
        assert [count_frames(each.videos[0]) for each in given] == [12, 13]
    assert given[0].details["features"][CAMERA]["info"]["video.codec"] == {"libx264": "h264", "libsvtav1": "av1"}[codec]
    assert given[1].videos[0].path.read_bytes() == (tmp_path / "film_1.mp4").read_bytes()  # copied, not encoded again


def join(tmp_path: Path, gop: int = 2) -> list[Recording]:
    """Returns two episodes that share one video file, as data sets of v3.0 keep them."""
    path = make_video(tmp_path / "both.mp4", 26, gop=gop)
    videos = [Video(CAMERA, path, 0.0, 0.6), Video(CAMERA, path, 0.6, 1.3)]
    return [
        replace(make_recording(i, num_rows=n), videos=(v,))
        for i, (n, v) in enumerate(zip((12, 14), videos, strict=True))
    ]


@VERSIONS
def test_episodes_are_cut_out_of_a_shared_file_at_key_frames(version: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, version, join(tmp_path))
    found = read_set(path)[0]
    assert [count_frames(each.videos[0]) for each in found] == [12, 14]
    lightness = [float(sample_image_statistics(each.videos[0].path)["mean"].mean()) for each in found]
    assert 0.04 < lightness[0] < 0.14 < 0.25 < lightness[1] < 0.4  # frames 0 to 11 and 12 to 25 of 4/255 each
    assert check_lerobot(path) == ()


@pytest.mark.parametrize("change", ["cut", "count", "rate", "absent", "damaged"])
@VERSIONS
def test_a_video_that_does_not_fit_leaves_its_camera_out(change: str, version: str, tmp_path: Path) -> None:
    given = film(tmp_path)
    path = given[1].videos[0].path
    if change == "cut":
        given = join(tmp_path, gop=100)
    elif change == "count":
        make_video(path, 11)
    elif change == "rate":
        make_video(path, 13, fps=30)
    elif change == "damaged":
        path.write_bytes(path.read_bytes()[:200])
    else:
        given[1] = replace(given[1], videos=())
    write = KINDS[version].write
    assert write is not None
    reasons = [each.why for each in write(iter(given), tmp_path / "set")]
    words = {"cut": "key frame", "count": "11 frames", "rate": "off 20 Hz", "damaged": "cut off", "absent": "1 of 2"}
    assert len(reasons) == 1
    assert words[change] in reasons[0]
    assert not list((tmp_path / "set").rglob("*.mp4"))
    assert len(read_set(tmp_path / "set")[0]) == 2
    assert check_lerobot(tmp_path / "set") == ()


@VERSIONS
def test_without_av_the_rows_are_written(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = film(tmp_path)
    monkeypatch.setitem(sys.modules, "av", None)
    write = KINDS[version].write
    assert write is not None
    assert "pip install" in next(iter(write(iter(given), tmp_path / "set"))).why
    assert len(read_set(tmp_path / "set")[0]) == 2


def test_what_a_set_says_of_its_camera_stays(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", film(tmp_path))
    edit_info(path, lambda info: info["features"][CAMERA]["info"].update({"video.is_depth_map": True}))
    features = [each.details["features"] for each in read_set(path)[0]]
    again = read_set(write_set(tmp_path, "v3.0", read_set(path)[0]))[0]
    assert again[0].details["features"] == features[0]


@VERSIONS
def test_videos_of_the_real_set_are_copied(version: str, tmp_path: Path) -> None:
    given = [each for each in read_set(find_real_set("g1_inspire_v21"))[0] if each.videos]
    path = write_set(tmp_path, version, given)
    found = read_set(path)[0]
    assert [each.videos[0].path.stat().st_size for each in found] == [v.videos[0].path.stat().st_size for v in given]
    assert check_lerobot(path) == ()


def test_a_shared_file_of_v30_is_read_by_its_times(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v3.0", film(tmp_path))
    table = path / "meta/episodes/chunk-000/file-000.parquet"
    for key, values in {"file_index": [0, 0], "from_timestamp": [0.0, 0.6], "to_timestamp": [0.6, 1.25]}.items():
        edit_table(table, lambda t, k=key, v=values: replace_column(t, f"videos/{CAMERA}/{k}", v))
    found = [each.videos[0] for each in read_set(path)[0]]
    assert [(video.begin_s, video.end_s, video.path.name) for video in found] == [
        (0.0, 0.6, "file-000.mp4"),
        (0.6, 1.25, "file-000.mp4"),
    ]
    assert pq.read_metadata(list_data(path)[0]).num_rows == 25


@pytest.mark.parametrize("num_damaged", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_videos_are_one_line(num_damaged: int, tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", film(tmp_path)[:1])
    found = read_set(path)[0]
    video = found[0].videos[0].path
    whole, rng = video.read_bytes(), np.random.default_rng(4)
    write = LEROBOT_V30.write
    assert write is not None
    num_noticed = 0
    for number in range(num_damaged):
        broken = bytearray(whole[: int(rng.integers(len(whole)))] if number % 2 else whole)
        for place in rng.integers(0, len(broken), size=8) if broken else []:
            broken[place] ^= int(rng.integers(1, 256))
        video.write_bytes(broken)
        reasons = [each.expected for each in check_lerobot(path)]
        reasons += [each.why for each in write(iter(found), tmp_path / f"out_{number}")]
        assert not any("\n" in reason for reason in reasons)
        num_noticed += bool(reasons)
    assert num_noticed > num_damaged / 2
