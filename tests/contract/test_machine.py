"""What a step computes does not depend on the machine: not on instruction sets, nor on threads."""

import collections
import multiprocessing
import pathlib
import threading
import time

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from rollout import lanes_of, make_single, play, sample_actions

import fastvec
from fastvec import _core
from fastvec.registry import NATIVE_ENVS

DEADLINE = 120  # seconds; only so that a hang is a failure
HERE = [name for name, runs in _core.targets().items() if runs]
# Enough lanes that a step is shared out between threads.
MANY = 40_000


def count_threads():
    """The threads of this process, Python's and others."""
    return len(list(pathlib.Path("/proc/self/task").iterdir()))


# A thread that was joined may be counted for a moment more, while the system puts it away.
def settled_threads():
    """The threads of this process once none has gone for a while."""
    count, since = count_threads(), time.monotonic()
    while time.monotonic() < since + 0.02:
        time.sleep(0.002)
        if count_threads() != count:
            count, since = count_threads(), time.monotonic()
    return count


def assert_threads_become(count):
    deadline = time.monotonic() + DEADLINE
    while count_threads() != count:
        assert time.monotonic() < deadline, f"{count_threads()} threads, expected {count}"
        time.sleep(0.001)


VARIANTS = [(env_id, precision) for env_id, env in NATIVE_ENVS.items() for precision in _core.precisions(env.kernel)]


def trajectory(env_id, mode, n=1030, **kwargs):
    """What 60 steps of n lanes give."""
    actions = sample_actions(make_single(env_id).action_space, (60, n), np.random.default_rng(5))
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=25, **kwargs)
    result = play(env, actions, seed=3)
    env.close()
    return result


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_instruction_sets_change_nothing(variant, mode, monkeypatch, target):
    env_id, precision = variant
    monkeypatch.setenv("FASTVEC_ISA", "baseline")
    expected = trajectory(env_id, mode, precision=precision)
    monkeypatch.setenv("FASTVEC_ISA", target)
    assert_same_bits(trajectory(env_id, mode, precision=precision), expected, target)


def test_an_unknown_instruction_set_is_refused(env_id, monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", "mmx")
    with pytest.raises(ValueError, match="mmx") as caught:
        fastvec.make(env_id)
    assert "baseline" in str(caught.value)


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").is_dir(), reason="threads can be counted on Linux alone")
@pytest.mark.parametrize("num_threads", [2, 5])
def test_threads_change_nothing(env_id, mode, num_threads, monkeypatch):
    monkeypatch.setattr("fastvec.factory.usable_cores", lambda: 8)  # more threads than cores, too
    lanes = 16_384 * num_threads
    actions = sample_actions(make_single(env_id).action_space, (8, lanes), np.random.default_rng(5))
    kwargs = {"n": lanes, "autoreset_mode": mode, "max_episode_steps": 3}
    before = settled_threads()
    env = fastvec.make(env_id, num_threads=num_threads, **kwargs)
    result = play(env, actions, seed=3)
    assert_threads_become(before + num_threads - 1)
    env.close()
    assert_threads_become(before)
    expected = play(fastvec.make(env_id, num_threads=1, **kwargs), actions, seed=3)
    assert_threads_become(before)
    assert_same_bits(result, expected, f"{num_threads} threads")


@pytest.mark.parametrize("bad", ["0", "-1", "two", "1.5", ""])
def test_a_bad_number_of_threads_in_the_environment_is_refused(env_id, monkeypatch, bad):
    monkeypatch.setenv("FASTVEC_NUM_THREADS", bad)
    with pytest.raises(ValueError, match="FASTVEC_NUM_THREADS"):
        fastvec.make(env_id)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_a_bad_number_of_threads_is_refused(env_id, bad):
    with pytest.raises((ValueError, TypeError), match="num_threads") as caught:
        fastvec.make(env_id, num_threads=bad)
    assert repr(bad) in str(caught.value)


def _step_in_child(env, actions, sender):
    sender.send(env.step(actions)[:4])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_steps_on(env_id):
    """The parent's threads are not in the child: it must neither hang nor give anything else."""
    env = fastvec.make(env_id, n=MANY, num_threads=2)
    env.reset(seed=0)
    actions = sample_actions(env.single_action_space, (MANY,), np.random.default_rng(0))
    env.step(actions)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_step_in_child, args=(env, actions, sender), daemon=True)
    child.start()
    sender.close()  # so that a child that dies is an end of file here
    assert receiver.poll(DEADLINE)
    in_child = receiver.recv()
    child.join(DEADLINE)
    assert child.exitcode == 0
    assert_same_bits(in_child, env.step(actions)[:4], "the step in the child")


