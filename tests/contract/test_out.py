"""``step(actions, out=...)`` writes into the caller's arrays, and refuses those that it cannot write to."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import make_single, play, proceed, sample_actions

import fastvec

N = 6
STEPS = 30


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (STEPS, N), np.random.default_rng(7))


def make(env_id, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=9, **kwargs)


def good_out(env):
    """Arrays as ``step`` returns them, each value such that a write shows."""
    obs = np.full((N, *env.single_observation_space.shape), 77, env.single_observation_space.dtype)
    return obs, np.full(N, 77.0), np.ones(N, bool), np.ones(N, bool)


@pytest.mark.parametrize("copy_outputs", [True, False])
def test_fills_a_rollout_buffer(env_id, mode, actions, copy_outputs):
    env, plain = make(env_id, mode, copy=copy_outputs), make(env_id, mode)
    space = env.single_observation_space
    buffer = (
        np.empty((STEPS, N, *space.shape), space.dtype),
        np.empty((STEPS, N)),
        np.empty((STEPS, N), bool),
        np.empty((STEPS, N), bool),
    )
    env.reset(seed=1)
    expected = play(plain, actions, seed=1)
    for step, row in enumerate(actions):
        out = tuple(array[step] for array in buffer)
        result = env.step(row, out=out)
        for returned, given in zip(result[:4], out, strict=True):
            assert returned is given
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})
    for name, array in zip(("obs", "rewards", "terminations", "truncations"), buffer, strict=True):
        assert_same_bits(array, expected[name], name)


def test_out_of_one_step_is_left_alone_by_the_next(env_id, mode, actions):
    env = make(env_id, mode)
    env.reset(seed=1)
    out = good_out(env)
    env.step(actions[0], out=out)
    kept = [array.copy() for array in out]
    env.step(actions[1])
    assert_same_bits(list(out), kept, "out of the step before")


class Out(NamedTuple):
    """A row of a rollout buffer, as a program may call its parts."""

    obs: Any
    rewards: Any
    terminations: Any
    truncations: Any


def test_out_may_be_a_named_tuple(env_id, mode, actions):
    env, plain = make(env_id, mode), make(env_id, mode)
    for each in (env, plain):
        each.reset(seed=1)
    out = good_out(env)
    result = env.step(actions[0], out=Out(*out))
    for returned, given in zip(result[:4], out, strict=True):
        assert returned is given
    assert_same_bits(list(out), list(plain.step(actions[0])[:4]), "out")


def bad_outs(env, row):
    """(what is wrong, its name in the message, out) for a step with these actions."""
    obs, rewards, terminations, truncations = good_out(env)
    frozen = rewards.copy()
    frozen.setflags(write=False)
    flags = np.zeros(2 * N, bool)
    shared = np.zeros(obs.nbytes + rewards.nbytes, np.uint8)
    yield "None in it", "rewards", (obs, None, terminations, truncations)
    yield "a list in it", "rewards", (obs, [0.0] * N, terminations, truncations)
    yield "three arrays", "out", (obs, rewards, terminations)
    yield "five arrays", "out", (obs, rewards, terminations, truncations, obs)
    yield "a list", "out", [obs, rewards, terminations, truncations]
    yield "an array", "out", obs
    yield "float32 rewards", "float32", (obs, rewards.astype(np.float32), terminations, truncations)
    yield "float64 observation", "observation", (obs.astype(np.complex128), rewards, terminations, truncations)
    yield "uint8 flags", "uint8", (obs, rewards, terminations.astype(np.uint8), truncations)
    yield "big-endian rewards", ">f8", (obs, rewards.astype(">f8"), terminations, truncations)
    yield "one lane too few", "terminations", (obs, rewards, terminations[:-1], truncations)
    yield "one lane too many", "truncations", (obs, rewards, terminations, np.zeros(N + 1, bool))
    yield "flat observation", "observation", (np.zeros(obs.size * 2, obs.dtype), rewards, terminations, truncations)
    yield "a column of rewards", "rewards", (obs, rewards[:, None], terminations, truncations)
    yield "strided rewards", "contiguous", (obs, np.zeros(2 * N)[::2], terminations, truncations)
    yield "reversed flags", "contiguous", (obs, rewards, terminations[::-1], truncations)
    yield "read-only rewards", "read-only", (obs, frozen, terminations, truncations)
    yield "flags shared", "truncations", (obs, rewards, terminations, terminations)
    yield "flags overlapping", "truncations", (obs, rewards, flags[:N], flags[N - 1 : -1])
    yield (
        "observation and rewards overlapping",
        "rewards",
        (
            shared[: obs.nbytes].view(obs.dtype).reshape(obs.shape),
            shared[obs.nbytes - 8 :][: rewards.nbytes].view(np.float64),
            terminations,
            truncations,
        ),
    )
    if row.dtype.itemsize == 8 and row.shape == (N,):
        yield "the actions", "actions", (obs, row.view(np.float64), terminations, truncations)
    for name, column in env.state.items():
        if column.dtype == np.float64 and column.flags.c_contiguous:
            yield f"the state column {name}", "state", (obs, column, terminations, truncations)
            break


@pytest.mark.parametrize("case", range(22))
def test_a_bad_out_is_named_and_changes_nothing(env_id, mode, actions, case):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:13], seed=1)
    cases = list(bad_outs(env, actions[13]))
    assert len(cases) == 22
    _, named, out = cases[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        env.step(actions[13], out=out)
    assert named in str(caught.value)
    assert_same_bits(proceed(env, actions[13:]), proceed(undisturbed, actions[13:]), "after the bad out")


def test_a_bad_action_leaves_out_alone(discrete_env_id):
    env = make(discrete_env_id)
    env.reset(seed=1)
    out = good_out(env)
    before = [array.copy() for array in out]
    with pytest.raises(ValueError, match=r"\[0\] = 99"):
        env.step(np.full(N, 99), out=out)
    assert_same_bits(list(out), before, "out")
