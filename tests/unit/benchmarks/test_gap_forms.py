from unit.benchmarks.parts import part


def test_a_form_is_right_at_its_joint_and_as_a_function_of_its_variable() -> None:
    truth = {"places": ["elbow"], "variables": ["time", "temperature"]}
    first = {"name": "elbow", "variable": "temperature"}
    assert part("gap_forms").form_right({"remainder": [first, {"name": "yaw", "variable": "run"}]}, truth)
    assert not part("gap_forms").form_right({"remainder": [{**first, "name": "yaw"}]}, truth)
    assert not part("gap_forms").form_right({"remainder": [{**first, "variable": "load"}]}, truth)


def test_no_form_is_not_right() -> None:
    assert not part("gap_forms").form_right({"remainder": []}, {"places": ["elbow"], "variables": ["time"]})


def test_cases_of_the_splits_differ_in_seed_and_are_enough() -> None:
    test, tuning = part("gap_forms").form_cases("test"), part("gap_forms").form_cases("tuning")
    assert len(test) >= 60
    assert not {case.seed for case in test} & {case.seed for case in tuning}
    assert {case.effect for case in test} == set(part("gap_forms").FORMS)
