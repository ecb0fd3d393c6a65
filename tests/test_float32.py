"""precision="float32": its sines and cosines, its distance from the exact env, and the contract that it keeps."""

from __future__ import annotations

import ctypes
import itertools
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import play, proceed

import fastvec
from fastvec import _core
from fastvec.registry import NATIVE_ENVS
from fastvec.testing import check_vector_env

ROOT = Path(__file__).parents[1]
ENVS = [env_id for env_id, native in NATIVE_ENVS.items() if "float32" in _core.precisions(native.kernel)]
HERE = [name for name, runs in _core.targets().items() if runs]
MODES = [mode.value for mode in AutoresetMode]

# Sine and cosine: csrc/sincos32.h

FLAGS = [
    *("-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'csrc'}"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
]
# Vectors of 16, 32 and 64 bytes on x86-64; a CPU of another kind has the first alone.
ISA_FLAGS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "dq", "vl", "bw"))],
}
BUILDS = list(itertools.product([name for name in ("gcc", "clang") if shutil.which(name)], HERE))
# function -> the exact one, the limit below which it is used, and its error as sincos32.h states it
FUNCTIONS = {
    "sin_small": (np.sin, 0.78125, 0.77),
    "cos_small": (np.cos, 0.78125, 0.99),
    "sin": (np.sin, 8192.0, 1.54),
    "cos": (np.cos, 8192.0, 1.54),
}
# .ci/run allows no skip for the want of a compiler: there these are failures.
needs_compiler = pytest.mark.skipif(not BUILDS, reason="needs gcc or clang")


def compile_c(compiler, isa, *arguments):
    """Runs a compiler and returns what it said."""
    command = [compiler, *FLAGS, *ISA_FLAGS[isa], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """For each build a function (name, x) -> (results, whether x was outside)."""

    def call(library, name, x):
        out, outside = np.empty_like(x), np.empty(len(x), np.int32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, out, outside)]
        getattr(library, f"loop_{name}")(*pointers, ctypes.c_int64(len(x)))
        return out, outside.astype(bool)

    folder = tmp_path_factory.mktemp("sincos32")
    found = {}
    for compiler, isa in BUILDS:
        path = folder / f"{compiler}-{isa}.so"
        compile_c(compiler, isa, "-fPIC", "-shared", ROOT / "tests" / "c" / "sincos32_loops.c", "-o", path, "-lm")
        library = ctypes.CDLL(str(path))
        found[f"{compiler}-{isa}"] = lambda name, x, library=library: call(library, name, x)
    return found


def floats_between(low, high, step=1):
    """Every `step`th float32 from low, included, to high, not included, in arrays of some millions."""
    first, last = (int(np.float32(x).view(np.uint32)) for x in (low, high))
    for start in range(first, last, step << 22):
        yield np.arange(start, min(start + (step << 22), last), step, np.uint32).view(np.float32)


