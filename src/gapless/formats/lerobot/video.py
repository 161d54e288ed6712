"""Copies and cuts the videos of episodes without encoding them again; needs `av`."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.errors import InputError
from gapless.core.recording import Video
from gapless.core.signal import Array
from gapless.formats.lerobot.layout import TIMESTAMP_TOLERANCE_S
from gapless.formats.source import explain_damage, log_error

MAX_SAMPLED_FRAMES = 25  # of an episode, for the statistics of its images
MAX_SAMPLED_PIXELS = 150  # of a side, for the same


@dataclass(frozen=True)
class FrameTimes:
    """The frames of a video file in the order in which they are stored."""

    times_s: Array  # (num_frames,) when each is shown [s]
    is_key: np.ndarray  # (num_frames,) whether it can be decoded without others

    def find_rows(self, video: Video, fps: float) -> np.ndarray:
        """Returns which stored frames are those of an episode."""
        inside = self.times_s >= video.begin_s - 0.5 / fps
        inside &= self.times_s < (np.inf if video.end_s is None else video.end_s - 0.5 / fps)
        return np.flatnonzero(inside)


def describe_misfit(times_s: Array, num_rows: int, fps: float) -> str:
    """Returns why frames at some times, from 0 on, are not a frame for each row of an episode; empty where they are."""
    if len(times_s) != num_rows:
        return f"it has {len(times_s)} frames and the episode {num_rows} rows: give a video with a frame for each"
    off_s = np.abs(np.sort(times_s) - np.arange(num_rows) / fps).max(initial=0.0)
    off_rate = f"its frames are up to {off_s:.5f} s off {fps:g} Hz: record or convert it at that rate"
    return off_rate if off_s > TIMESTAMP_TOLERANCE_S + 1e-9 else ""


def copy_video(video: Video, path: Path, num_rows: int, fps: float) -> None:
    """Writes the part of a video file that an episode is; raises LogError where it does not have a frame for each row.

    A file that is the episode as a whole is copied; else packets are, from a key frame on, with their time from 0.
    """
    frames = list_frames(video.path, video.path.stat().st_mtime_ns)
    rows = frames.find_rows(video, fps)
    times_s = frames.times_s[rows]
    reason = describe_misfit(times_s - times_s.min(initial=np.inf), num_rows, fps)
    if not reason and (np.any(np.diff(rows) != 1) or not frames.is_key[rows[0]]):
        reason = "the cut does not fall on a key frame: convert the video to one with key frames there"
    if reason:
        raise log_error(reason, video.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(rows) == len(frames.times_s) and times_s.min() == 0:
        shutil.copyfile(video.path, path)
    else:
        _copy_packets(video.path, path, float(times_s.min()), range(rows[0], rows[-1] + 1))


@lru_cache(maxsize=32)
def list_frames(path: Path, _changed_ns: int) -> FrameTimes:
    """Returns the frames of a file without decoding them; reads the whole file, once."""
    with _open(path) as container:
        stream = container.streams.video[0]
        found = [(packet.pts, packet.is_keyframe) for packet in container.demux(stream) if packet.size]
        times_s = np.array([float(pts * stream.time_base) for pts, _ in found])
    return FrameTimes(times_s, np.array([key for _, key in found], dtype=bool))


def describe_camera(path: Path, fps: float) -> dict[str, Any]:
    """Returns the entry of a video's feature in info.json."""
    with _open(path) as container:
        stream = container.streams.video[0]
        entry = {"dtype": "video", "shape": [stream.height, stream.width, 3], "names": ["height", "width", "channels"]}
        info = {"video.height": stream.height, "video.width": stream.width, "video.pix_fmt": stream.pix_fmt}
        codec = {"libdav1d": "av1"}.get(stream.codec_context.name, stream.codec_context.name)
        info |= {"video.codec": codec, "video.is_depth_map": False, "video.fps": fps, "video.channels": 3}
        return {**entry, "info": {**info, "has_audio": bool(container.streams.audio)}}


def sample_image_statistics(path: Path) -> dict[str, Array]:
    """Returns the statistics of a video's colours, (3, 1, 1) in 0 to 1, over key frames spread over the file."""
    with _open(path) as container:
        sampled = [_sample_pixels(frame) for frame in _decode_key_frames(container)]
    pixels = np.concatenate(sampled) / 255.0
    found = {name: getattr(np, name)(pixels, axis=0).reshape(3, 1, 1) for name in ("min", "max", "mean", "std")}
    return {**found, "count": np.array([float(len(sampled))])}


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Yields an MP4 file; no playlist or other text that names further files, whatever its name."""
    try:
        import av
    except ImportError:
        raise InputError("videos need av: install it with pip install 'gapless[formats]'") from None
    with explain_damage(path, "MP4 video"), av.open(str(path), format="mp4") as container:
        yield container


def _decode_key_frames(container: Any) -> Iterator[Any]:
    stream = container.streams.video[0]
    packets = [packet for packet in container.demux(stream) if packet.size and packet.is_keyframe]
    chosen = np.unique(np.linspace(0, len(packets) - 1, MAX_SAMPLED_FRAMES).round().astype(int))
    for packet in [*(packets[i] for i in chosen), None]:
        yield from stream.codec_context.decode(packet)


def _sample_pixels(frame: Any) -> np.ndarray:
    """Returns (num_pixels, 3) of a frame, 0 to 255."""
    image = frame.to_ndarray(format="rgb24")
    step = max(1, max(image.shape[:2]) // MAX_SAMPLED_PIXELS)
    return image[::step, ::step].reshape(-1, 3)


def _copy_packets(source: Path, path: Path, begin_s: float, places: range) -> None:
    import av

    with _open(source) as container, av.open(str(path), "w") as written:
        stream = container.streams.video[0]
        target = written.add_stream_from_template(stream)
        begin = round(begin_s / stream.time_base)
        for place, packet in enumerate(packet for packet in container.demux(stream) if packet.size):
            if place in places:
                packet.pts -= begin
                packet.dts = packet.dts - begin if packet.dts is not None else None
                packet.stream = target
                written.mux(packet)
