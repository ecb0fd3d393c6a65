"""The step limit: exact, counted from the lane's own reset, and reported beside ``terminated``, not instead of it."""

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import make_single, play, sample_actions

import fastvec

N = 32


def first_endings(env_id, steps=2000):
    """Random play without a limit: actions, its trajectory, and each lane's first terminating step, or 0 for none."""
    space = make_single(env_id).action_space
    actions = sample_actions(space, (steps, N), np.random.default_rng(3))
    trajectory = play(fastvec.make(env_id, n=N, max_episode_steps=-1), actions, seed=8)
    terminations = trajectory["terminations"]
    return actions, trajectory, np.where(terminations.any(0), terminations.argmax(0) + 1, 0)


def test_no_limit_never_truncates(env_id, mode):
    actions = sample_actions(make_single(env_id).action_space, (1500, 4), np.random.default_rng(3))
    env = fastvec.make(env_id, n=4, autoreset_mode=mode, max_episode_steps=-1)
    assert not play(env, actions, seed=8)["truncations"].any()


def test_a_lane_is_truncated_at_the_limit_and_at_no_other_step(env_id, mode):
    """Each lane counts for itself: episodes that terminate earlier put the lanes out of step."""
    limit, steps = 3, 200
    actions = sample_actions(make_single(env_id).action_space, (steps, N), np.random.default_rng(3))
    env = fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=limit)
    trajectory = play(env, actions, seed=8)
    length, reset_row = np.zeros(N, int), np.zeros(N, bool)
    for step in range(steps):
        length = np.where(reset_row, 0, length + 1)
        assert_same_bits(trajectory["truncations"][step], length == limit, f"step {step}")
        ended = trajectory["terminations"][step] | trajectory["truncations"][step]
        reset_row = ended & (mode == AutoresetMode.NEXT_STEP)
        length[ended] = 0
    assert trajectory["truncations"].any()


@pytest.mark.parametrize("limit", [1, 2, 5, 19, 200])
def test_the_limit_changes_nothing_before_it(env_id, mode, limit):
    actions, free, _ = first_endings(env_id, steps=limit)
    env = fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=limit)
    limited = play(env, actions, seed=8)
    alive = ~np.logical_or.accumulate(free["terminations"], 0)
    for lane in range(N):
        survived = int(alive[:, lane].sum())
        assert not limited["truncations"][: min(survived, limit - 1), lane].any()
        assert_same_bits(limited["rewards"][:survived, lane], free["rewards"][:survived, lane], f"lane {lane}")


def test_both_flags_where_the_last_step_allowed_terminates(terminating_env_id, mode):
    actions, _, ends = first_endings(terminating_env_id)
    lane = int(np.flatnonzero(ends)[0])
    for limit, truncated in ((ends[lane], True), (ends[lane] + 1, False)):
        env = fastvec.make(terminating_env_id, n=N, autoreset_mode=mode, max_episode_steps=int(limit))
        trajectory = play(env, actions[: ends[lane]], seed=8)
        assert trajectory["terminations"][-1, lane]
        assert trajectory["truncations"][-1, lane] == truncated


def test_the_limit_is_gymnasiums_by_default(any_env_id):
    assert fastvec.make(any_env_id).spec.max_episode_steps == make_single(any_env_id).spec.max_episode_steps


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 10**12, 2**63 - 2, 2**63 - 1])
def test_a_limit_that_is_never_reached_truncates_nothing(env_id, mode, limit):
    actions = sample_actions(make_single(env_id).action_space, (60, 4), np.random.default_rng(3))
    env, free = (fastvec.make(env_id, n=4, autoreset_mode=mode, max_episode_steps=most) for most in (limit, -1))
    assert_same_bits(play(env, actions, seed=8), play(free, actions, seed=8), f"limit {limit}")


@pytest.mark.parametrize("bad", [0, -2, 2.5, -1.0, "5", True, 2**63, np.array([3, 4]), float("inf")], ids=repr)
def test_any_other_limit_is_refused(env_id, bad):
    with pytest.raises((ValueError, TypeError)) as caught:
        fastvec.make(env_id, max_episode_steps=bad)
    assert "max_episode_steps" in str(caught.value)
    assert repr(bad) in str(caught.value) or type(bad).__name__ in str(caught.value)
