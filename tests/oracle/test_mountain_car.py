"""MountainCar against Gymnasium's own, in lock-step."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])
LEFT_WALL = np.float32(-1.2)


class Rocking:
    """Pushes the way the car rolls, which gets it to the top; counts how often a car stood at the left wall."""

    def __init__(self):
        self.at_wall = 0

    def __call__(self, obs):
        position, velocity = obs.T
        self.at_wall += int(np.count_nonzero((position == LEFT_WALL) & (velocity == 0)))
        return np.where(velocity < 0, 0, 2)


def compare(mode, lane_steps, policy=None, **kwargs):
    return run_lockstep(
        lambda: fastvec.make("MountainCar-v0", n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle("MountainCar-v0", N, mode, **kwargs),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=0.002,
    )


def test_random_play(mode, lane_steps):
    assert compare(mode, lane_steps)["truncated"] > lane_steps / 400


def test_left_wall_and_goal(mode, lane_steps):
    policy = Rocking()
    assert compare(mode, lane_steps, policy)["terminated"] > lane_steps / 300
    assert policy.at_wall > lane_steps / 1000


@pytest.mark.parametrize("goal_velocity", [0.03, 0.045, np.float64(0.02), 1])
def test_goal_velocity(mode, goal_velocity):
    """A car too slow at the top is no success, and may roll over it."""
    counts = compare(mode, 5_000, Rocking(), goal_velocity=goal_velocity)
    assert (counts["terminated"] > 0) == (goal_velocity < 1)


def test_a_limit_about_the_length_of_episodes(mode, lane_steps):
    counts = compare(mode, lane_steps, Rocking(), max_episode_steps=121)
    assert counts["both"] > 0
    assert counts["terminated"] > counts["both"]
    assert counts["truncated"] > counts["both"]


@pytest.mark.parametrize("bounds", [(-1.2, -1.2), (-1.3, -1.1), (0.45, 0.55), (0.6, 0.6), (-3, 3), (-0.6, -0.4)])
def test_reset_options(mode, bounds):
    pair = Lockstep(fastvec.make("MountainCar-v0", n=N, autoreset_mode=mode), make_oracle("MountainCar-v0", N, mode))
    low, high = bounds
    rng = np.random.default_rng(0)
    for options in ({"low": low, "high": high}, {"high": max(high, -0.6)}, {"low": min(low, -0.4)}, {}, None):
        pair.reset(seed=3, options=options)
        for _ in range(40):
            if pair.ended.any() and mode.value == "Disabled":
                pair.reset(options={"reset_mask": pair.ended.copy()})
            pair.step(rng.integers(0, 3, N))


@pytest.mark.parametrize("name", ["max_speed", "min_position", "max_position", "goal_position", "force", "gravity"])
def test_parameters_of_each_lane(mode, name):
    """Also zero and negative ones, where bounds change places."""
    pair = Lockstep(fastvec.make("MountainCar-v0", n=N, autoreset_mode=mode), make_oracle("MountainCar-v0", N, mode))
    pair.reset(seed=3)
    usual = pair.oracle.get_attr(name)[0]
    zero = 1e-9 if name == "max_speed" else 0.0  # differences.md has a bound of zero: D44
    rng = np.random.default_rng(0)
    for values in ([usual, zero, -usual, usual * 3, usual / 7], -zero, usual):
        for env in (pair.ours, pair.oracle):
            env.set_attr(name, values)
        for _ in range(60):
            if pair.ended.any() and mode.value == "Disabled":
                pair.reset(options={"reset_mask": pair.ended.copy()})
            pair.step(rng.integers(0, 3, N))
