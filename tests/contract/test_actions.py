"""Actions: any form that NumPy understands gives the same result, and a bad one is refused before any lane moves."""

import copy

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from lockstep import Lockstep
from rollout import make_oracle, make_single, play, proceed, sample_actions

import fastvec

N = 6
STEPS = 40


def strided(array):
    return np.repeat(array, 3, axis=0)[::3]


def reversed_view(array):
    return array[::-1].copy()[::-1]


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def unaligned(array):
    buffer = np.zeros(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[:] = array
    return view


class Subclass(np.ndarray):
    """What a library may hand over in place of a plain array."""


def nested_tuple(array):
    return tuple(map(nested_tuple, array)) if array.ndim else array.item()


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intc", "longlong", "ulonglong")
NUMBERS = {"list": lambda array: array.tolist(), "tuple": nested_tuple}
LAYOUTS = {
    "list of rows or scalars": list,
    "strided": strided,
    "reversed": reversed_view,
    "read-only": read_only,
    "unaligned": unaligned,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "Fortran order": np.asfortranarray,
    "subclass": lambda array: array.view(Subclass),
    "object with __array__": lambda array: type("Holder", (), {"__array__": lambda self, *_, **__: array})(),
    "memoryview": lambda array: memoryview(array),
}


def sampled(env_id):
    return sample_actions(make_single(env_id).action_space, (STEPS, N), np.random.default_rng(2))


def make(env_id, mode="NextStep"):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=15)


def assert_form_gives_the_same(env_id, form):
    actions = sampled(env_id)
    rows = [form(row) for row in actions]
    trajectory = play(make(env_id), rows, seed=1)
    assert_same_bits(trajectory, play(make(env_id), actions, seed=1), "actions in another form")
    for row, before in zip(rows, actions, strict=True):
        assert np.array_equal(np.asarray(row), before), "the caller's actions were written to"


@pytest.mark.parametrize("form", LAYOUTS.values(), ids=LAYOUTS)
def test_forms_that_give_the_same(env_id, form):
    assert_form_gives_the_same(env_id, form)


@pytest.mark.parametrize("form", NUMBERS.values(), ids=NUMBERS)
def test_pythons_numbers_give_the_same(discrete_env_id, form):
    assert_form_gives_the_same(discrete_env_id, form)


def times_two(row):
    """Some of them are beyond the bounds then."""
    return row * np.float32(2)


BOX_FORMS = {
    "float32": times_two,
    "float64": lambda row: times_two(row).astype(np.float64),
    "big-endian float64": lambda row: times_two(row).astype(">f8"),
    "list": lambda row: times_two(row).tolist(),
    "tuple": lambda row: nested_tuple(times_two(row)),
    "list of ints": lambda row: np.rint(times_two(row)).astype(int).tolist(),
    "list of float64 scalars": lambda row: [[np.float64(number)] for number in times_two(row)[:, 0]],
    "list of float64 arrays": lambda row: list(times_two(row).astype(np.float64)),
    "bool": lambda row: row > 0,
    **{
        dtype: lambda row, dtype=dtype: np.rint(times_two(row)).clip(-2 if dtype.startswith("int") else 0).astype(dtype)
        for dtype in INTEGERS
    },
}


@pytest.mark.parametrize("form", BOX_FORMS.values(), ids=BOX_FORMS)
def test_box_actions_of_other_forms_are_taken_as_gymnasium_takes_them(box_env_id, mode, form):
    """Their type tells NumPy in which precision to compute."""
    pair = Lockstep(
        fastvec.make(box_env_id, n=N, autoreset_mode=mode, max_episode_steps=15),
        make_oracle(box_env_id, N, mode, max_episode_steps=15),
    )
    pair.reset(seed=1)
    for row in sampled(box_env_id):
        if pair.ended.any() and mode == AutoresetMode.DISABLED:
            pair.reset(options={"reset_mask": pair.ended.copy()})
        pair.step(form(row))


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128", "object", "str", "M8[s]"])
def test_other_dtypes_are_refused_for_box_actions(box_env_id, mode, dtype):
    bad = sampled(box_env_id)[17].astype(dtype)
    assert str(bad.dtype) in assert_refused(box_env_id, mode, bad, TypeError)


@pytest.mark.parametrize("lane", range(N))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_refused_with_its_lane(box_env_id, mode, lane, dtype):
    bad = sampled(box_env_id)[17].astype(dtype)
    bad[lane] = np.nan
    message = assert_refused(box_env_id, mode, bad, ValueError)
    assert f"[{lane}, 0] = nan" in message
    assert box_env_id in message


@pytest.mark.parametrize("dtype", [*INTEGERS, ">i2", ">i8", ">u4"])
def test_integer_dtypes_that_give_the_same(discrete_env_id, dtype):
    assert_form_gives_the_same(discrete_env_id, lambda row: row.astype(dtype))
    assert_form_gives_the_same(discrete_env_id, lambda row: strided(row.astype(dtype)))


def test_bools_are_0_and_1(discrete_env_id):
    space = make_single(discrete_env_id).action_space
    assert space.contains(0)
    assert space.contains(1)
    actions = np.random.default_rng(2).integers(0, 2, (STEPS, N))
    expected = play(make(discrete_env_id), actions, seed=1)
    assert_same_bits(play(make(discrete_env_id), actions.astype(bool), seed=1), expected, "bool array")
    assert_same_bits(play(make(discrete_env_id), actions.astype(bool).tolist(), seed=1), expected, "list of bool")


