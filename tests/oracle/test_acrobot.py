"""Acrobot against Gymnasium's own, in lock-step: both sets of equations, with and without noise."""

import numpy as np
import pytest
from bits import assert_same_bits
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

ID = "Acrobot-v1"
N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])


def swinging(obs):
    """Pushes the way the first link swings, which gets the arm up in about a hundred steps."""
    return np.where(obs[:, 4] < 0, 2, 0)


def build(env, attributes):
    for name, value in attributes.items():
        env.set_attr(name, value)
    return env


def make_pair(mode, **attributes):
    return Lockstep(
        build(fastvec.make(ID, n=N, autoreset_mode=mode), attributes), build(make_oracle(ID, N, mode), attributes)
    )


def compare(mode, lane_steps, policy=None, attributes=(), **kwargs):
    return run_lockstep(
        lambda: build(fastvec.make(ID, n=N, autoreset_mode=mode, **kwargs), dict(attributes)),
        lambda: build(make_oracle(ID, N, mode, **kwargs), dict(attributes)),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=0.002,
    )


def play(pair, steps, rng):
    for _ in range(steps):
        if pair.ended.any() and pair.ours.metadata["autoreset_mode"].value == "Disabled":
            pair.reset(options={"reset_mask": pair.ended.copy()})
        pair.step(rng.integers(0, 3, N))


def states_of(pair):
    return np.array(pair.ours.get_attr("state"), np.float64)


