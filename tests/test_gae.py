"""fastvec.gae: the same bits as a slow reference in plain Python scalars, in every mode; hand cases; refusals."""

import numpy as np
import pytest

import fastvec

MODES = ("SameStep", "NextStep", "Disabled")
DTYPES = (np.float32, np.float64)
SHAPES = ((1, 1), (1, 7), (13, 1), (40, 37))


def reference(
    rewards,
    values,
    terminations,
    truncations,
    last_values,
    *,
    gamma=0.99,
    gae_lambda=0.95,
    final_values=None,
    autoreset_mode="SameStep",
    pending=None,
):
    """One lane after another, one scalar at a time, in the order that fastvec.gae's docstring states."""
    scalar = values.dtype.type
    steps, n = values.shape
    advantages, returns = np.empty_like(values, order="C"), np.empty_like(values, order="C")
    gamma, decay = scalar(gamma), scalar(gamma) * scalar(gae_lambda)
    for lane in range(n):
        carried = scalar(0)
        for t in reversed(range(steps)):
            terminated, truncated = terminations[t, lane], truncations[t, lane]
            value = values[t, lane]
            after_end = (terminations | truncations)[t - 1, lane] if t > 0 else pending is not None and pending[lane]
            if autoreset_mode == "NextStep" and after_end:
                advantages[t, lane], returns[t, lane], carried = scalar(0), value, scalar(0)
                continue
            if terminated:
                bootstrap = scalar(0)
            elif truncated and autoreset_mode != "NextStep":
                bootstrap = scalar(final_values[t, lane])
            else:
                bootstrap = scalar(last_values[lane]) if t == steps - 1 else values[t + 1, lane]
            if terminated or truncated:
                carried = scalar(0)
            delta = (scalar(rewards[t, lane]) + gamma * bootstrap) - value
            carried = delta + decay * carried
            advantages[t, lane], returns[t, lane] = carried, carried + value
    return advantages, returns


def random_rollout(mode, dtype, shape, seed):
    """Positional and keyword arguments of gae, with many ends of each kind."""
    rng = np.random.default_rng([seed, *shape])
    steps, n = shape
    terminations, truncations = rng.random((2, *shape)) < 0.2
    keywords = {"autoreset_mode": mode, "gamma": rng.uniform(0.8, 1), "gae_lambda": rng.uniform(0.8, 1)}
    if mode == "NextStep":
        keywords["pending"] = pending = rng.random(n) < 0.4
        for t in range(steps):  # a reset row has no flags
            after_end = pending if t == 0 else (terminations | truncations)[t - 1]
            terminations[t] &= ~after_end
            truncations[t] &= ~after_end
    else:
        keywords["final_values"] = rng.normal(size=shape).astype(dtype)
    rewards, values = rng.normal(size=(2, *shape))
    last_values = rng.normal(size=n).astype(dtype)
    return [rewards.astype(dtype), values.astype(dtype), terminations, truncations, last_values], keywords


