"""Reading a project folder."""

from pathlib import Path
from typing import Literal

from gapless.project.mapping import command_maps, measurement_maps
from gapless.project.model import load_model
from gapless.project.records import ParameterEntry, Project
from gapless.project.schema import ProjectKeys, read_keys
from gapless.project.yaml_file import FILE_NAME, Document, read_document


def load_project(directory: str | Path) -> Project:
    """Reads and checks a project folder: its `gapless.yaml`, that its model compiles, that all names exist.

    Logs are not read, and the owner's code is not loaded.

    Raises:
        ProjectError: One line about the first mistake: what was found, what exists, what to write.
    """
    folder = Path(directory).expanduser()
    if folder.name == FILE_NAME and folder.is_file():
        folder = folder.parent
    document = read_document(folder / FILE_NAME)
    keys = read_keys(document)
    model_path = folder / Path(keys.model).expanduser()
    model = load_model(model_path)
    return Project(
        directory=folder,
        name=keys.name or folder.resolve().name,
        model_path=model_path,
        rate_hz=keys.rate_hz,
        commands=command_maps(document, keys, model),
        measurements=measurement_maps(document, keys, model),
        logs_path=folder / Path(keys.logs).expanduser(),
        parameters=_parameters(document, keys),
        task=keys.task,
        reality=keys.reality,
    )


def _parameters(document: Document, keys: ProjectKeys) -> Literal["auto"] | tuple[ParameterEntry, ...]:
    if keys.parameters is None:
        return "auto"
    found: dict[str, ParameterEntry] = {}
    for place, item in enumerate(keys.parameters):
        if item.target in found:
            raise document.error(("parameters", place), f"parameter {item.target} is listed twice: keep one")
        found[item.target] = ParameterEntry(item.target, item.low, item.high, item.dimension, item.per)
    return tuple(found.values())
