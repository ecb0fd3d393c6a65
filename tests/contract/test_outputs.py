"""Who owns what a call returns: new arrays every time, or with copy=False the same ones."""

import copy
import itertools

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import play, reset_ended, sample_actions

import fastvec

STEPS = 40


def walk(env, rng):
    """Yields everything that reset and then each step of a short run return."""
    yield env.reset(seed=0)
    for _ in range(STEPS):
        result = env.step(sample_actions(env.single_action_space, (env.num_envs,), rng))
        yield result
        ended = result[2] | result[3]
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
            yield env.reset(options={"reset_mask": ended})


def arrays_of(value):
    """All arrays in what a call returned."""
    if isinstance(value, np.ndarray):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return [array for item in items for array in arrays_of(item)]


def test_what_was_returned_never_changes(env_id, mode):
    env = fastvec.make(env_id, n=6, autoreset_mode=mode, max_episode_steps=9)
    returned, copies = [], []
    for result in walk(env, np.random.default_rng(0)):
        returned.append(result)
        copies.append(copy.deepcopy(result))
    env.close()
    assert_same_bits(returned, copies, "returned earlier")


def test_no_two_returned_arrays_share_memory(env_id, mode):
    env = fastvec.make(env_id, n=6, autoreset_mode=mode, max_episode_steps=3)
    arrays = [array for result in walk(env, np.random.default_rng(0)) for array in arrays_of(result)]
    spans = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays)
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert end <= begin


def test_writing_to_what_was_returned_changes_nothing(env_id, mode):
    env, undisturbed = (fastvec.make(env_id, n=6, autoreset_mode=mode, max_episode_steps=9) for _ in range(2))
    ours, theirs = walk(env, np.random.default_rng(0)), walk(undisturbed, np.random.default_rng(0))
    for result, expected in zip(ours, theirs, strict=True):
        assert_same_bits(result, expected, "result")
        flags = [array.copy() for array in result[2:4]] if len(result) == 5 else []
        for array in arrays_of(result):
            array.fill(77)
        for array, kept in zip(result[2:4], flags, strict=False):
            array[:] = kept


def test_copy_false_returns_the_same_arrays(env_id, mode):
    env = fastvec.make(env_id, n=6, autoreset_mode=mode, copy=False)
    obs, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    first = env.step(sample_actions(env.single_action_space, (6,), rng))
    reset_ended(env, first)
    second = env.step(sample_actions(env.single_action_space, (6,), rng))
    for before, after in zip(arrays_of(first[:4]), arrays_of(second[:4]), strict=True):
        assert before is after
    for before, after in zip(arrays_of(obs), arrays_of(second[0]), strict=True):
        assert before is after


def test_copy_false_returns_the_same_values(env_id, mode):
    actions = None
    trajectories = []
    for copy_outputs in (True, False):
        env = fastvec.make(env_id, n=6, autoreset_mode=mode, max_episode_steps=9, copy=copy_outputs)
        if actions is None:
            actions = sample_actions(env.single_action_space, (STEPS, 6), np.random.default_rng(2))
        trajectories.append(play(env, actions, seed=1))
    assert_same_bits(trajectories[1], trajectories[0], "copy=False")


@pytest.mark.parametrize("copy_outputs", [True, False])
def test_two_envs_share_nothing(env_id, mode, copy_outputs):
    kwargs = {"n": 6, "autoreset_mode": mode, "max_episode_steps": 9, "copy": copy_outputs}
    alone, one, other = (fastvec.make(env_id, **kwargs) for _ in range(3))
    runs = [walk(env, np.random.default_rng(seed)) for env, seed in ((alone, 0), (one, 0), (other, 9))]
    for _ in range(STEPS):
        expected, result, _ = (copy.deepcopy(next(run)) for run in runs)
        assert_same_bits(result, expected, "result beside another env")


def test_actions_may_be_made_of_what_the_last_step_returned(box_env_id, mode):
    """Without copies the next step writes where its actions are read."""
    kept, copied = (
        fastvec.make(box_env_id, n=64, autoreset_mode=mode, max_episode_steps=-1, copy=copy) for copy in (False, True)
    )
    first = sample_actions(kept.single_action_space, (64,), np.random.default_rng(0)).astype(np.float64)
    rewards = []
    for env in (kept, copied):
        env.reset(seed=0)
        rewards.append(env.step(first)[1].reshape(first.shape))
    for step in range(30):
        rewards = [env.step(own)[1].reshape(first.shape) for env, own in zip((kept, copied), rewards, strict=True)]
        assert_same_bits(rewards[0], rewards[1], f"step {step}")
