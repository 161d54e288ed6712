import pytest

from gapless.core.errors import (
    CatalogueError,
    GaplessError,
    InputError,
    LogError,
    ProjectError,
    nearest,
)


def test_nearest_puts_the_likely_one_first() -> None:
    assert nearest("elbo", ["wrist", "shoulder", "elbow"]).startswith("elbow, ")


def test_nearest_does_not_mind_case() -> None:
    assert nearest("ELBOW", ["wrist", "elbow"]) == "elbow, wrist"


def test_nearest_lists_each_name_once_and_equals_by_alphabet() -> None:
    # Neither shares a letter with what was asked, so both are equally unlike it.
    assert nearest("zzz", ["b", "a", "b"]) == "a, b"


def test_nearest_says_how_many_it_leaves_out() -> None:
    # 10 names, limit 8: 2 more.
    names = [f"joint{k}" for k in range(10)]
    listed = nearest("joint9", names)
    assert listed.endswith(" and 2 more")
    assert listed.split(", ")[0] == "joint9"
    assert nearest("joint9", names, limit=10).count("joint") == 10


def test_nearest_of_nothing_says_so() -> None:
    assert nearest("elbow", []) == "(none exist)"


@pytest.mark.parametrize("error", [InputError, ProjectError, LogError, CatalogueError])
def test_every_error_has_the_one_root(error: type[Exception]) -> None:
    assert issubclass(error, InputError)
    assert issubclass(error, GaplessError)
