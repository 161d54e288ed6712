from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.learn.policy import NetworkPolicy, check_fits, load_policy


def make_policy(sizes: tuple[int, ...] = (24, 8, 1), history: int = 6) -> NetworkPolicy:
    rng = np.random.default_rng(0)
    pairs = list(zip(sizes[1:], sizes[:-1], strict=True))
    return NetworkPolicy(
        tuple(rng.standard_normal(pair) for pair in pairs), tuple(rng.standard_normal(n) for n, _ in pairs), history
    )


class TaskShape:
    observation_size, action_size = 3, 1


def test_the_round_trip_through_a_file_is_exact(tmp_path: Path) -> None:
    policy, path = make_policy(), tmp_path / "policy.npz"
    path.write_bytes(policy.to_bytes())
    again = load_policy(path)
    assert again.history == policy.history
    for before, after in zip((*policy.weights, *policy.biases), (*again.weights, *again.biases), strict=True):
        np.testing.assert_array_equal(before, after)


def test_actions_have_their_closed_form() -> None:
    # tanh(2 * 0.5 + 0) = 0.7616; 0.5 * 0.7616 + 0.1 = 0.4808; beyond 1 it is cut
    policy = NetworkPolicy((np.array([[2.0]]), np.array([[0.5]])), (np.zeros(1), np.array([0.1])), 1)
    np.testing.assert_allclose(policy.act(np.array([[0.5]])), [[0.5 * np.tanh(1.0) + 0.1]])
    loud = NetworkPolicy((np.array([[5.0]]),), (np.zeros(1),), 1)
    np.testing.assert_array_equal(loud.act(np.array([[1.0], [-1.0]])), [[1.0], [-1.0]])


def text(path: Path) -> None:
    path.write_text("not a policy")


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def cut_off(path: Path) -> None:
    path.write_bytes(make_policy().to_bytes()[:400])


def other_arrays(path: Path) -> None:
    np.savez(path, a=np.zeros(3))


def one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def no_layers(path: Path) -> None:
    path.write_bytes(NetworkPolicy((), (), 1).to_bytes())


@pytest.mark.parametrize("write", [text, nothing, cut_off, other_arrays, one_array, no_layers])
def test_a_file_that_is_no_policy_is_one_clear_line(write, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    write(path)
    with pytest.raises(InputError, match="no policy that `gapless train` wrote") as caught:
        load_policy(path)
    assert str(caught.value).endswith("policy.npz")
    assert "\n" not in str(caught.value)


def test_a_missing_policy_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make one with `gapless train`"):
        load_policy(tmp_path / "none.npz")
    with pytest.raises(InputError, match="make one with `gapless train`"):
        load_policy(tmp_path)


def test_a_policy_of_another_task_is_refused() -> None:
    check_fits(make_policy(), TaskShape(), "policy.npz")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="maps 7 numbers to 1, the task needs 24 to 1"):
        check_fits(make_policy((7, 1)), TaskShape(), "policy.npz")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="maps 24 numbers to 2, the task needs 24 to 1"):
        check_fits(make_policy((24, 2)), TaskShape(), "policy.npz")  # type: ignore[arg-type]
