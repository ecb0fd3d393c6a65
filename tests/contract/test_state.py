"""State that can be held: views of the columns, get_state and set_state, copies and pickles."""

import copy
import gc
import pickle

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from rollout import make_single, play, proceed, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS

N = 6
LIMIT = 9
# Before the first step, in an episode, at the step where all are at the limit, one after it, much later.
MOMENTS = [0, 4, LIMIT, LIMIT + 1, 47]
DUPLICATES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "oldest pickle": lambda env: pickle.loads(pickle.dumps(env, protocol=2)),
}


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (100, N), np.random.default_rng(7))


def make(env_id, mode, **kwargs):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=LIMIT, **kwargs)


def step_without_reset(env, actions):
    """Steps up to the moment, so that in DISABLED mode ended lanes are left as they are."""
    env.reset(seed=2)
    for i, row in enumerate(actions):
        _, _, terminations, truncations, _ = env.step(row)
        ended = terminations | truncations
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any() and i + 1 < len(actions):
            env.reset(options={"reset_mask": ended})
    return ended if len(actions) else np.zeros(N, bool)


def future(env, ended, actions):
    """All that an env does from now on, through its autoresets and a full reset."""
    if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
        env.reset(options={"reset_mask": ended.copy()})
    return proceed(env, actions), play(env, actions), play(env, actions, seed=5)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("episode_stats", [False, True])
def test_set_state_goes_back_in_time(env_id, mode, actions, moment, episode_stats):
    env = make(env_id, mode, episode_stats=episode_stats)
    ended = step_without_reset(env, actions[:moment])
    state = env.get_state()
    expected = future(env, ended, actions)
    env.set_state(state)
    assert_same_bits(future(env, ended, actions), expected, "after set_state")
    other = make(env_id, mode, episode_stats=episode_stats)
    other.set_state(pickle.loads(pickle.dumps(state)))
    assert_same_bits(future(other, ended, actions), expected, "in another env")


@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_copy_goes_on_alike_and_on_its_own(env_id, mode, actions, moment, duplicate):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    ended = step_without_reset(env, actions[:moment])
    step_without_reset(undisturbed, actions[:moment])
    twin = duplicate(env)
    expected = future(undisturbed, ended, actions)
    assert_same_bits(future(twin, ended, actions), expected, "the copy")
    assert_same_bits(future(env, ended, actions), expected, "the original")
    assert twin.num_envs == N
    assert twin.observation_space == env.observation_space
    assert twin.spec == env.spec


@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_a_copy_may_be_made_before_the_first_reset_and_after_close(env_id, duplicate, actions):
    env = make(env_id, AutoresetMode.NEXT_STEP)
    twin = duplicate(env)
    assert_same_bits(play(twin, actions, seed=1), play(env, actions, seed=1), "the copy")
    env.close()
    twin = duplicate(env)
    assert twin.closed
    with pytest.raises(ClosedEnvironmentError):
        twin.reset()


def test_get_state_is_a_copy(env_id, mode, actions):
    env = make(env_id, mode)
    play(env, actions[:20], seed=1)
    state = env.get_state()
    before = copy.deepcopy(state)
    play(env, actions, seed=2)
    assert pickle.dumps(state) == pickle.dumps(before)
    env.set_state(state)
    play(env, actions, seed=2)
    assert pickle.dumps(state) == pickle.dumps(before)


def test_a_state_of_another_env_is_refused_and_changes_nothing(env_id, mode, actions):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:13], seed=1)
    good = env.get_state()
    others = [
        fastvec.make(env_id, n=N + 1, autoreset_mode=mode),
        *(fastvec.make(env_id, n=N, autoreset_mode=other) for other in AutoresetMode if other != mode),
        *(fastvec.make(other, n=N, autoreset_mode=mode) for other in NATIVE_ENVS if other != env_id),
    ]
    bad = [None, {}, [], "state", {**good, "more": 1}, *({k: v for k, v in good.items() if k != key} for key in good)]
    for other in others:
        other.reset(seed=0)
        bad.append(other.get_state())
    bad += [{**good, key: "nonsense"} for key, value in good.items() if isinstance(value, np.ndarray)]
    for state in bad:
        with pytest.raises((ValueError, TypeError)):
            env.set_state(state)
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad states")


