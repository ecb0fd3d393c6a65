"""``get_attr``, ``set_attr`` and ``call`` beside SyncVectorEnv's: the same names, the same values, the same effect."""

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ClosedEnvironmentError
from lockstep import Lockstep
from rollout import make_oracle, make_single, play, proceed, sample_actions

import fastvec
from fastvec._core import kernel_info
from fastvec.registry import NATIVE_ENVS

N = 4
STEPS = 60


def make_pair(env_id, mode):
    pair = Lockstep(fastvec.make(env_id, n=N, autoreset_mode=mode), make_oracle(env_id, N, mode))
    pair.reset(seed=5)
    return pair


def step(pair, steps, rng):
    for _ in range(steps):
        if pair.ended.any() and pair.ours.metadata["autoreset_mode"].value == "Disabled":
            pair.reset(options={"reset_mask": pair.ended.copy()})
        pair.step(sample_actions(pair.ours.single_action_space, (N,), rng))


def numbers_of(env_id):
    """Attributes of Gymnasium's env, or of its class, that are plain numbers and not its state."""
    env = make_single(env_id).unwrapped
    env.reset(seed=0)
    state = fastvec.make(env_id).state
    of_class = {name: value for base in reversed(type(env).__mro__) for name, value in vars(base).items()}
    return {
        name: value
        for name, value in {**of_class, **vars(env)}.items()
        if type(value) in (bool, int, float) and not name.startswith("_") and name not in state
    }


def altered(value, factor):
    """Another number of the same type; of flags the other one, unless the factor is 1."""
    return value ^ (factor != 1) if isinstance(value, bool) else type(value)(value * factor)


def test_numbers_are_gymnasiums(any_env_id):
    env, oracle = fastvec.make(any_env_id, n=N), make_oracle(any_env_id, N)
    assert numbers_of(any_env_id)
    for name in numbers_of(any_env_id):
        assert_same_bits(env.get_attr(name), oracle.get_attr(name), name)
        assert_same_bits(env.call(name), oracle.call(name), name)


def test_streams_and_seeds_are_gymnasiums(env_id, mode):
    pair = make_pair(env_id, mode)
    for seed in (3, [2**40, 0, 2**130, 7], None, [None, 5, None, 2**64]):
        pair.reset(seed)
        step(pair, 40, np.random.default_rng(0))
        assert pair.ours.np_random_seed == pair.oracle.np_random_seed
        for ours, theirs in zip(pair.ours.np_random, pair.oracle.np_random, strict=True):
            assert ours.bit_generator.state == theirs.bit_generator.state


def test_drawing_from_a_lanes_generator_leaves_the_lane_as_it_is(seeded_env_id, mode):
    pair = make_pair(seeded_env_id, mode)
    for generator in pair.ours.np_random:
        generator.random(5)
    pair.reset()
    step(pair, 40, np.random.default_rng(0))


def test_what_is_common_to_all_envs(env_id):
    env, single = fastvec.make(env_id, n=N), make_single(env_id)
    assert env.get_attr("observation_space") == (single.observation_space,) * N
    assert env.get_attr("action_space") == (single.action_space,) * N
    assert env.get_attr("render_mode") == (None,) * N
    assert len(env.get_attr("spec")) == N


@pytest.mark.parametrize("per_lane", [False, True])
def test_a_number_set_has_the_effect_it_has_in_gymnasium(env_id, mode, per_lane):
    for name, value in numbers_of(env_id).items():
        pair = make_pair(env_id, mode)
        rng = np.random.default_rng(1)
        step(pair, 20, rng)
        changed = [altered(value, factor) for factor in (0.5, 1, 1.25, 2)] if per_lane else altered(value, 0.75)
        for env in (pair.ours, pair.oracle):
            env.set_attr(name, changed)
        assert_same_bits(pair.ours.get_attr(name), pair.oracle.get_attr(name), name)
        step(pair, STEPS, rng)
        for env in (pair.ours, pair.oracle):
            env.set_attr(name, value)
        step(pair, 20, rng)


def test_a_tuple_has_a_value_a_lane_too(env_id):
    name, value = next(iter(numbers_of(env_id).items()))
    env = fastvec.make(env_id, n=N)
    values = tuple(value + lane for lane in range(N))
    env.set_attr(name, values)
    assert env.get_attr(name) == values


def test_streams_that_are_set_are_used(seeded_env_id, mode):
    pair = make_pair(seeded_env_id, mode)
    for env in (pair.ours, pair.oracle):
        env.set_attr("np_random", [np.random.Generator(np.random.PCG64(90 + lane)) for lane in range(N)])
    pair.reset()
    step(pair, STEPS, np.random.default_rng(1))
    assert pair.ours.np_random_seed == pair.oracle.np_random_seed


