import pytest

from gapless.formats.lerobot.features import group_columns, name_columns, name_feature

STATED = {
    "observation.state": {"dtype": "float32", "shape": [2], "names": ["a", "b"], "fps": 30},
    "effort": {"dtype": "float32", "shape": [2], "names": None},
}


def test_columns_are_grouped_as_they_were() -> None:
    found = group_columns(["effort_0", "effort_1", "observation.state.a", "observation.state.b"], STATED)
    assert [(each.key, each.columns) for each in found] == [
        ("observation.state", ("observation.state.a", "observation.state.b")),
        ("effort", ("effort_0", "effort_1")),
    ]
    assert found[0].describe("float32") == STATED["observation.state"]


def test_a_feature_that_lacks_a_column_is_not_grouped_as_it_was() -> None:
    found = group_columns(["effort_1", "observation.state.b"], STATED)
    assert [(each.key, each.columns) for each in found] == [
        ("observation.state", ("observation.state.b",)),
        ("effort_1", ("effort_1",)),
    ]


@pytest.mark.parametrize("stated", [None, "x", [1], {"a": 3}, {"effort": {"dtype": "float32", "shape": [-2]}}])
def test_features_that_are_none_are_not_used(stated: object) -> None:
    assert [each.key for each in group_columns(["effort_0"], stated)] == ["effort_0"]


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ("arm/cmd", "action"),
        ("desired_position", "action"),
        ("action.elbow", "action"),
        ("commander", "commander"),
        ("traction", "traction"),
    ],
)
def test_commands_are_found_by_whole_words(column: str, key: str) -> None:
    assert [each.key for each in group_columns([column], None)] == [key]


def test_columns_of_two_features_never_share_a_name() -> None:
    features = {
        "v": {"dtype": "float32", "shape": [1], "names": None},
        "v.x": {"dtype": "float32", "shape": [1], "names": None},
        "": {"dtype": "int64", "shape": [2, 1], "names": None},
    }
    features = {"v": {"dtype": "float32", "shape": [2], "names": ["x", "y"]}, **features, "v.y": features["v.x"]}
    named = [name for names in name_columns(features).values() for name in names]
    assert len(named) == len(set(named))


def test_names_of_features_hold_no_slash_and_are_unique() -> None:
    assert name_feature("/a/b", []) == "a.b"
    assert name_feature("/a/b", ["a.b", "a.b_2"]) == "a.b_3"
    assert name_feature("index", []) == "gapless.index"
    assert name_feature("/", []) == "column"
