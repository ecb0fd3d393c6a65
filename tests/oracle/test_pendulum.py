"""Pendulum against Gymnasium's own, in lock-step, with actions of both precisions."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

ID = "Pendulum-v1"
N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])


def random_play(form, reach=2.0):
    rng = np.random.default_rng(1)
    return lambda obs: form(rng.uniform(-reach, reach, (len(obs), 1)))


def make_pair(mode, **kwargs):
    return Lockstep(fastvec.make(ID, n=N, autoreset_mode=mode, **kwargs), make_oracle(ID, N, mode, **kwargs))


def play(pair, steps, policy):
    for _ in range(steps):
        if pair.ended.any() and pair.ours.metadata["autoreset_mode"].value == "Disabled":
            pair.reset(options={"reset_mask": pair.ended.copy()})
        pair.step(policy(pair.obs))


def compare(mode, lane_steps, policy, **kwargs):
    return run_lockstep(
        lambda: fastvec.make(ID, n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle(ID, N, mode, **kwargs),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=0.002,
    )


@pytest.mark.parametrize("reach", [2.0, 5.0])
def test_random_play(mode, lane_steps, form, reach):
    counts = compare(mode, lane_steps // 2, random_play(form, reach))
    assert counts["truncated"] > 0
    assert counts["terminated"] == 0


@pytest.mark.parametrize("g", [9.81, 10, 0.0, -3.7, 1e3])
def test_gravity(mode, form, g):
    compare(mode, 2_000, random_play(form), g=g)


@pytest.mark.parametrize("turns", [1, 100, 1e7, 1e14, 1e17])
def test_far_from_zero(mode, form, turns):
    """Whole turns are not taken off the angle, so that a pendulum that spins goes far."""
    pair = make_pair(mode)
    pair.reset(seed=0)
    rng = np.random.default_rng(3)
    policy = random_play(form)
    for _ in range(30):
        states = [np.array([rng.uniform(-turns, turns) * 2 * np.pi, rng.uniform(-8, 8)]) for _ in range(N)]
        states[0][0] = np.rint(turns) * 2 * np.pi - np.pi  # the jump of the angle that is paid for
        for env in (pair.ours, pair.oracle):
            env.set_attr("state", states)
        play(pair, 3, policy)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow encountered")
def test_states_that_are_not_finite(mode, form):
    pair = make_pair(mode)
    pair.reset(seed=0)
    odd = [np.array(state) for state in ([np.nan, 0.0], [0.0, np.nan], [0.0, np.inf], [0.0, -1e200], [1e-310, -0.0])]
    for env in (pair.ours, pair.oracle):
        env.set_attr("state", odd)
    for _ in range(5):
        actions = form(np.zeros((N, 1)))
        ours, theirs = pair.ours.step(actions), pair.oracle.step(actions)
        for one, other in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(one, other, strict=True)  # the sign of a NaN tells nothing


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_that_are_not_finite_or_huge(mode, dtype):
    """Case C6: an infinite torque is clipped."""
    pair = make_pair(mode)
    pair.reset(seed=0)
    for _ in range(20):
        pair.step(np.array([[np.inf], [-np.inf], [np.finfo(np.float32).max], [-0.0], [1e-45]], dtype))


@pytest.mark.parametrize(
    "options",
    [{"x_init": 0.5, "y_init": 0.25}, {"x_init": 0}, {"y_init": 0.0}, {"y_init": 20}, {"x_init": 1e6}, {}, None],
    ids=str,
)
def test_reset_options(mode, form, options):
    pair = make_pair(mode)
    policy = random_play(form)
    for seed in (3, None):
        pair.reset(seed=seed, options=options)
        play(pair, 20, policy)
    pair.reset(options={**(options or {}), "reset_mask": np.arange(N) % 2 == 0})
    play(pair, 20, policy)


@pytest.mark.parametrize("name", ["max_speed", "max_torque", "dt", "g", "m", "l"])
def test_parameters_of_each_lane(mode, form, name):
    """Also ones that float32 has not, and lengths whose square pow rounds otherwise than a product."""
    pair = make_pair(mode)
    pair.reset(seed=3)
    usual = pair.oracle.get_attr(name)[0]
    policy = random_play(form, 3.0)
    lengths = np.random.default_rng(0).uniform(0.5, 2, 100_000)
    odd = next(float(length) for length in lengths if float(length) ** 2 != float(length) * float(length))
    for values in ([usual, usual * 0.3, usual * odd, odd, usual / 7], odd, usual):
        for env in (pair.ours, pair.oracle):
            env.set_attr(name, values)
        play(pair, 50, policy)


def test_the_last_torque_is_kept(mode):
    """Gymnasium's renderer shows it; lock-step compares it in every other test here."""
    pair = make_pair(mode)
    pair.reset(seed=3)
    assert pair.ours.get_attr("last_u") == pair.oracle.get_attr("last_u") == (None,) * N
    pair.step(np.array([[0.5], [-0.25], [9], [-9], [0]], np.float32))
    assert pair.ours.get_attr("last_u") == pair.oracle.get_attr("last_u") == (0.5, -0.25, 2.0, -2.0, 0.0)