def test_eight_python_threads_with_an_env_each(env_id, mode):
    results = {}

    def work(number):
        results[number] = trajectory(env_id, mode)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEADLINE)
        assert not worker.is_alive()
    expected = trajectory(env_id, mode)
    for result in results.values():
        assert_same_bits(result, expected, "beside other threads")
    assert len(results) == 8


def digest(value):
    """Something that is equal for two results with the same bits, and can be counted."""
    if isinstance(value, dict):
        return tuple(sorted((key, digest(item)) for key, item in value.items()))
    if isinstance(value, tuple):
        return tuple(digest(item) for item in value)
    return value.dtype.str, value.shape, value.tobytes()


def test_eight_python_threads_with_one_env(env_id, mode):
    """A call either steps all lanes once, or is refused for the call that is running; no two results are mixed up."""
    n = 30_000
    kwargs = {"n": n, "autoreset_mode": mode, "max_episode_steps": -1 if mode == AutoresetMode.DISABLED else 3}
    env = fastvec.make(env_id, **kwargs)
    env.reset(seed=0)
    actions = sample_actions(env.single_action_space, (n,), np.random.default_rng(0))
    done, refused = [], []

    def work():
        for _ in range(20):
            try:
                done.append(digest(env.step(actions)))
            except (RuntimeError, ResetNeeded) as error:
                refused.append(str(error))

    workers = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEADLINE)
        assert not worker.is_alive()
    assert len(done) + len(refused) == 160
    assert done
    assert refused
    assert all("step" in text for text in refused)
    undisturbed = fastvec.make(env_id, **kwargs)
    undisturbed.reset(seed=0)
    assert collections.Counter(done) == collections.Counter(digest(undisturbed.step(actions)) for _ in done)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 65])
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_the_first_lanes_are_the_same_whatever_n_in_any_precision(variant, mode, n):
    env_id, precision = variant
    actions = sample_actions(make_single(env_id).action_space, (60, 130), np.random.default_rng(5))
    kwargs = {"autoreset_mode": mode, "max_episode_steps": 25, "precision": precision}
    together = play(fastvec.make(env_id, n=130, **kwargs), actions, seed=3)
    few = play(fastvec.make(env_id, n=n, **kwargs), actions[:, :n], seed=3)
    assert_same_bits(few, lanes_of(together, slice(n)), f"n={n}")


@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_a_precision_changes_no_space_and_no_dtype(variant):
    env_id, precision = variant
    env, plain = fastvec.make(env_id, n=3, precision=precision), fastvec.make(env_id, n=3)
    assert env.observation_space == plain.observation_space
    assert env.action_space == plain.action_space
    row = np.repeat(sample_actions(env.single_action_space, (1,), np.random.default_rng(0)), 3, axis=0)
    for name, array in play(env, row[np.newaxis], seed=0).items():
        expected = play(plain, row[np.newaxis], seed=0)[name]
        assert array.shape == expected.shape
        if not name.startswith("state "):
            assert array.dtype == expected.dtype
        elif expected.dtype == np.float64:
            assert array.dtype == precision


def test_precisions_that_an_env_has_not_are_refused(env_id):
    with pytest.raises(ValueError, match="float16") as caught:
        fastvec.make(env_id, precision="float16")
    assert "float64" in str(caught.value)
