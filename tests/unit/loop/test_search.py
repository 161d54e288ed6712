"""Ranges by trials in reality."""

from pathlib import Path

import pytest

from gapless.core.errors import InputError
from gapless.data.catalogue import Catalogue
from gapless.identify.verb import identify
from gapless.loop.search import BayrnConfig, search_ranges
from gapless.randomize.verb import randomize
from gapless.verbs import copy_example
from unit.identify.realities import write_reality
from unit.learn.balance import SMALL

TINY = BayrnConfig(num_tries=3, num_trials=4, train=SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copy_example("balance", tmp_path_factory.mktemp("balance"))
    few = "parameters: [{target: actuator/motor/gain}, {target: actuator/*/delay}, {target: joint/cart/damping}]"
    text = (place / "gapless.yaml").read_text().replace("parameters: auto", few)
    (place / "gapless.yaml").write_text(text)
    identify(place)
    return place


@pytest.mark.slow
def test_every_try_is_trained_and_tried_in_reality_once(folder: Path) -> None:
    told: list[tuple[str, float]] = []
    result = search_ranges(folder, config=TINY, progress=lambda *what: told.append(what))
    assert result.method == "bayrn"
    assert [r.target for r in result.ranges] == [r.target for r in randomize(folder).ranges]
    assert list(dict(told)) == ["try 1 of 3", "try 2 of 3", "try 3 of 3"]
    for label in dict(told):
        shares = [share for name, share in told if name == label]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0.0, 1.0)
        assert len(shares) > 3  # while it trains, too
    catalogue = Catalogue.open(folder)
    assert len(catalogue.artefacts("train")) == 3
    assert len(catalogue.artefacts("evaluate")) == 3
    assert Path(result.path).is_file()
    again = search_ranges(folder, config=TINY)
    assert again.ranges == result.ranges
    assert len(catalogue.artefacts("train")) == 3  # kept ones are not trained again


def test_without_a_reality_it_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"add `task: task\.py:NAME`"):
        search_ranges(write_reality(tmp_path, {}, num_logs=1))
