"""``step(actions, out=...)`` writes into the caller's arrays, and refuses those that it cannot write to."""

import copy
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.spaces import Tuple
from gymnasium.vector import AutoresetMode
from rollout import make_single, parts_of, play, proceed, reset_ended, sample_actions

import fastvec

N = 6
STEPS = 30


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (STEPS, N), np.random.default_rng(7))


def make(env_id, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=9, **kwargs)


def new_observation(env, shape, fill):
    """Arrays for the observations of so many steps and lanes, in the form that ``step`` returns them in."""
    space = env.single_observation_space
    arrays = tuple(
        np.full((*shape, *part.shape), fill, part.dtype) for part in (space if isinstance(space, Tuple) else (space,))
    )
    return arrays if isinstance(space, Tuple) else arrays[0]


def good_out(env):
    """Arrays as ``step`` returns them, each value such that a write shows."""
    return new_observation(env, (N,), 77), np.full(N, 77.0), np.ones(N, bool), np.ones(N, bool)


def flat(out):
    """All arrays of an ``out``, or of the first four results of a step."""
    return [array for part in out for array in parts_of(part)]


@pytest.mark.parametrize("copy_outputs", [True, False])
def test_fills_a_rollout_buffer(env_id, mode, actions, copy_outputs):
    env, plain = make(env_id, mode, copy=copy_outputs), make(env_id, mode)
    buffer = (
        new_observation(env, (STEPS, N), 0),
        np.empty((STEPS, N)),
        np.empty((STEPS, N), bool),
        np.empty((STEPS, N), bool),
    )
    env.reset(seed=1)
    expected = play(plain, actions, seed=1)
    for step, row in enumerate(actions):
        rows = [tuple(array[step] for array in part) if isinstance(part, tuple) else part[step] for part in buffer]
        out = tuple(rows)
        result = env.step(row, out=out)
        for returned, given in zip(flat(result[:4]), flat(out), strict=True):
            assert returned is given
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})
    names = [name for name in expected if re.fullmatch(r"obs\d*", name)]
    for name, array in zip((*names, "rewards", "terminations", "truncations"), flat(buffer), strict=True):
        assert_same_bits(array, expected[name], name)


def test_out_of_one_step_is_left_alone_by_the_next(env_id, mode, actions):
    env = make(env_id, mode)
    env.reset(seed=1)
    out = good_out(env)
    reset_ended(env, env.step(actions[0], out=out))
    kept = copy.deepcopy(out)
    env.step(actions[1])
    assert_same_bits(out, kept, "out of the step before")


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
    for returned, given in zip(flat(result[:4]), flat(out), strict=True):
        assert returned is given
    assert_same_bits(list(out), list(plain.step(actions[0])[:4]), "out")


def bad_outs(env, row):
    """(what is wrong, its name in the message, out) for a step with these actions."""
    good, rewards, terminations, truncations = good_out(env)
    obs = parts_of(good)[0]

    def observation(array):
        """An observation with this array as its first."""
        return (array, *good[1:]) if isinstance(good, tuple) else array

    frozen = rewards.copy()
    frozen.setflags(write=False)
    flags = np.zeros(2 * N, bool)
    shared = np.zeros(obs.nbytes + rewards.nbytes, np.uint8)
    yield "None in it", "rewards", (good, None, terminations, truncations)
    yield "a list in it", "rewards", (good, [0.0] * N, terminations, truncations)
    yield "three arrays", "out", (good, rewards, terminations)
    yield "five arrays", "out", (good, rewards, terminations, truncations, good)
    yield "a list", "out", [good, rewards, terminations, truncations]
    yield "an array", "out", obs
    yield "float32 rewards", "float32", (good, rewards.astype(np.float32), terminations, truncations)
    yield (
        "float64 observation",
        "observation",
        (observation(obs.astype(np.complex128)), rewards, terminations, truncations),
    )
    yield "uint8 flags", "uint8", (good, rewards, terminations.astype(np.uint8), truncations)
    yield "big-endian rewards", ">f8", (good, rewards.astype(">f8"), terminations, truncations)
    yield "one lane too few", "terminations", (good, rewards, terminations[:-1], truncations)
    yield "one lane too many", "truncations", (good, rewards, terminations, np.zeros(N + 1, bool))
    yield (
        "flat observation",
        "observation",
        (observation(np.zeros(obs.size * 2, obs.dtype)), rewards, terminations, truncations),
    )
    yield "a column of rewards", "rewards", (good, rewards[:, None], terminations, truncations)
    yield "strided rewards", "contiguous", (good, np.zeros(2 * N)[::2], terminations, truncations)
    yield "reversed flags", "contiguous", (good, rewards, terminations[::-1], truncations)
    yield "read-only rewards", "read-only", (good, frozen, terminations, truncations)
    yield "flags shared", "truncations", (good, rewards, terminations, terminations)
    yield "flags overlapping", "truncations", (good, rewards, flags[:N], flags[N - 1 : -1])
    yield (
        "observation and rewards overlapping",
        "rewards",
        (
            observation(shared[: obs.nbytes].view(obs.dtype).reshape(obs.shape)),
            shared[obs.nbytes - 8 :][: rewards.nbytes].view(np.float64),
            terminations,
            truncations,
        ),
    )
    yield "the actions", "actions", (good, row.reshape(N).view(np.float64), terminations, truncations)
    name, column = next(iter(env.state.items()))
    yield (
        f"the state column {name}",
        "state" if column.flags.writeable else "read-only",
        (
            good,
            column,
            terminations,
            truncations,
        ),
    )


@pytest.mark.parametrize("case", range(22))
def test_a_bad_out_is_named_and_changes_nothing(env_id, mode, actions, case):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:13], seed=1)
    row = actions[13].astype(f"{actions.dtype.kind}8")  # as wide as rewards, so that the two may be one array
    cases = list(bad_outs(env, row))
    assert len(cases) == 22
    _, named, out = cases[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        env.step(row, out=out)
    assert named in str(caught.value)
    assert_same_bits(proceed(env, actions[13:]), proceed(undisturbed, actions[13:]), "after the bad out")


def test_a_bad_action_leaves_out_alone(discrete_env_id):
    env = make(discrete_env_id)
    env.reset(seed=1)
    out = good_out(env)
    before = copy.deepcopy(out)
    with pytest.raises(ValueError, match=r"\[0\] = 99"):
        env.step(np.full(N, 99), out=out)
    assert_same_bits(out, before, "out")