def errors(ours, exact):
    """The distance between float32 results and float64 ones, in units in the last place of the exact result."""
    return np.abs(ours - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


def greatest_error(loops, name, step):
    """The greatest error over every `step`th argument, and the same bits from every build."""
    exact, limit, _ = FUNCTIONS[name]
    greatest = 0.0
    for x in floats_between(0.0, limit, step):
        results = [loop(name, x) for loop in loops.values()]
        for ours, outside in results:
            assert not outside.any()
            assert_same_bits(ours, results[0][0], name)
        with np.errstate(divide="ignore"):
            greatest = max(greatest, errors(results[0][0], exact(x.astype(np.float64))).max())
        negative, _ = next(iter(loops.values()))(name, -x)
        assert np.array_equal(negative, -results[0][0] if name.startswith("sin") else results[0][0])
    return greatest


@needs_compiler
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("step", [997, pytest.param(1, marks=pytest.mark.full)])
def test_errors_of_sine_and_cosine(loops, name, step):
    """All arguments in the full run: the stated error is the greatest there is, rounded up."""
    stated = FUNCTIONS[name][2]
    greatest = greatest_error(loops, name, step)
    assert greatest <= stated
    assert step > 1 or greatest > stated - 0.01


@needs_compiler
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_beyond_the_limit_are_outside(loops, name):
    limit = np.float32(FUNCTIONS[name][1])
    inside = np.array([0.0, -0.0, 1e-45, np.nextafter(limit, np.float32(0))], np.float32)
    beyond = np.array([limit, 2 * limit, 1e30, np.inf, np.nan], np.float32)
    x = np.concatenate([inside, -inside, beyond, -beyond])
    for loop in loops.values():
        assert np.array_equal(loop(name, x)[1], np.arange(len(x)) >= 2 * len(inside))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the report is gcc's")
@pytest.mark.parametrize("isa", ISA_FLAGS)
def test_sine_and_cosine_are_vectorised(isa, tmp_path):
    source = ROOT / "tests" / "c" / "sincos32_loops.c"
    report = compile_c("gcc", isa, "-fopt-info-vec-optimized", "-c", source, "-o", tmp_path / "loops.o")
    lines = {int(line) for line in re.findall(r"sincos32_loops\.c:(\d+):\d+: optimized: *loop vectorized", report)}
    written = source.read_text().splitlines()
    assert {number for number, line in enumerate(written, 1) if line.startswith("LOOP(")} <= lines


# The kernels


def env_source(env, folder):
    """A C file with the float32 kernel of csrc/envs/<env>.h alone."""
    source = folder / "env.c"
    source.write_text(
        f'#define real float\n#define FV_REAL_NAME float32\n#include "envs/{env}.h"\n'
        f"const fv_kernel *kernel = &{env}_float32_kernel;\n"
    )
    return source


@needs_compiler
@pytest.mark.parametrize("kernel", sorted({NATIVE_ENVS[env_id].kernel for env_id in ENVS}))
def test_no_number_of_a_kernel_becomes_double_unasked(kernel, tmp_path):
    for compiler, isa in BUILDS:
        compile_c(compiler, isa, "-Wdouble-promotion", "-c", env_source(kernel, tmp_path), "-o", tmp_path / "env.o")


# One step beside the exact env

STATE = ("x", "x_dot", "theta", "theta_dot")
LIVE, WIDE, LARGE = (2.4, 3.0, 0.21, 3.5), (10.0, 50.0, 3.2, 50.0), (1e6, 1e6, 1e9, 1e4)
# In units of 2^-24, of what a state variable was and the most that it may have changed by; the greatest seen is 4.9.
STEP_ERROR = 6


def random_states(limits, n, rng):
    """States of n lanes, (4, n) float32; half of them even in each variable, half even in its exponent."""
    states = np.stack([rng.uniform(-limit, limit, n) for limit in limits])
    states[:, : n // 2] *= np.exp2(-rng.uniform(0, 40, (4, n // 2)))
    return states.astype(np.float32)


def step_from(states, actions, **kwargs):
    """One step of CartPole from these states: the states after it, float64, and what the step returned."""
    env = fastvec.make("CartPole-v1", n=states.shape[1], max_episode_steps=-1, **kwargs)
    env.reset(seed=0)
    for name, column in zip(STATE, states, strict=True):
        env.state[name][:] = column
    returned = env.step(actions)
    return np.stack([env.state[name].astype(np.float64) for name in STATE]), returned


@pytest.mark.parametrize("limits", [LIVE, WIDE, LARGE], ids=["live", "wide", "large"])
@pytest.mark.parametrize("count", [100_000, pytest.param(5_000_000, marks=pytest.mark.full)])
def test_one_step_is_close_to_the_exact_one(limits, count):
    rng = np.random.default_rng(count)
    states, actions = random_states(limits, count, rng), rng.integers(0, 2, count)
    exact, exact_results = step_from(states, actions)
    ours, results = step_from(states, actions, precision="float32")
    x, x_dot, theta, theta_dot = np.abs(states.astype(np.float64))
    pull = (10.0 + 0.05 * theta_dot**2) / 1.1
    most_theta_acc = (9.8 + pull) / (0.5 * (4 / 3 - 0.1 / 1.1))
    most_acc = pull + 0.05 * most_theta_acc / 1.1
    scale = np.stack(
        [x + 0.02 * x_dot, x_dot + 0.02 * most_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * most_theta_acc]
    )
    assert (np.abs(ours - exact) <= STEP_ERROR * 2.0**-24 * scale).all()
    # The flags are those of the exact step wherever it does not end that close to a limit.
    clear = np.ones(count, bool)
    for place, limit in ((0, 2.4), (2, 12 * 2 * np.pi / 360)):
        clear &= np.abs(np.abs(exact[place]) - limit) > STEP_ERROR * 2.0**-24 * scale[place]
    assert clear.mean() > 0.99
    assert_same_bits(results[2][clear], exact_results[2][clear], "terminations")
    assert_same_bits(results[1][clear], exact_results[1][clear], "rewards")


# Likewise, of MountainCar; the greatest seen is 2.7.
MOUNTAIN_CAR_ERROR = 4


@pytest.mark.parametrize("count", [100_000, pytest.param(5_000_000, marks=pytest.mark.full)])
def test_one_step_of_mountain_car_is_close_to_the_exact_one(count):
    rng = np.random.default_rng(count)
    states = np.stack([rng.uniform(-1.2, 0.6, count), rng.uniform(-0.07, 0.07, count)]).astype(np.float32)
    actions = rng.integers(0, 3, count)
    after = {}
    for precision in ("float64", "float32"):
        env = fastvec.make("MountainCar-v0", n=count, max_episode_steps=-1, precision=precision)
        env.reset(seed=0)
        for name, column in zip(("position", "velocity"), states, strict=True):
            env.state[name][:] = column
        env.step(actions)
        after[precision] = np.stack([env.state[name].astype(np.float64) for name in ("position", "velocity")])
    position, velocity = np.abs(states.astype(np.float64))
    most_acceleration = 0.001 + 0.0025
    scale = np.stack([position + velocity + most_acceleration, velocity + most_acceleration])
    inside = (after["float64"][0] > -1.2) & (after["float32"][0] > -1.2)  # at the wall the velocity is 0
    error = np.abs(after["float32"] - after["float64"]) / (2.0**-24 * scale)
    assert error[:, inside].max() <= MOUNTAIN_CAR_ERROR
    assert inside.mean() > 0.9


def test_a_state_that_is_no_number_stays_none():
    states = np.zeros((4, 3), np.float32)
    states[2] = [np.inf, -np.inf, np.nan]
    after, _ = step_from(states, np.zeros(3, np.int64), precision="float32")
    assert np.isnan(after[1]).all()
    assert np.isnan(after[3]).all()


# Episodes


@pytest.mark.parametrize("env_id", ENVS)
@pytest.mark.parametrize("seed", [0, 7, 2**70])
def test_episodes_begin_where_the_exact_ones_do(env_id, seed):
    """After the seed and after autoresets: the streams are the same, their numbers rounded once."""
    exact, ours = (fastvec.make(env_id, n=50, precision=precision) for precision in ("float64", "float32"))
    for _ in range(3):
        exact_obs, obs = exact.reset(seed=seed)[0], ours.reset(seed=seed)[0]
        assert_same_bits(obs, exact_obs, "first observation")
        for name, column in ours.state.items():
            assert_same_bits(column, exact.state[name].astype(np.float32), name)
        seed = None


def first_lengths(precision, seed, n):
    """Lengths of the first episodes of n lanes of CartPole under random actions."""
    env = fastvec.make("CartPole-v1", n=n, precision=precision, copy=False)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    lengths = np.zeros(n, np.int64)
    running = np.ones(n, bool)
    while running.any():
        _, _, terminations, truncations, _ = env.step(rng.integers(0, 2, n))
        lengths += running
        running &= ~(terminations | truncations)
    return lengths


def largest_gap(one, other):
    """The greatest distance between two samples' distribution functions (Kolmogorov and Smirnov)."""
    both = np.unique(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(sample), both, side="right") / len(sample) for sample in (one, other)]
    return np.abs(shares[0] - shares[1]).max()


@pytest.mark.parametrize("episodes", [50_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_episodes_are_as_long_as_the_exact_ones(episodes):
    """Of two independent samples, at the level of 1 in 1000: the same mean length, and the same distribution."""
    exact, ours = first_lengths("float64", 0, episodes), first_lengths("float32", 10**9, episodes)
    standard_error = np.sqrt((exact.var() + ours.var()) / episodes)
    assert abs(exact.mean() - ours.mean()) < 3.3 * standard_error
    assert largest_gap(exact, ours) < 1.95 * np.sqrt(2 / episodes)
    # And in the same lanes, with the same actions, hardly any episode ends at another step.
    assert (first_lengths("float32", 0, episodes) != exact).mean() < 1e-4


# What does not depend on the machine


def far_trajectory(env_id, mode, **kwargs):
    """120 steps, with lanes put far from where episodes take them now and then: arguments beyond all limits."""
    n = 1030
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=25, precision="float32", **kwargs)
    rng = np.random.default_rng(11)
    rows = play(env, rng.integers(0, 2, (20, n)), seed=3)
    found = [rows]
    for _ in range(5):
        for column in env.state.values():
            lanes = rng.random(n) < 0.1
            column[lanes] = rng.choice([0.7, 0.8, 3.0, 8191.0, 8193.0, 1e9, 3e38, np.nan], lanes.sum())
        found.append(proceed(env, rng.integers(0, 2, (20, n))))
    env.close()
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ENVS)
def test_lanes_far_out_have_the_same_bits_everywhere(env_id, mode, monkeypatch):
    """tests/contract/test_machine.py has the others."""
    monkeypatch.setenv("FASTVEC_ISA", "baseline")
    expected = far_trajectory(env_id, mode)
    for target in HERE:
        for math in ("", "libm"):
            monkeypatch.setenv("FASTVEC_ISA", target)
            monkeypatch.setenv("FASTVEC_MATH", math)
            assert_same_bits(far_trajectory(env_id, mode), expected, f"{target}, {math or 'vector'}")


@pytest.mark.parametrize("env_id", ENVS)
def test_threads_change_nothing(env_id, monkeypatch):
    monkeypatch.setattr("fastvec.factory.usable_cores", lambda: 8)
    n = 40_000
    actions = np.random.default_rng(5).integers(0, 2, (8, n))
    results = [
        play(fastvec.make(env_id, n=n, num_threads=count, max_episode_steps=3, precision="float32"), actions, seed=3)
        for count in (1, 2, 5)
    ]
    assert_same_bits(results[1], results[0], "2 threads")
    assert_same_bits(results[2], results[0], "5 threads")


# The contract


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ENVS)
def test_the_rules_of_vector_envs_hold(env_id, mode):
    """Flags, limit, autoresets, seeds, masks, statistics, closing: the rules that do not ask for Gymnasium's bits."""
    check_vector_env(
        lambda: fastvec.make(
            env_id, n=5, autoreset_mode=mode, max_episode_steps=12, episode_stats=True, precision="float32"
        )
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ENVS)
def test_statistics_are_sums_of_what_was_returned(env_id, mode):
    n = 40
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=15, episode_stats=True, precision="float32")
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    returns, lengths, resetting = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, bool)
    seen = 0
    for _ in range(100):
        _, rewards, terminations, truncations, info = env.step(rng.integers(0, 2, n))
        returns, lengths = np.where(resetting, 0, returns + rewards), np.where(resetting, 0, lengths + 1)
        ended = terminations | truncations
        if ended.any():
            assert_same_bits(info["_episode"], ended, "_episode")
            assert_same_bits(info["episode"]["r"][ended], returns[ended], "returns")
            assert_same_bits(info["episode"]["l"][ended], lengths[ended], "lengths")
            seen += ended.sum()
            if mode == "Disabled":
                env.reset(options={"reset_mask": ended})
        resetting = ended & (mode == "NextStep")
        returns, lengths = np.where(ended, 0.0, returns), np.where(ended, 0, lengths)
    assert seen > n


