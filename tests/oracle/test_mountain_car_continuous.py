"""MountainCarContinuous against Gymnasium's own, in lock-step, with actions of every type that sets the precision."""

import numpy as np
import pytest
from bits import assert_same_bits
from lockstep import Lockstep, run_lockstep
from rollout import BOX_FORMS, make_oracle

import fastvec

ID = "MountainCarContinuous-v0"
N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])
LEFT_WALL = np.float32(-1.2)


class Rocking:
    """Pushes the way the car rolls, harder or less hard than allowed; counts what it sees.

    Attributes:
        at_wall: how often a car stood at the left wall.
        fastest: the greatest speed.
    """

    def __init__(self, form, strength=1.5):
        self.form, self.strength = form, strength
        self.rng = np.random.default_rng(0)
        self.at_wall, self.fastest = 0, 0.0

    def __call__(self, obs):
        position, velocity = obs.T
        self.at_wall += int(np.count_nonzero((position == LEFT_WALL) & (velocity == 0)))
        self.fastest = max(self.fastest, float(abs(velocity).max()))
        strength = self.rng.uniform(0.2, self.strength, len(obs))
        return self.form(np.where(velocity < 0, -strength, strength)[:, np.newaxis])


def random_play(form, reach=1.0):
    rng = np.random.default_rng(1)
    return lambda obs: form(rng.uniform(-reach, reach, (len(obs), 1)))


def make_pair(mode, **kwargs):
    return Lockstep(fastvec.make(ID, n=N, autoreset_mode=mode, **kwargs), make_oracle(ID, N, mode, **kwargs))


def compare(mode, lane_steps, policy, attributes=(), **kwargs):
    def build(env):
        for name, value in dict(attributes).items():
            env.set_attr(name, value)
        return env

    return run_lockstep(
        lambda: build(fastvec.make(ID, n=N, autoreset_mode=mode, **kwargs)),
        lambda: build(make_oracle(ID, N, mode, **kwargs)),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=0.01,
    )


def play(pair, steps, policy):
    for _ in range(steps):
        if pair.ended.any() and pair.ours.metadata["autoreset_mode"].value == "Disabled":
            pair.reset(options={"reset_mask": pair.ended.copy()})
        pair.step(policy(pair.obs))


@pytest.mark.parametrize("reach", [1.0, 3.0])
def test_random_play(mode, lane_steps, form, reach):
    compare(mode, lane_steps // 2, random_play(form, reach))


def test_left_wall_and_goal(mode, lane_steps, form):
    policy = Rocking(form)
    assert compare(mode, lane_steps // 2, policy)["terminated"] > lane_steps / 1000
    assert policy.at_wall > 0


def test_velocity_limit(mode, form):
    policy = Rocking(form)
    compare(mode, 5_000, policy, {"power": 0.02})
    assert policy.fastest == np.float32(0.07)


@pytest.mark.parametrize("goal_velocity", [0.04, 1])
def test_goal_velocity(mode, form, goal_velocity):
    counts = compare(mode, 5_000, Rocking(form, 0.9), goal_velocity=goal_velocity)
    assert (counts["terminated"] > 0) == (goal_velocity < 1)


def test_a_limit_about_the_length_of_episodes(mode):
    counts = compare(mode, 20_000, Rocking(BOX_FORMS["float32"]), max_episode_steps=111)
    assert counts["both"] > 0
    assert counts["terminated"] > counts["both"]
    assert counts["truncated"] > counts["both"]


def test_an_action_beyond_its_bounds_is_clipped_but_paid_for(mode, form):
    """Case C8: the next observation of 5 is that of 1, but the reward is not."""
    observations, rewards = [], []
    for action in (1.0, 5.0):
        pair = make_pair(mode)
        pair.reset(seed=0)
        actions = form(np.full((N, 1), action))
        results = [env.step(actions) for env in (pair.ours, pair.oracle)]
        assert_same_bits(results[0][:4], results[1][:4], f"action {action}")
        observations.append(results[0][0])
        rewards.append(results[0][1][0])
    expected = np.array([-0.4714886, 0.0011190565], np.float32)
    for obs in observations:
        assert_same_bits(obs[0], expected, "the observation")
    assert rewards == [-0.1, -2.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_that_are_not_finite_or_huge(mode, dtype):
    pair = make_pair(mode)
    pair.reset(seed=0)
    huge = [np.inf, -np.inf, np.finfo(np.float32).max, -0.0, 1e-45]
    for _ in range(20):
        pair.step(np.array(huge, dtype)[:, np.newaxis])
    assert pair.ours.step(np.array(huge, dtype)[:, np.newaxis])[1][0] == -np.inf


@pytest.mark.parametrize("bounds", [(-1.2, -1.2), (-1.3, -1.1), (0.4, 0.5), (0.6, 0.6), (-3, 3)])
def test_reset_options(mode, form, bounds):
    pair = make_pair(mode)
    low, high = bounds
    policy = random_play(form, 1.5)
    for options in ({"low": low, "high": high}, {"high": max(high, -0.6)}, {"low": min(low, -0.4)}, {}, None):
        pair.reset(seed=3, options=options)
        play(pair, 30, policy)


@pytest.mark.parametrize(
    "name", ["min_action", "max_action", "max_speed", "min_position", "max_position", "goal_position", "power"]
)
def test_parameters_of_each_lane(mode, form, name):
    """Also zero and negative ones, where bounds change places, and ones that float32 has not."""
    pair = make_pair(mode)
    pair.reset(seed=3)
    usual = pair.oracle.get_attr(name)[0]
    policy = random_play(form, 1.5)
    for values in ([usual, 0.0, -usual, usual * 3, usual / 7], -0.0, usual):
        for env in (pair.ours, pair.oracle):
            env.set_attr(name, values)
        play(pair, 50, policy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_state_that_is_set_has_its_own_precision(mode, form, dtype):
    pair = make_pair(mode)
    pair.reset(seed=3)
    policy = random_play(form)
    rng = np.random.default_rng(2)
    for _ in range(20):
        states = list(rng.uniform((-1.2, -0.07), (0.6, 0.07), (N, 2)).astype(dtype))
        for env in (pair.ours, pair.oracle):
            env.set_attr("state", states)
        assert_same_bits(pair.ours.get_attr("state"), pair.oracle.get_attr("state"), "state")
        pair.step(policy(pair.obs))
        if pair.ended.any():
            pair.reset()


def test_the_state_is_float64_in_a_new_episode_and_float32_after(mode):
    pair = make_pair(mode)
    pair.reset(seed=3)
    for dtype in (np.float64, np.float32):
        for env in (pair.ours, pair.oracle):
            assert [state.dtype for state in env.get_attr("state")] == [dtype] * N
        pair.step(np.zeros((N, 1), np.float32))
