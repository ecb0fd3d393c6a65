"""Episode statistics: ``info["episode"]`` as Gymnasium 1.4's vector RecordEpisodeStatistics fills it, in every mode."""

import time

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from rollout import make_single, play, sample_actions

import fastvec

N = 7
STEPS = 120
LIMIT = 11
# Gymnasium's wrapper counts SAME_STEP episodes wrong before 1.4; fastvec does what 1.4 does on every version.
GYMNASIUM = tuple(int(part) for part in gymnasium.__version__.split(".")[:2])
COUNTED_MODES = [mode for mode in AutoresetMode if mode != AutoresetMode.SAME_STEP or GYMNASIUM >= (1, 4)]


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (STEPS, N), np.random.default_rng(7))


def make(env_id, mode, **kwargs):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=LIMIT, **kwargs)


def drive(env, actions, interrupt=False):
    """Yields (rewards, ended, info, lanes reset after the step) of each step."""
    env.reset(seed=3)
    disabled = env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    for step, row in enumerate(actions):
        _, rewards, terminations, truncations, info = env.step(row)
        ended = terminations | truncations
        mask = ended.copy() if disabled else np.zeros(N, bool)
        if interrupt and step % 5 == 4:
            mask |= np.arange(N) % 3 == step % 3
        yield rewards, ended, info, mask
        if mask.any():
            env.reset(options={"reset_mask": mask.copy()})


@pytest.mark.parametrize("interrupt", [False, True])
def test_returns_and_lengths_are_those_of_the_steps_between(env_id, mode, actions, interrupt):
    """Sums in float64, from the first reward on; a caller's reset begins anew; a reset row counts for nothing."""
    returns, lengths = np.zeros(N), np.zeros(N, int)
    waiting = np.zeros(N, bool)
    episodes = 0
    for rewards, ended, info, mask in drive(make(env_id, mode, episode_stats=True), actions, interrupt):
        returns[waiting], lengths[waiting] = 0, 0
        returns[~waiting] += rewards[~waiting]
        lengths[~waiting] += 1
        assert ("episode" in info) == ("_episode" in info) == ended.any()
        if ended.any():
            assert set(info["episode"]) == {"r", "l", "t"}
            assert_same_bits(info["_episode"], ended, "_episode")
            assert_same_bits(info["episode"]["r"], np.where(ended, returns, 0.0), "returns")
            assert_same_bits(info["episode"]["l"], np.where(ended, lengths, 0), "lengths")
            episodes += int(ended.sum())
        waiting = ended & ~mask if mode == AutoresetMode.NEXT_STEP else np.zeros(N, bool)
        began = (mask | ended) if mode == AutoresetMode.SAME_STEP else mask
        returns[began], lengths[began] = 0, 0
    assert episodes > 20


@pytest.mark.parametrize("counted_mode", COUNTED_MODES, ids=lambda mode: mode.value)
def test_equals_gymnasiums_wrapper(env_id, counted_mode, actions):
    """All but the seconds. The wrapper is around fastvec: SyncVectorEnv hides reset masks from it."""
    ours = drive(make(env_id, counted_mode, episode_stats=True), actions)
    theirs = drive(RecordEpisodeStatistics(make(env_id, counted_mode)), actions)
    for (_, _, info, _), (_, _, expected, _) in zip(ours, theirs, strict=True):
        assert set(info) == set(expected)
        if "episode" in expected:
            assert_same_bits(info["_episode"], expected["_episode"], "_episode")
            for key in ("r", "l"):
                assert_same_bits(info["episode"][key], expected["episode"][key], key)
            assert info["episode"]["t"].dtype == expected["episode"]["t"].dtype
            assert info["episode"]["t"].shape == (N,)


def test_seconds_are_those_since_the_lane_was_reset(env_id, mode):
    env = make(env_id, mode, episode_stats=True)
    row = sample_actions(env.single_action_space, (N,), np.random.default_rng(0))
    begin = time.perf_counter()
    env.reset(seed=0)
    time.sleep(0.02)
    info = {}
    while "episode" not in info:
        *_, info = env.step(row)
    elapsed = time.perf_counter() - begin
    ended = info["_episode"]
    seconds = info["episode"]["t"]
    assert (seconds[ended] >= 0.02).all()
    assert (seconds[ended] <= elapsed + 1e-6).all()
    assert (seconds[~ended] == 0).all()


def test_statistics_change_nothing_else(env_id, mode, actions):
    with_statistics = play(make(env_id, mode, episode_stats=True), actions, seed=3)
    assert_same_bits(with_statistics, play(make(env_id, mode), actions, seed=3), "with statistics")


def test_there_are_none_unless_asked_for(env_id, mode, actions):
    for _, _, info, _ in drive(make(env_id, mode), actions):
        assert "episode" not in info
        assert "_episode" not in info


def test_told_statistics_never_change(env_id, mode, actions):
    kept = [
        (info["episode"]["r"], info["episode"]["r"].copy(), info["_episode"], info["_episode"].copy())
        for _, ended, info, _ in drive(make(env_id, mode, episode_stats=True), actions)
        if ended.any()
    ]
    for returns, returns_then, mask, mask_then in kept:
        assert_same_bits(returns, returns_then, "returns told earlier")
        assert_same_bits(mask, mask_then, "mask told earlier")