@pytest.mark.parametrize("book_or_nips", ["book", "nips", "another"])
def test_random_play(mode, lane_steps, book_or_nips):
    compare(mode, lane_steps // 2, attributes={"book_or_nips": book_or_nips})


@pytest.mark.parametrize("book_or_nips", ["book", "nips"])
def test_swinging_up(mode, lane_steps, book_or_nips):
    counts = compare(mode, lane_steps // 2, swinging, {"book_or_nips": book_or_nips})
    assert counts["terminated"] > lane_steps / 4000


def test_a_limit_about_the_length_of_episodes(mode):
    lengths = []
    env = fastvec.make(ID, n=50, autoreset_mode="SameStep", episode_stats=True)
    obs, _ = env.reset(seed=0)
    while len(lengths) < 100:
        obs, _, _, _, info = env.step(swinging(obs))
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
    counts = compare(mode, 20_000, swinging, max_episode_steps=int(np.median(lengths)))
    assert counts["both"] > 0
    assert counts["terminated"] > counts["both"]
    assert counts["truncated"] > counts["both"]


@pytest.mark.parametrize("noise", [0.5, [0.0, 0.1, 0.0, 2.0, -1.0]], ids=["all lanes", "some lanes"])
def test_noise_is_drawn_in_lanes_that_have_it(mode, lane_steps, noise):
    counts = compare(mode, lane_steps // 4, swinging, {"torque_noise_max": noise})
    assert counts["terminated"] > 0


def test_noise_may_come_and_go(mode):
    pair = make_pair(mode)
    pair.reset(seed=0)
    rng = np.random.default_rng(0)
    for noise in (0.0, 1.0, [0.0, 0.0, 0.0, 0.0, 0.5], [0.0] * N, 0.25, 0):
        build(pair.ours, {"torque_noise_max": noise})
        build(pair.oracle, {"torque_noise_max": noise})
        play(pair, 40, rng)


@pytest.mark.parametrize("turns", [0.5, 3, 5_000])
def test_angles_wrap_and_speeds_are_bounded(mode, turns):
    pair = make_pair(mode)
    rng = np.random.default_rng(0)
    most = np.array([4 * np.pi, 9 * np.pi])
    wrapped = bounded = 0
    for _ in range(60):
        pair.reset(seed=int(rng.integers(1000)))
        states = [np.array([*rng.uniform(-turns, turns, 2) * 2 * np.pi, *rng.uniform(-most, most)]) for _ in range(N)]
        for env in (pair.ours, pair.oracle):
            env.set_attr("state", states)
        before = states_of(pair)
        pair.step(rng.integers(0, 3, N))
        after = states_of(pair)[~pair.ended]
        wrapped += int((abs(after - before[~pair.ended])[:, :2] > np.pi).sum())
        bounded += int((abs(after[:, 2:]) == most).sum())
    assert wrapped > 20
    assert bounded > 20


@pytest.mark.parametrize("bounds", [(-4, 4), (2.9, 3.2), (-12, 12), (0.0, 0.0), (1, 1.5)])
def test_reset_options(mode, bounds):
    """The first observation of an episode is of float32 angles, and NumPy's cosine of these is its own."""
    pair = make_pair(mode)
    low, high = bounds
    rng = np.random.default_rng(0)
    for options in ({"low": low, "high": high}, {"high": max(high, -0.1)}, {"low": min(low, 0.1)}, {}, None):
        for seed in (3, None, None):
            pair.reset(seed=seed, options=options)
        play(pair, 10, rng)
        pair.reset(options={**(options or {}), "reset_mask": np.arange(N) % 2 == 0})
        play(pair, 10, rng)


def test_many_first_observations():
    """One cosine in a thousand is not the rounded one of float64."""
    ours, oracle = fastvec.make(ID, n=400), make_oracle(ID, 400)
    not_rounded = 0
    for seed in range(20):
        obs, _ = ours.reset(seed=seed * 1000)
        assert_same_bits(obs, oracle.reset(seed=seed * 1000)[0], f"seed {seed * 1000}")
        angles = np.array(ours.get_attr("state"), np.float64)[:, :2]
        not_rounded += int((obs[:, [0, 2]] != np.cos(angles).astype(np.float32)).sum())
    assert not_rounded > 0


@pytest.mark.parametrize(
    "name",
    ["dt", "MAX_VEL_1", "MAX_VEL_2"]
    + [f"LINK_{part}" for part in ("LENGTH_1", "LENGTH_2", "MASS_1", "MASS_2", "COM_POS_1", "COM_POS_2", "MOI")],
)
def test_parameters_of_each_lane(mode, name):
    """Also lengths whose square pow rounds otherwise than a product."""
    pair = make_pair(mode)
    pair.reset(seed=3)
    usual = pair.oracle.get_attr(name)[0]
    rng = np.random.default_rng(0)
    lengths = np.random.default_rng(0).uniform(0.5, 2, 100_000)
    odd = next(float(length) for length in lengths if float(length) ** 2 != float(length) * float(length))
    for values in ([usual, usual * 0.3, usual * odd, usual * 1.2, usual * 1.5], usual * odd, usual):
        build(pair.ours, {name: values})
        build(pair.oracle, {name: values})
        play(pair, 30, rng)


def test_torques_of_each_lane(mode):
    pair = make_pair(mode)
    pair.reset(seed=3)
    rng = np.random.default_rng(0)
    assert pair.ours.get_attr("AVAIL_TORQUE") == pair.oracle.get_attr("AVAIL_TORQUE") == ([-1.0, 0.0, 1],) * N
    for torques in ([[-lane, 0.25, lane] for lane in range(N)], np.array([2.0, 1.0, -2.0])):
        build(pair.ours, {"AVAIL_TORQUE": torques})
        build(pair.oracle, {"AVAIL_TORQUE": torques})
        play(pair, 40, rng)
    with pytest.raises(TypeError, match="AVAIL_TORQUE"):
        pair.ours.set_attr("AVAIL_TORQUE", 1.0)


def test_the_state_is_float32_in_a_new_episode_and_float64_after(mode):
    pair = make_pair(mode)
    pair.reset(seed=3)
    for dtype in (np.float32, np.float64):
        for env in (pair.ours, pair.oracle):
            assert [state.dtype for state in env.get_attr("state")] == [dtype] * N
        pair.step(np.ones(N, np.int64))