def test_a_state_goes_on_with_the_same_bits():
    actions = np.random.default_rng(2).integers(0, 2, (80, 30))
    env, other = (fastvec.make("CartPole-v1", n=30, precision="float32") for _ in range(2))
    play(env, actions[:40], seed=4)
    other.reset(seed=9)
    other.set_state(env.get_state())
    assert_same_bits(proceed(other, actions[40:]), proceed(env, actions[40:]), "after set_state")


def test_a_state_of_another_precision_is_refused():
    exact, ours = (fastvec.make("CartPole-v1", n=2, precision=precision) for precision in ("float64", "float32"))
    exact.reset(seed=0)
    with pytest.raises(ValueError, match="precision is 'float64', this env's is 'float32'"):
        ours.set_state(exact.get_state())


# What runs


def test_repr_says_the_precision_if_it_is_not_the_exact_one():
    assert repr(fastvec.make("CartPole-v1", n=4)) == "VecEnv(CartPole-v1, num_envs=4)"
    ours = fastvec.make("CartPole-v1", n=4, precision="float32")
    assert repr(ours) == "VecEnv(CartPole-v1, num_envs=4, precision=float32)"


def test_doctor_says_which_envs_have_it():
    from fastvec import doctor

    precision = doctor.report()["precision"]
    assert precision.startswith("float64")
    assert set(ENVS) == {env_id for env_id in NATIVE_ENVS if re.search(rf"{env_id}(,|$)", precision)}
