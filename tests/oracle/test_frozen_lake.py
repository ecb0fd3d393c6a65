"""FrozenLake against Gymnasium's own, in lock-step: the draw in every step, maps, schedules, and starts."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

N = 5
SEEDS = (0, 99, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])
# Two starts beside each other and one in a corner, a hole, two goals, a map that is no square.
THREE_STARTS = ["SSFFG", "FHFFF", "SFFGF"]
# Letters that are none of S, F, G and H are as F; there is nothing to reach.
ENDLESS = ["FFxF", "FSFF"]


def compare(env_id, mode, lane_steps, policy=None, **kwargs):
    return run_lockstep(
        lambda: fastvec.make(env_id, n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle(env_id, N, mode, **kwargs),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
    )


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "FrozenLake8x8-v1"])
@pytest.mark.parametrize("is_slippery", [True, False])
def test_random_play(env_id, mode, lane_steps, is_slippery):
    assert compare(env_id, mode, lane_steps, is_slippery=is_slippery)["terminated"] > lane_steps / 100


@pytest.mark.parametrize(
    "kwargs",
    [
        {"desc": THREE_STARTS},
        {"desc": THREE_STARTS, "is_slippery": False},
        {"desc": ["SG"]},
        {"desc": [["S"], ["F"], ["G"]], "success_rate": 0.9},
        {"map_name": "8x8"},
        {"map_name": None, "desc": ["SFFF", "FHFH", "FFFH", "HFFG"]},
        {"success_rate": 0.75},
        {"success_rate": 1.0},
        {"success_rate": 0},
        {"success_rate": 0.1},
        {"reward_schedule": (10, -5, -0.1)},
        {"reward_schedule": (1.5, 0.0, -0.0), "is_slippery": False},
    ],
    ids=str,
)
def test_keywords(mode, lane_steps, kwargs):
    assert compare("FrozenLake-v1", mode, lane_steps // 4, **kwargs)["terminated"] > 0


@pytest.mark.filterwarnings("ignore:invalid value encountered in accumulate:RuntimeWarning")
@pytest.mark.parametrize("success_rate", [1.5, -0.5, float("nan"), float("inf")])
def test_probabilities_that_are_none(mode, success_rate):
    """Gymnasium takes any success rate; sums of such probabilities fall again, or are NaN, and the draw has a result.

    One lane, as SyncVectorEnv has no room for a NaN beside the int of a reset.
    """
    kwargs = {"success_rate": success_rate, "max_episode_steps": 30}
    counts = run_lockstep(
        lambda: fastvec.make("FrozenLake-v1", n=1, autoreset_mode=mode, **kwargs),
        lambda: make_oracle("FrozenLake-v1", 1, mode, **kwargs),
        seeds=(0, 1),
    )
    assert counts["terminated"] + counts["truncated"] > 10


def test_a_lane_that_can_only_be_truncated(mode, lane_steps):
    counts = compare("FrozenLake-v1", mode, lane_steps // 2, desc=ENDLESS, max_episode_steps=9)
    assert counts["truncated"] > 0
    assert counts["terminated"] == 0


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
def test_a_map_without_a_start_begins_at_its_first_tile(mode):
    compare("FrozenLake-v1", mode, 1_000, desc=["FF", "FG"])


def test_all_starts_are_drawn():
    pair = Lockstep(
        fastvec.make("FrozenLake-v1", n=N, desc=THREE_STARTS), make_oracle("FrozenLake-v1", N, desc=THREE_STARTS)
    )
    starts = set()
    for seed in range(20):
        pair.reset(seed=seed)
        starts.update(pair.obs.tolist())
    assert starts == {0, 1, 10}


def test_the_way_to_the_goal(mode):
    """From start to goal without slipping, and over the edge of the map on the way."""
    pair = Lockstep(
        fastvec.make("FrozenLake-v1", n=N, autoreset_mode=mode, is_slippery=False),
        make_oracle("FrozenLake-v1", N, mode, is_slippery=False),
    )
    pair.reset(seed=0)
    left, down, right, up = range(4)
    for action in (up, left, down, down, left, right, down, down, right, right):
        pair.step(np.full(N, action))
    assert pair.counts["terminated"] == N
    assert pair.ended.all()
