"""Resets of some lanes: ``reset(options={"reset_mask": mask})`` in every mode."""

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import lanes_of, make_single, parts_of, play, proceed, sample_actions

import fastvec

N = 6


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (50, N), np.random.default_rng(7))


def make(env_id, mode):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=9)


def test_other_lanes_show_what_they_showed_and_go_on_undisturbed(env_id, mode, actions):
    mask = np.array([False, True, False, False, True, True])
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    trajectory = play(env, actions[:13], seed=1)
    before = [rows[-1] for name, rows in trajectory.items() if name.startswith("next_obs")]
    play(undisturbed, actions[:13], seed=1)
    obs, info = env.reset(options={"reset_mask": mask})
    for part, rows in zip(parts_of(obs), before, strict=True):
        assert_same_bits(part[~mask], rows[~mask], "rows of other lanes")
    assert type(info) is dict
    expected = lanes_of(proceed(undisturbed, actions), ~mask)
    assert_same_bits(lanes_of(proceed(env, actions), ~mask), expected, "other lanes")


def test_the_callers_options_are_read_and_never_changed(env_id, mode, actions):
    env = make(env_id, mode)
    play(env, actions[:3], seed=1)
    mask = np.arange(N) % 2 == 0
    options = {"reset_mask": mask}
    env.reset(options=options)
    assert list(options) == ["reset_mask"]
    assert options["reset_mask"] is mask
    assert_same_bits(mask, np.arange(N) % 2 == 0, "mask")


def test_a_mask_may_be_read_only_or_strided(env_id, mode, actions):
    mask = np.array([True, False, True, True, False, False])
    frozen = mask.copy()
    frozen.setflags(write=False)
    runs = []
    for form in (mask, frozen, np.repeat(mask, 3)[::3], mask[::-1].copy()[::-1]):
        env = make(env_id, mode)
        play(env, actions[:13], seed=1)
        env.reset(options={"reset_mask": form})
        runs.append(proceed(env, actions))
    for run in runs[1:]:
        assert_same_bits(run, runs[0], "mask in another form")


def test_a_masked_reset_of_a_lane_that_ended_cancels_its_pending_reset(env_id, actions):
    """In NEXT_STEP mode the lane's next step is a real one; lanes left out keep their reset row."""
    env, disabled = make(env_id, AutoresetMode.NEXT_STEP), make(env_id, AutoresetMode.DISABLED)
    trajectory = play(make(env_id, AutoresetMode.NEXT_STEP), actions, seed=1)
    ended = trajectory["terminations"] | trajectory["truncations"]
    first_ends = ended & (np.cumsum(ended, axis=0) == 1)
    last = int(np.argmax(first_ends.sum(axis=1) >= 2))
    reset, left_out = np.flatnonzero(first_ends[last])[:2]
    for each in (env, disabled):
        play(each, actions[: last + 1], seed=1)
    mask = np.arange(N) == reset
    env.reset(options={"reset_mask": mask})
    stepped, expected = (proceed(each, actions[last + 1 : last + 2]) for each in (env, disabled))
    for name in expected:
        if not name.startswith("next_obs"):  # where the modes differ, should the lane end again
            assert_same_bits(stepped[name][:, mask], expected[name][:, mask], f"{name} of the lane that was reset")
    assert stepped["rewards"][0, left_out] == 0
    assert not stepped["terminations"][0, left_out]
    assert not stepped["truncations"][0, left_out]


BAD_MASKS = [
    ([True] * N, TypeError),
    (True, TypeError),
    (np.ones(N - 1, bool), ValueError),
    (np.ones((N, 1), bool), ValueError),
    (np.array(True), ValueError),
    (np.ones(N, np.int64), TypeError),
    (np.ones(N, np.uint8), TypeError),
    (np.zeros(N, bool), ValueError),
]


@pytest.mark.parametrize(("mask", "error"), BAD_MASKS, ids=[str(i) for i in range(len(BAD_MASKS))])
def test_a_bad_mask_is_refused_and_changes_nothing(env_id, mode, actions, mask, error):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:13], seed=1)
    with pytest.raises(error, match="reset_mask"):
        env.reset(seed=5, options={"reset_mask": mask})
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad mask")
    assert_same_bits(play(env, actions), play(undisturbed, actions), "after the next reset")
