"""A step may write into arrays of earlier steps, but only once nobody has them any more."""

import sys

import numpy as np
import pytest

import fastvec

N = 6
ACTIONS = np.zeros(N, np.int64)


def made(env_id="CartPole-v1", **kwargs):
    env = fastvec.make(env_id, n=N, **kwargs)
    env.reset(seed=0)
    return env


def arrays_of(results):
    """All arrays that a step returned."""
    obs = results[0] if isinstance(results[0], tuple) else (results[0],)
    return [*obs, *results[1:4]]


HOLDERS = {
    "the array": lambda array: array,
    "a view": lambda array: array[1:],
    "a view of a view": lambda array: array[1:].T[..., ::-1],
    "a memoryview": memoryview,
    "a buffer": lambda array: np.frombuffer(array, np.uint8),
    "a list": lambda array: [array],
    "a closure": lambda array: lambda: array,
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Blackjack-v1"])
def test_what_is_held_in_any_way_is_never_written_to(env_id, which, holder):
    env = made(env_id)
    held, expected = [], []
    for _ in range(8):
        array = arrays_of(env.step(ACTIONS))[which]
        expected.append((array.ctypes.data, array.tobytes()))
        held.append(HOLDERS[holder](array))
        del array
        for _ in range(2):
            env.step(ACTIONS)
    assert len({address for address, _ in expected}) == len(expected)
    for one, (_, content) in zip(held, expected, strict=True):
        whole = one() if callable(one) else one[0] if isinstance(one, list) else one
        while getattr(whole, "base", None) is not None:
            whole = whole.base
        assert bytes(whole) == content if isinstance(whole, memoryview) else whole.tobytes() == content


def test_results_are_their_own_until_the_next_are_there():
    env, kept = made(), made()
    steps = [kept.step(ACTIONS) for _ in range(50)]
    results = env.step(ACTIONS)
    for expected in steps[1:]:
        before = [array.copy() for array in arrays_of(results)]
        following = env.step(ACTIONS)
        assert all(np.array_equal(one, other) for one, other in zip(before, arrays_of(results), strict=True))
        results = following
        assert all(np.array_equal(*pair) for pair in zip(arrays_of(results), arrays_of(expected), strict=True))


def reshape_in_place(array):
    array.shape = (*array.shape, 1)


ALTERATIONS = {
    "shape": reshape_in_place,
    "dtype": lambda array: setattr(array, "dtype", np.dtype(f"V{array.dtype.itemsize}")),
    "writeable": lambda array: array.setflags(write=False),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy's, of setting these
@pytest.mark.parametrize("alteration", ALTERATIONS)
@pytest.mark.parametrize("which", range(4))
def test_an_altered_array_does_not_come_back(which, alteration):
    env = made()
    for _ in range(6):
        array = arrays_of(env.step(ACTIONS))[which]
        expected = (array.shape, array.dtype, True)
        ALTERATIONS[alteration](array)
        del array
        after = arrays_of(env.step(ACTIONS))[which]
        assert (after.shape, after.dtype, after.flags.writeable) == expected


def test_steps_keep_no_more_than_two_sets_of_arrays():
    env = made()
    addresses = {env.step(ACTIONS)[0].ctypes.data for _ in range(50)}
    assert len(addresses) <= 2
    obs = env.step(ACTIONS)[0]
    assert sys.getrefcount(obs) <= 3  # this name, the batch, and the argument
