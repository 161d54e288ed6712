import numpy as np

from gapless.sim.realism.layers.spread import SPREAD
from unit.sim.realism.layers.playing import run


def test_robots_keep_their_factors_and_trials_vary_about_them() -> None:
    # 100 robots with 50 trials each, a world per trial.
    robot = np.repeat(np.arange(100.0), 50)[:, None]
    out = run(SPREAD, np.ones((1, 3)), num_worlds=5000, robot=robot, fleet=0.3, trial=0.05)[0]
    logs = np.log(out).reshape(100, 50, 3)
    np.testing.assert_allclose(logs.std(axis=1).mean(), 0.05, rtol=0.05)
    np.testing.assert_allclose(logs.mean(axis=1).std(), 0.3, rtol=0.15)
    assert abs(np.corrcoef(logs.mean(axis=1).T)[0, 1]) < 0.3


def test_the_same_robot_in_another_world_is_the_same() -> None:
    first = run(SPREAD, np.ones((1, 4)), num_worlds=3, robot=np.array([[5.0], [6.0], [5.0]]), fleet=0.3)[0]
    assert np.array_equal(first[0], first[2])
    assert not np.array_equal(first[0], first[1])


def test_factors_last_the_whole_trial() -> None:
    out = run(SPREAD, np.ones((20, 2)), trial=0.1)
    assert np.ptp(out, axis=0).max() == 0.0
