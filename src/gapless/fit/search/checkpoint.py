"""What a fit has found so far, kept in a file: a fit that was stopped goes on from there.

A fit does the same steps in the same order whenever its inputs are the same. So it is enough to note what each step
found, and where the random numbers were: the next fit takes over what is noted and does the rest. Its result is the
same as if nothing had been stopped.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import mujoco
import numpy as np

from gapless.core.errors import Interrupted
from gapless.core.provenance import Provenance
from gapless.core.results import TriedTerm
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import code_version
from gapless.fit.search.terms import Structure

Value = TypeVar("Value", float, np.ndarray, Structure)


class Checkpoint:
    """The steps of one fit.

    Attributes:
        steps: What each of those that are done has found.
        goes_on: Whether an earlier fit noted some.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Takes over what is noted in a file; None notes nothing."""
        self._path, self._next = path, 0
        self.steps: list[dict[str, Any]] = [] if path is None else _read(path)
        self.goes_on = bool(self.steps)

    def step(self, work: Callable[[], Value], rng: np.random.Generator | None = None) -> Value:
        """Returns what a step finds: as noted, or by doing it; `rng` are the random numbers that it draws from."""
        if self._next == len(self.steps):
            found = _encode(work())
            self.steps.append(found if rng is None else found | {"rng": rng.bit_generator.state})
            self._write()
        noted = self.steps[self._next]
        self._next += 1
        if rng is not None:
            rng.bit_generator.state = noted["rng"]
        return _decode(noted)

    def close(self) -> None:
        """Deletes the file, since the fit is done."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._path is None:
            return
        partial = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):  # then a fit that is stopped goes on from an earlier step
            try:
                partial.write_text(json.dumps(self.steps), encoding="utf-8")
                os.replace(partial, self._path)
            finally:
                partial.unlink(missing_ok=True)


@contextlib.contextmanager
def open_checkpoint(catalogue: Catalogue, provenance: Provenance) -> Generator[Checkpoint]:
    """Yields the checkpoint of the fit with the same inputs, options and seed, by this version of gapless.

    Raises:
        Interrupted: On Ctrl-C, if anything is kept.
    """
    digest = hashlib.sha256(f"{code_version()} {mujoco.__version__} {provenance.canonical()}".encode())
    checkpoint = Checkpoint(catalogue.unfinished_path(f"identify-{digest.hexdigest()[:16]}.json"))
    try:
        yield checkpoint
    except KeyboardInterrupt:
        if not checkpoint.steps:
            raise
        raise Interrupted("what was fitted so far is kept, and the same command goes on from there") from None


def _read(path: Path) -> list[dict[str, Any]]:
    """Returns the steps in a file; none if they are not whole."""
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))
        for noted in steps:
            _decode(noted)
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return steps


def _encode(value: float | np.ndarray | Structure) -> dict[str, Any]:
    if isinstance(value, Structure):
        row = value.row.tolist()
        return {"free": [int(k) for k in value.free], "row": row, "tried": [asdict(term) for term in value.tried]}
    return {"array": value.tolist()} if isinstance(value, np.ndarray) else {"number": float(value)}


def _decode(noted: dict[str, Any]) -> Any:
    if "free" in noted:
        tried = [TriedTerm(tuple(t["targets"]), t["kept"], t["saving"], t["score"]) for t in noted["tried"]]
        return Structure(tuple(noted["free"]), np.array(noted["row"]), tuple(tried))
    return np.array(noted["array"]) if "array" in noted else float(noted["number"])