def assert_same(found, expected):
    for name, ours, theirs in zip(("advantages", "returns"), found, expected, strict=True):
        assert ours.dtype == theirs.dtype, name
        assert ours.shape == theirs.shape, name
        assert ours.tobytes() == theirs.tobytes(), name


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_same_bits_as_the_reference(mode, dtype, shape):
    for seed in range(5):
        arguments, keywords = random_rollout(mode, dtype, shape, seed)
        expected = reference(*arguments, **keywords)
        assert_same(fastvec.gae(*arguments, **keywords), expected)
        out = np.full(shape, np.nan, dtype), np.full(shape, np.nan, dtype)
        found = fastvec.gae(*arguments, **keywords, out=out)
        assert found[0] is out[0]
        assert found[1] is out[1]
        assert_same(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_views_that_are_not_contiguous(mode, dtype):
    arguments, keywords = random_rollout(mode, dtype, (11, 6), seed=1)
    expected = reference(*arguments, **keywords)
    strided = {name: np.repeat(value, 2, axis=-1)[..., ::2] for name, value in keywords.items() if np.ndim(value)}
    assert_same(
        fastvec.gae(*[np.repeat(array, 2, axis=-1)[..., ::2] for array in arguments], **{**keywords, **strided}),
        expected,
    )
    assert_same(fastvec.gae(*[np.asfortranarray(array) for array in arguments], **keywords), expected)
    backwards = [array[::-1].copy()[::-1] for array in arguments]
    assert_same(fastvec.gae(*backwards, **keywords), expected)


@pytest.mark.parametrize("target", [name for name, runs_here in fastvec._core.targets().items() if runs_here])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_instruction_set_has_the_same_bits(dtype, target, monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", target)
    for mode in MODES:
        arguments, keywords = random_rollout(mode, dtype, (30, 101), seed=3)
        assert_same(fastvec.gae(*arguments, **keywords), reference(*arguments, **keywords))


@pytest.mark.parametrize("mode", MODES)
def test_float64_rewards_are_rounded_to_the_values_dtype(mode):
    arguments, keywords = random_rollout(mode, np.float64, (20, 9), seed=2)
    arguments[1] = arguments[1].astype(np.float32)
    assert_same(fastvec.gae(*arguments, **keywords), reference(*arguments, **keywords))


def test_rewards_may_be_integers_and_lists():
    found = fastvec.gae([[1, 2]], np.zeros((1, 2), np.float32), [[True, False]], [[False, False]], [5, 5], gamma=0.5)
    assert found[0].tolist() == [[1.0, 4.5]]
    assert found[0].dtype == np.float32


# Hand cases, F6 of the known cases:
# one lane that is paid 1 a step and is cut off at step 10; with gamma 0.9 every observation is worth 10.


def ten_steps(extra_rows, dtype, flag="truncations"):
    steps = 10 + extra_rows
    flags = {"terminations": np.zeros((steps, 1), bool), "truncations": np.zeros((steps, 1), bool)}
    flags[flag][9] = True
    return {
        "rewards": np.ones((steps, 1), dtype),
        "values": np.full((steps, 1), 10, dtype),
        "last_values": np.full(1, 10, dtype),
        **flags,
        "gamma": 0.9,
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_a_truncated_step_is_worth_what_its_final_observation_is(mode, dtype):
    rollout = ten_steps(3, dtype)
    rollout["values"][11:] = 1e6  # the episode after: nothing of it may leak
    rollout["rewards"][10 if mode != "NextStep" else 11 :] = 1e6
    if mode == "NextStep":
        rollout["rewards"][10] = 1e3  # the reset row: whatever is there is not used
    else:
        rollout["values"][10] = 1e6  # that of the new episode
        rollout["final_values"] = np.full((13, 1), np.nan, dtype)  # only the truncated step's is used
        rollout["final_values"][9] = 10
    advantages, returns = fastvec.gae(**rollout, autoreset_mode=mode)
    assert advantages[:10].tolist() == [[0.0]] * 10
    assert returns[:10].tolist() == [[10.0]] * 10
    if mode == "NextStep":
        assert advantages[10] == 0
        assert returns[10] == 10


@pytest.mark.parametrize("mode", MODES)
def test_a_terminated_step_is_worth_its_reward(mode):
    rollout = ten_steps(0, np.float64, "terminations")
    rollout["last_values"][:] = np.inf
    if mode != "NextStep":
        rollout["final_values"] = np.full((10, 1), np.inf)
    advantages, returns = fastvec.gae(**rollout, autoreset_mode=mode)
    assert advantages[9] == -9
    assert returns[9] == 1
    rollout["truncations"][9] = True  # both flags: it terminated
    assert_same(fastvec.gae(**rollout, autoreset_mode=mode), (advantages, returns))


def test_the_hand_case_tells_the_modes_apart():
    rollout = ten_steps(3, np.float64)
    rollout["values"][10:] = 0  # SameStep: the first value of the new episode is not the final observation's
    right, _ = fastvec.gae(**rollout, final_values=np.full((13, 1), 10.0), autoreset_mode="SameStep")
    wrong, _ = fastvec.gae(**rollout, autoreset_mode="NextStep")
    assert right[9] == 0
    assert wrong[9] == -9


def test_the_last_row_in_next_step_mode():
    rollout = ten_steps(0, np.float64)
    assert fastvec.gae(**rollout, autoreset_mode="NextStep")[1].tolist() == [[10.0]] * 10


def test_a_rollout_that_begins_with_a_reset_row():
    rollout = ten_steps(0, np.float64)
    rollout["rewards"][0] = 1e6
    advantages, returns = fastvec.gae(**rollout, autoreset_mode="NextStep", pending=np.array([True]))
    assert advantages.tolist() == [[0.0]] * 10
    assert returns.tolist() == [[10.0]] * 10
    assert fastvec.gae(**rollout, autoreset_mode="NextStep")[0][0] > 1e5


def test_reset_rows():
    terminations = np.array([[True, False, False], [False, False, False], [False, True, False]])
    truncations = np.array([[False, False, False], [False, False, True], [False, False, False]])
    expected = [[False] * 3, [True, False, False], [False, False, True]]
    assert fastvec.reset_rows(terminations, truncations).tolist() == expected
    expected[0] = [False, False, True]
    found = fastvec.reset_rows(terminations, truncations, pending=np.array([False, False, True]))
    assert found.tolist() == expected
    with pytest.raises(ValueError, match="row 0 of lane 0 has a flag, but pending says"):
        fastvec.reset_rows(terminations, truncations, pending=np.array([True, False, False]))


@pytest.mark.parametrize("mode", MODES)
def test_reset_rows_are_those_of_an_env(mode):
    """Exactly the rows in which an env's elapsed steps stand at 0 afterwards."""
    env = fastvec.make("CartPole-v1", n=5, autoreset_mode=mode, max_episode_steps=11)
    env.reset(seed=0)
    flags, resets = [], []
    rng = np.random.default_rng(0)
    for _ in range(60):
        _, _, terminations, truncations, _ = env.step(rng.integers(2, size=5))
        flags.append((terminations, truncations))
        resets.append(env._batch.elapsed == 0)
        if mode == "Disabled" and (terminations | truncations).any():
            env.reset(options={"reset_mask": terminations | truncations})
    terminations, truncations = (np.stack(each) for each in zip(*flags, strict=True))
    if mode == "NextStep":
        assert fastvec.reset_rows(terminations, truncations).tolist() == np.stack(resets).tolist()
        assert np.stack(resets).any()


# Refusals


def arguments_with(**changes):
    arguments, keywords = random_rollout("SameStep", np.float32, (4, 3), seed=0)
    names = ("rewards", "values", "terminations", "truncations", "last_values")
    return {**dict(zip(names, arguments, strict=True)), **keywords, **changes}


REFUSED = {
    "values of another dtype": ({"values": np.zeros((4, 3), int)}, TypeError, "values are int64; expected float32"),
    "one lane without its axis": ({"values": np.zeros(4)}, ValueError, r"shape \(4,\); expected \(T, n\).*newaxis"),
    "no rows": ({"values": np.zeros((0, 3))}, ValueError, r"shape \(0, 3\)"),
    "rewards of another shape": ({"rewards": np.zeros((3, 4))}, ValueError, r"rewards have shape \(3, 4\).*\(4, 3\)"),
    "rewards that are no numbers": ({"rewards": np.full((4, 3), "1")}, TypeError, "rewards are <U1"),
    "last_values with a row too many": ({"last_values": np.zeros((1, 3))}, ValueError, r"last_values.*\(3,\), \(n,\)"),
    "final_values of another shape": ({"final_values": np.zeros(3)}, ValueError, "final_values have shape"),
    "flags that are numbers": (
        {"terminations": np.zeros((4, 3))},
        TypeError,
        r"float64; expected bool.*astype\(bool\)",
    ),
    "flags of another shape": ({"truncations": np.zeros((4, 2), bool)}, ValueError, r"truncations have shape \(4, 2\)"),
    "a gamma above 1": ({"gamma": 99}, ValueError, "gamma is 99; expected a number from 0 to 1"),
    "a lambda that is NaN": ({"gae_lambda": np.nan}, ValueError, "gae_lambda is nan"),
    "an unknown mode": ({"autoreset_mode": "Sometimes"}, ValueError, "'NextStep', 'SameStep', 'Disabled'"),
    "pending in SameStep": ({"pending": np.zeros(3, bool)}, ValueError, "pending was given in SameStep mode"),
    "final values in NextStep": (
        {"autoreset_mode": "NextStep"},
        ValueError,
        "final_values were given in NextStep mode",
    ),
    "pending of another shape": (
        {"autoreset_mode": "NextStep", "final_values": None, "pending": np.zeros(4, bool)},
        ValueError,
        r"pending have shape \(4,\); expected \(3,\)",
    ),
    "out of another dtype": ({"out": (np.zeros((4, 3)), np.zeros((4, 3)))}, ValueError, "out's advantages are float64"),
    "out of another shape": (
        {"out": (np.zeros((4, 3), np.float32), np.zeros((3, 4), np.float32))},
        ValueError,
        r"out's returns are float32 of shape \(3, 4\)",
    ),
    "out that is one array alone": (
        {"out": np.zeros((4, 3), np.float32)},
        TypeError,
        "out is ndarray; expected a tuple",
    ),
    "out that is no array": ({"out": ([], [])}, ValueError, "out's advantages are list"),
    "out that is not contiguous": (
        {"out": (np.zeros((3, 4), np.float32).T, np.zeros((4, 3), np.float32))},
        ValueError,
        "out's advantages are not C-contiguous",
    ),
    "out that is one array": (
        {"out": (np.zeros((4, 3), np.float32),) * 2},
        ValueError,
        "advantages overlap its returns",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    changes, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        fastvec.gae(**arguments_with(**changes))


@pytest.mark.parametrize("name", ["rewards", "values", "last_values", "final_values"])
def test_out_that_overlaps_an_input_is_refused(name):
    memory = np.zeros(100, np.float32)
    arguments = arguments_with()
    size = arguments[name].size
    arguments[name] = memory[:size].reshape(arguments[name].shape)
    for at in (0, 1):
        out = [np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)]
        out[at] = memory[size - 1 : size + 11].reshape(4, 3)
        with pytest.raises(ValueError, match=f"overlap {name}"):
            fastvec.gae(**arguments, out=tuple(out))
        out[at] = memory[size : size + 12].reshape(4, 3)
        fastvec.gae(**arguments, out=tuple(out))


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_truncation_without_final_values_is_refused(mode):
    rollout = ten_steps(0, np.float64)
    with pytest.raises(
        ValueError, match=r"row 9 of lane 0 is truncated and there are no final_values.*give final_values"
    ):
        fastvec.gae(**rollout, autoreset_mode=mode)
    rollout["terminations"][9] = True  # a terminated episode needs none
    assert fastvec.gae(**rollout, autoreset_mode=mode)[0][9] == -9


def test_flags_that_cannot_come_of_next_step_mode_are_refused():
    rollout = ten_steps(0, np.float64)
    rollout["terminations"][8] = True
    with pytest.raises(ValueError, match=r"row 9 of lane 0 has a flag, but row 8 has one too.*autoreset_mode"):
        fastvec.gae(**rollout, autoreset_mode="NextStep")