def tampered(good, mode):
    """(what was done to it, a state that no env can have come to), given one that is as it should be."""
    for key, value in good.items():
        for bad in (object(), 0.5, "x", [], np.zeros((2, N + 1)), np.full(N, "x"), {"x": 1}):
            yield f"{key} is a {type(bad).__name__}", {**good, key: bad}
        if value is not None:
            yield f"no {key}", {**good, key: None}
    for name, column in good["columns"].items():
        yield "a column too few", {**good, "columns": {k: v for k, v in good["columns"].items() if k != name}}
        yield "a column too many", {**good, "columns": {**good["columns"], "more": column}}
        yield "a list for a column", {**good, "columns": {**good["columns"], name: column.tolist()}}
        yield "another dtype", {**good, "columns": {**good["columns"], name: column.astype(np.complex64)}}
        yield (
            "another byte order",
            {**good, "columns": {**good["columns"], name: column.astype(column.dtype.newbyteorder())}},
        )
    for elapsed in (-1, -(2**63), 2**62 + 1, 2**63 - 1):
        yield f"elapsed {elapsed}", {**good, "elapsed": np.array([0] * (N - 1) + [elapsed])}
    if mode == AutoresetMode.SAME_STEP:
        yield "pending", {**good, "pending": np.arange(N) == 1}
    for seeds in ([1] * (N - 1), [None] * N, [1.5] * N, [-2] * N, -2, (1,) * N):
        yield f"seeds {seeds}", {**good, "seeds": seeds}
    for name in good["attributes"]:
        yield f"no {name}", {**good, "attributes": {k: v for k, v in good["attributes"].items() if k != name}}
        yield f"{name} of too few lanes", {**good, "attributes": {**good["attributes"], name: (1,) * (N - 1)}}
    yield "more attributes", {**good, "attributes": {**good["attributes"], "more": 1}}


def test_a_state_that_cannot_be_is_refused_and_changes_nothing(env_id, mode, actions):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:13], seed=1)
    for _, state in tampered(env.get_state(), mode):
        with pytest.raises(ValueError, match="set_state"):
            env.set_state(state)
    assert env.np_random_seed == undisturbed.np_random_seed
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad states")


def test_state_shows_the_lanes_and_writing_moves_them(env_id, actions):
    env, other = make(env_id, AutoresetMode.NEXT_STEP), make(env_id, AutoresetMode.NEXT_STEP)
    env.reset(seed=1)
    other.reset(seed=2)
    assert set(env.state)
    for name, column in env.state.items():
        assert column.shape == (N,)
        assert not np.shares_memory(column, other.state[name])
        if column.flags.writeable:
            other.state[name][:] = column
        else:
            other.set_attr(name, column.tolist())
    other.set_attr("np_random", list(env.np_random))
    ours, theirs = env.step(actions[5]), other.step(actions[5])
    assert_same_bits(theirs[:3], ours[:3], "a step from the same state")
    with pytest.raises(TypeError):
        env.state["new"] = np.zeros(N)


def test_views_of_the_state_outlive_the_env(env_id, actions):
    env = make(env_id, AutoresetMode.NEXT_STEP)
    play(env, actions[:5], seed=1)
    views = dict(env.state)
    before = {name: column.copy() for name, column in views.items()}
    env.close()
    del env
    gc.collect()
    rooms = [np.full(100_000, 99.0) for _ in range(20)]  # would reuse the memory if it were free
    assert_same_bits(views, before, "views after close")
    for column in views.values():
        if column.flags.writeable:
            column[:] = 1
    assert all((room == 99).all() for room in rooms)


def test_pending_flags_of_any_byte_are_flags(env_id, actions):
    env, same = (make(env_id, AutoresetMode.NEXT_STEP) for _ in range(2))
    env.reset(seed=0)
    for row in actions[:LIMIT]:  # the last one ends every episode that is left
        env.step(row)
    state = env.get_state()
    same.set_state({**state, "pending": (state["pending"] * np.uint8(2)).view(np.bool_)})
    assert_same_bits(proceed(same, actions), proceed(env, actions), "after set_state")