def test_a_masked_array_is_one_whose_mask_hides_nothing(env_id):
    assert_form_gives_the_same(env_id, np.ma.array)
    actions = sampled(env_id)[17]
    mask = np.zeros(actions.shape, bool)
    mask[3] = True
    assert "[3] is masked" in assert_refused(env_id, "NextStep", np.ma.array(actions, mask=mask), ValueError)


def test_torch_cpu_tensors(env_id):
    torch = pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    assert_form_gives_the_same(env_id, lambda row: torch.from_numpy(row.copy()))
    assert_form_gives_the_same(env_id, lambda row: torch.from_numpy(np.repeat(row, 2, axis=0))[::2])


def bad_shapes(actions):
    """(what is wrong, the actions) of the wrong count or shape, given good ones of shape (n, ...)."""
    n = len(actions)
    yield "too few", actions[:-1]
    yield "too many", np.concatenate([actions, actions[:1]])
    yield "half", actions[: n // 2]
    yield "one", actions[:1]
    yield "none", actions[:0]
    yield "empty list", []
    yield "scalar", actions.flat[0].item()
    yield "0-d array", np.array(actions.flat[0])
    yield "a column", actions[..., None]
    yield "a row", actions[None]
    yield "None", None
    yield "text", "0" * n
    yield "dict", dict.fromkeys(range(n), 0)
    yield "ragged", [[0]] * (n - 1) + [[0, 1]]


def assert_refused(env_id, mode, bad, error=(ValueError, TypeError)):
    """Makes the bad call in the middle of a run, and compares the run with one that never saw it."""
    actions = sampled(env_id)
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    assert_same_bits(play(env, actions[:17], seed=1), play(undisturbed, actions[:17], seed=1), "before the bad call")
    with pytest.raises(error) as caught:
        env.step(bad)
    assert_same_bits(proceed(env, actions[17:]), proceed(undisturbed, actions[17:]), "after the bad call")
    return str(caught.value)


@pytest.mark.parametrize("wrong", [name for name, _ in bad_shapes(np.zeros(N))])
def test_wrong_counts_and_shapes_are_refused(env_id, mode, wrong):
    assert_refused(env_id, mode, dict(bad_shapes(sampled(env_id)[17]))[wrong])


@pytest.mark.parametrize("wrong", ["too few", "too many", "none", "scalar", "a column"])
def test_a_wrong_shape_is_named_beside_the_right_one(env_id, wrong):
    good = sampled(env_id)[17]
    bad = dict(bad_shapes(good))[wrong]
    message = assert_refused(env_id, "NextStep", bad, ValueError)
    assert str(np.shape(bad)) in message
    assert str(good.shape) in message


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "object", "str", "M8[s]"])
def test_other_dtypes_are_refused_for_discrete_actions(discrete_env_id, mode, dtype):
    bad = sampled(discrete_env_id)[17].astype(dtype)
    message = assert_refused(discrete_env_id, mode, bad, TypeError)
    assert str(bad.dtype) in message


def test_a_list_of_floats_is_refused_for_discrete_actions(discrete_env_id, mode):
    assert_refused(discrete_env_id, mode, sampled(discrete_env_id)[17].astype(float).tolist(), TypeError)


@pytest.mark.parametrize("lane", range(N))
def test_a_value_out_of_range_is_named_with_its_lane(discrete_env_id, mode, lane):
    space = make_single(discrete_env_id).action_space
    last = int(space.start + space.n) - 1
    for value in (int(space.start) - 1, last + 1, last + 2**32, -(2**63), 2**63 - 1):
        bad = sampled(discrete_env_id)[17]
        bad[lane] = value
        message = assert_refused(discrete_env_id, mode, bad, ValueError)
        assert f"[{lane}] = {value}" in message
        assert f"{space.start}..{last}" in message
        assert discrete_env_id in message


def test_the_first_bad_lane_is_the_one_named(discrete_env_id):
    bad = sampled(discrete_env_id)[17]
    bad[[2, 4]] = 99, 98
    assert "[2] = 99" in assert_refused(discrete_env_id, "NextStep", bad, ValueError)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", -128),
        ("uint8", 255),
        ("int16", -300),
        ("uint16", 65535),
        ("uint32", 2**32 - 1),
        ("int32", -(2**31)),
        ("uint64", 2**63),
        ("uint64", 2**64 - 1),
        (">i8", 2**40),
    ],
)
def test_a_value_out_of_range_does_not_wrap_round_in_any_dtype(discrete_env_id, dtype, value):
    bad = sampled(discrete_env_id)[17].astype(dtype)
    bad[3] = value
    assert f"[3] = {value}" in assert_refused(discrete_env_id, "NextStep", bad, ValueError)


def test_ints_of_any_size_in_a_list_are_refused_as_out_of_range(discrete_env_id):
    bad = sampled(discrete_env_id)[17].tolist()
    bad[3] = 2**70
    assert_refused(discrete_env_id, "NextStep", bad)


def test_copy_false_keeps_its_arrays_as_they_were(env_id, mode):
    env = fastvec.make(env_id, n=N, autoreset_mode=mode, copy=False)
    actions = sampled(env_id)
    env.reset(seed=1)
    returned = env.step(actions[0])[:4]
    before = copy.deepcopy(returned)
    with pytest.raises((ValueError, ResetNeeded)):  # the latter in DISABLED mode, where an episode has ended
        env.step(actions[0, :-1])
    assert_same_bits(returned, before, "arrays of copy=False")
