import numpy as np

from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext
from gapless.sim.realism.layers.friction import COGGING, FRICTION, LOAD_FRICTION, LUGRE
from unit.sim.realism.layers.one_layer import flat


def test_friction_is_breakaway_when_slow_and_coulomb_plus_viscous_when_fast() -> None:
    # At 0.03 rad/s, speed 0.1: (1 + 0.5 exp(-0.09)) tanh(6) = 1.457; at -5: 1 + 2 * 5 = 11, forwards.
    out = flat(
        FRICTION,
        np.zeros(3),
        seen={"velocity": np.array([0.0, 0.03, -5.0])},
        coulomb=1.0,
        hump=0.5,
        speed=0.1,
        viscous=2.0,
    )
    np.testing.assert_allclose(out, [0.0, -(1 + 0.5 * np.exp(-0.09)) * np.tanh(6) - 0.06, 11.0], rtol=1e-9)


def hump(velocity: np.ndarray, height: float, speed: float) -> np.ndarray:
    return flat(FRICTION, np.zeros(len(velocity)), seen={"velocity": velocity}, hump=height, speed=speed)


def test_the_stribeck_hump_in_closed_form() -> None:
    # At v = speed: -b * exp(-1) * tanh(20) = -0.5 * 0.36788; at rest 0; far away nothing is left.
    force = hump(np.array([0.1, 0.0, 2.0, -0.1]), 0.5, 0.1)
    np.testing.assert_allclose(force, [-0.5 * np.exp(-1), 0.0, 0.0, 0.5 * np.exp(-1)], atol=1e-12)


def test_the_stribeck_hump_opposes_motion_and_is_ideal_without_height() -> None:
    velocity = np.linspace(-1, 1, 101)
    assert np.all(hump(velocity, 0.3, 0.2) * velocity <= 0)
    assert not hump(velocity, 0.0, 0.2).any()


def test_load_adds_friction_in_proportion_and_against_the_motion() -> None:
    seen = {"velocity": np.array([1.0, -1.0, 1.0, 0.0]), "load": np.array([10.0, 10.0, -20.0, 10.0])}
    np.testing.assert_allclose(
        flat(LOAD_FRICTION, np.zeros(4), seen=seen, share=0.1), [-1.0, 1.0, -2.0, 0.0], atol=1e-9
    )
    slow = {"velocity": np.array([0.01]), "load": np.array([10.0])}
    np.testing.assert_allclose(flat(LOAD_FRICTION, np.zeros(1), seen=slow, share=0.1, speed=0.2), -np.tanh(1.0))


def test_lugre_bristles_are_a_spring_before_they_break_away_and_slip_at_coulomb() -> None:
    # Moved by 1 um at 1e5 N/m the bristles push back with 0.1 N; sliding slowly they hold 1.5 N, fast 1 N.
    knobs = {"coulomb": 1.0, "hump": 0.5, "speed": 0.001, "stiffness": 1e5, "damping": 0.0}
    creep = flat(LUGRE, np.zeros(2), step_s=1e-3, seen={"velocity": np.array([1e-3, 0.0])}, **knobs)
    np.testing.assert_allclose(creep[1], -0.1, rtol=0.06)  # and a little of it has slipped
    slow = flat(LUGRE, np.zeros(4000), step_s=5e-3, seen={"velocity": np.full(4000, 1e-5)}, **knobs)
    np.testing.assert_allclose(slow[-1], -1.5, rtol=1e-3)
    fast = flat(LUGRE, np.zeros(4000), step_s=1e-3, seen={"velocity": np.full(4000, 0.1)}, **knobs)
    np.testing.assert_allclose(fast[-1], -1.0, rtol=1e-3)


def test_lugre_slides_along_the_stribeck_curve() -> None:
    # At v = speed = 0.01: 1 + 0.5 / e + 2 * 0.01.
    knobs = {"coulomb": 1.0, "hump": 0.5, "speed": 0.01, "stiffness": 1e4, "viscous": 2.0}
    out = flat(LUGRE, np.zeros(2000), step_s=1e-3, seen={"velocity": np.full(2000, 0.01)}, **knobs)
    np.testing.assert_allclose(out[-1], -(1 + 0.5 / np.e + 0.02), rtol=1e-6)


def test_lugre_bristles_resist_being_bent() -> None:
    # The first step of 1 um/s over 1 ms: spring 1e5 * 1e-9 = 1e-4 N, damping 316 * 1e-6 = 3.16e-4 N.
    knobs = {"coulomb": 1.0, "stiffness": 1e5, "damping": 316.0}
    out = flat(LUGRE, np.zeros(1), step_s=1e-3, seen={"velocity": np.full(1, 1e-6)}, **knobs)
    np.testing.assert_allclose(out[0], -4.16e-4, rtol=1e-3)


def test_lugre_holds_a_mass_below_breakaway_and_lets_go_above() -> None:
    # 1 kg pulled by a force that grows slowly; breakaway 1.5 N, values of Canudas de Wit et al. 1995.
    knobs = LUGRE.typical(1, coulomb=1.0, hump=0.5, speed=1e-3, stiffness=1e5, damping=316.0, viscous=0.0)
    step_s, velocity, position, state = 1e-4, np.zeros((1, 1)), 0.0, None
    draws = Draws(0, np.zeros(1, dtype=np.uint64))
    moved = {}
    for k in range(20000):
        pull = np.array([[1e-4 * k]])
        context = LayerContext(step_s, draws, velocity=velocity)
        state = LUGRE.begin(pull, knobs, context) if state is None else state
        state, force = LUGRE.act(state, pull, knobs, context)
        velocity = velocity + step_s * force
        position += step_s * float(velocity[0, 0])
        moved[k] = position
    assert moved[14000] < 1e-4  # 1.4 N: bristles bend by tens of micrometres
    assert moved[19999] > 1e-2  # 2 N: it slides


def test_cogging_is_a_sine_of_the_angle() -> None:
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    out = flat(COGGING, np.ones(1000), seen={"position": angle}, amplitude=0.2, poles=7.0, phase=0.3)
    np.testing.assert_allclose(out, 1 + 0.2 * np.sin(7 * angle + 0.3))
