"""The native Counter against fastvec.CounterEnv, the ordinary class of the same env, in lock-step."""

import numpy as np
import pytest
from lockstep import run_lockstep
from rollout import make_oracle

import fastvec

N = 5


def compare(mode, lane_steps, policy=None, **kwargs):
    return run_lockstep(
        lambda: fastvec.make("Counter-v0", n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle("Counter-v0", N, mode, **kwargs),
        seeds=(0, [5, 4, 3, 2, 1]),
        lane_steps=lane_steps,
        policy=policy,
    )


def test_random_play(mode, lane_steps):
    assert compare(mode, lane_steps)["terminated"] > lane_steps / 50


@pytest.mark.parametrize("limit", [12, 14])
def test_limits_about_the_lengths_of_episodes(mode, lane_steps, limit):
    """Episodes take 10 to 20 steps: some end before the limit, some at it, some are cut off."""
    counts = compare(mode, lane_steps, max_episode_steps=limit)
    assert counts["both"] > 0
    assert counts["terminated"] > counts["both"]
    assert counts["truncated"] > counts["both"]


def test_the_slowest_and_the_fastest_episode(mode):
    for action, length in ((0, 20), (1, 10)):
        counts = compare(mode, 2_000, lambda obs, a=action: np.full(N, a), max_episode_steps=length)
        assert counts["both"] == counts["terminated"] == counts["truncated"] > 0
