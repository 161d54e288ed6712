from architecture.tree import PACKAGE


def test_modules_beside_the_rooms_are_few() -> None:
    # Code lives in rooms; only the package itself and single-file rooms such as verbs.py stand beside them.
    assert {path.stem for path in PACKAGE.glob("*.py")} <= {"__init__", "__main__", "verbs"}