@pytest.mark.parametrize("call", ["get_attr", "call", "set_attr"])
def test_an_unknown_name_is_refused_with_the_known_ones(env_id, call):
    env = fastvec.make(env_id, n=N)
    env.reset(seed=0)
    with pytest.raises(AttributeError, match="no_such_thing") as caught:
        getattr(env, call)("no_such_thing", *([1] if call == "set_attr" else []))
    for name in numbers_of(env_id):
        assert name in str(caught.value)


def test_bad_values_are_refused_and_change_nothing(env_id):
    env, undisturbed = fastvec.make(env_id, n=N), fastvec.make(env_id, n=N)
    actions = sample_actions(env.single_action_space, (STEPS, N), np.random.default_rng(0))
    for each in (env, undisturbed):
        play(each, actions[:11], seed=1)
    for name, value in numbers_of(env_id).items():
        for bad in ([value] * (N - 1), (value,) * (N + 1), []):
            with pytest.raises(ValueError, match=str(len(bad))) as caught:
                env.set_attr(name, bad)
            assert name in str(caught.value)
        if name not in kernel_info(NATIVE_ENVS[env_id].kernel)[1]:
            continue  # nothing computes with it, such as the width of the screen
        if type(value) is bool:
            continue  # whatever is set counts by its truth, as in Gymnasium's env
        for bad in ("1.5", b"1.5", None, 1j, {}, [value] * (N - 1) + ["1.5"], [None] * N):
            with pytest.raises(TypeError, match=name):
                env.set_attr(name, bad)
        for bad in (10**400, [value] * (N - 1) + [-(10**400)]):
            with pytest.raises(ValueError, match=name):
                env.set_attr(name, bad)
    for column in env.state:
        for bad in ("text", "1.5", b"1.5", None, 1j, 10**400, np.datetime64("2020"), [0.0] * (N - 1) + [None]):
            with pytest.raises((TypeError, ValueError), match=column):
                env.set_attr(column, bad)
        with pytest.raises(ValueError, match=column):
            env.set_attr(column, [0.0] * (N - 1))
    with pytest.raises(TypeError, match="np_random"):
        env.set_attr("np_random", 5)
    with pytest.raises(AttributeError, match="observation_space"):
        env.set_attr("observation_space", None)
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad values")


def test_nothing_is_set_after_close(env_id):
    env = fastvec.make(env_id, n=N)
    before = {name: env.get_attr(name) for name in numbers_of(env_id)}
    env.close()
    for name in (*before, *env.state, "np_random"):
        with pytest.raises(ClosedEnvironmentError, match="set_attr"):
            env.set_attr(name, 1)
    assert {name: env.get_attr(name) for name in before} == before


def test_a_state_column_can_be_read_and_set(env_id):
    env = fastvec.make(env_id, n=N)
    actions = sample_actions(env.single_action_space, (9, N), np.random.default_rng(0))
    play(env, actions, seed=1)
    for name, column in env.state.items():
        assert [float(value) for value in env.get_attr(name)] == column.tolist()
        numbers = [0.125 * lane for lane in range(N)] if column.dtype.kind == "f" else [lane % 2 for lane in range(N)]
        env.set_attr(name, numbers)
        assert column.tolist() == numbers
        env.set_attr(name, numbers[1])
        assert column.tolist() == [numbers[1]] * N


@pytest.mark.parametrize("bad", [-1, 2**31 - 1, 2**32, 1e300, 0.5, np.nan])
def test_a_column_of_integers_takes_none_out_of_its_range(env_id, bad):
    """Kernels count on its values: such a column cannot be written to, and what is set is checked first."""
    env, undisturbed = fastvec.make(env_id, n=N), fastvec.make(env_id, n=N)
    actions = sample_actions(env.single_action_space, (STEPS, N), np.random.default_rng(0))
    for each in (env, undisturbed):
        play(each, actions[:11], seed=1)
    for name, column in env.state.items():
        assert column.flags.writeable == (column.dtype.kind == "f")
        if column.flags.writeable:
            continue
        with pytest.raises(ValueError, match="read-only"):
            column[:] = 0
        values = column.tolist()
        values[2] = bad
        with pytest.raises(ValueError, match=rf"\b{name} of lane 2\b"):
            env.set_attr(name, values)
        if float(bad).is_integer() and abs(bad) < 2**31:
            state = env.get_state()
            state["columns"][name][2] = bad
            with pytest.raises(ValueError, match=rf"\b{name} of lane 2\b"):
                env.set_state(state)
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad values")
