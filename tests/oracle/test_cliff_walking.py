"""CliffWalking against Gymnasium's own, in lock-step: it has no step limit, and random play seldom ends."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

N = 5
IDS = ["CliffWalking-v1", "CliffWalkingSlippery-v1"]
UP, RIGHT, DOWN, LEFT = range(4)


def compare(env_id, mode, lane_steps, policy=None, **kwargs):
    return run_lockstep(
        lambda: fastvec.make(env_id, n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle(env_id, N, mode, **kwargs),
        seeds=(0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5]),
        lane_steps=lane_steps,
        policy=policy,
    )


def careful(obs):
    """Along the row above the cliff, and down at its end; right in the start row is a step off the cliff."""
    return np.select([obs == 36, obs % 12 == 11, obs // 12 == 2], [UP, DOWN, RIGHT], RIGHT)


@pytest.mark.parametrize("env_id", IDS)
def test_random_play(env_id, mode, lane_steps):
    assert compare(env_id, mode, lane_steps)["truncated"] == 0


@pytest.mark.parametrize("env_id", IDS)
def test_careful_play_reaches_the_goal(env_id, mode, lane_steps):
    assert compare(env_id, mode, lane_steps, policy=careful)["terminated"] > lane_steps / 1000


@pytest.mark.parametrize("is_slippery", [False, True])
def test_the_keyword_goes_before_the_id(mode, is_slippery):
    for env_id in IDS:
        compare(env_id, mode, 2_000, policy=careful, is_slippery=is_slippery)


def test_a_limit(mode, lane_steps):
    counts = compare("CliffWalking-v1", mode, lane_steps // 2, policy=careful, max_episode_steps=13)
    assert counts["both"] == counts["terminated"] > 0


def test_off_the_cliff_and_over_the_edges():
    pair = Lockstep(fastvec.make("CliffWalking-v1", n=N), make_oracle("CliffWalking-v1", N))
    pair.reset(seed=0)
    for action in (DOWN, LEFT, RIGHT, UP, LEFT, RIGHT, DOWN, UP, UP, UP, UP, RIGHT, DOWN):
        pair.step(np.full(N, action))
    assert pair.counts["terminated"] == 0
