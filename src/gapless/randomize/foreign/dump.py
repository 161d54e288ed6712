"""Event terms in YAML or JSON, such as the `env.yaml` that Isaac Lab writes beside a run."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from gapless.core.errors import InputError
from gapless.randomize.foreign.term import Unread, Written, asset_of, written_of


class _Plain(yaml.SafeLoader):
    """Reads Python's tags as the plain values that they hold; nothing is made or run."""


def _untagged(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        held = loader.construct_sequence(node, deep=True)
        return held if suffix.startswith(("tuple", "list")) else Unread(suffix)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return Unread(suffix)


_Plain.add_multi_constructor("tag:yaml.org,2002:python/", _untagged)
_Plain.add_multi_constructor("!", _untagged)


def terms_of_dump(text: str, is_json: bool) -> tuple[list[Written], list[str]]:
    """Returns the terms of a dumped configuration, in order, and what was not read.

    Raises:
        InputError: If the text is no YAML or JSON, or holds no mapping.
    """
    try:
        found = json.loads(text) if is_json else yaml.load(text, _Plain)
    except (ValueError, yaml.YAMLError) as error:
        kind = "JSON" if is_json else "YAML"
        raise InputError(f"this is no {kind} ({' '.join(str(error).split())[:120]}): save it again") from None
    if not isinstance(found, Mapping):
        raise InputError("this holds no mapping of event terms: name a dump that has `events`")
    return [_term(str(name), said) for name, said in _events(found).items() if _is_term(said)], []


def _events(found: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Returns the mapping of terms: under `events`, also below `env` or `task.env`, or the file itself."""
    for path in (("events",), ("env", "events"), ("task", "env", "events"), ("env_cfg", "events"), ("randomization",)):
        inner: Any = found
        for key in path:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            return inner
    return found


def _is_term(said: Any) -> bool:
    return isinstance(said, Mapping) and "func" in said


def _term(name: str, said: Mapping[Any, Any]) -> Written:
    made = written_of(name, said)
    for key, value in made.params.items():
        if key == "asset_cfg" or (isinstance(value, Mapping) and "body_names" in value):
            made.params[key] = asset_of(value) if isinstance(value, Mapping) else value
    return made
