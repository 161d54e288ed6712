import json
from pathlib import Path

import pytest

from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_fit
from gapless.verbs import copy_example


def test_a_fit_by_hand_needs_targets_and_values_only(tmp_path: Path) -> None:
    compiled = compile_project(load_project(copy_example("balance", tmp_path / "balance")))
    path = tmp_path / "fit.json"
    path.write_text(json.dumps({"verb": "identify", "parameters": [{"target": "actuator/*/delay", "value": 0.02}]}))
    space, values = read_fit(path, compiled)
    assert space.targets == ("actuator/*/delay",)
    assert values.tolist() == [0.02]
    for broken in ([{"target": "actuator/*/delay"}], [{"target": "actuator/*/delay", "value": "fast"}], 5):
        path.write_text(json.dumps({"verb": "identify", "parameters": broken}))
        with pytest.raises(InputError, match="run identify again"):
            read_fit(path, compiled)
