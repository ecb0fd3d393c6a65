"""The process backend: every way of starting workers gives the same results, and whatever goes wrong is told and leaves
nothing behind. What it has in common with the serial backend is in test_ordinary.py."""

import copy
import functools
import gc
import importlib.util
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ResetNeeded
from ordinary_envs import InfosEnv, LaneEnv, NestedEnv, WordsEnv, make_trouble
from processes import children, files, is_there, needs_proc, wait_until_gone

import fastvec
from fastvec.backends import parcels

CONTEXTS = ["forkserver", "spawn", "fork"]


@pytest.fixture(params=CONTEXTS)
def context(request):
    return request.param


def make_lanes(n=4, trouble=None, lane=2, **kwargs):
    factories = [functools.partial(LaneEnv, i, trouble=trouble if i == lane else None) for i in range(n)]
    return fastvec.make(factories, backend="process", **kwargs)


# The same results however they come


@pytest.mark.parametrize("kwargs", [{}, {"shared_memory": False}, {"num_workers": 3}, {"num_workers": 9}], ids=str)
@pytest.mark.parametrize("source", [NestedEnv, WordsEnv, InfosEnv])
def test_results_are_those_of_the_serial_backend(source, kwargs):
    """B3, C12."""
    own, serial = (
        fastvec.make(source, 4, backend=backend, autoreset_mode="SameStep", episode_stats=True, **extra)
        for backend, extra in (("process", kwargs), ("serial", {}))
    )
    compare(own, serial, 60)


@pytest.mark.parametrize("kwargs", [{}, {"shared_memory": False}], ids=str)
def test_results_are_the_same_however_workers_are_started(context, kwargs):
    own = fastvec.make("CartPole-v1", 3, backend="process", context=context, num_workers=2, **kwargs)
    compare(own, fastvec.make("CartPole-v1", 3, backend="serial"), 60)


def compare(own, other, steps):
    own.action_space.seed(1)
    assert_same_bits(own.reset(seed=4), other.reset(seed=4), "reset")
    for step in range(steps):
        actions = own.action_space.sample()
        results = own.step(actions), other.step(actions)
        for *_, info in results:
            if "episode" in info:
                info["episode"].pop("t")
        assert_same_bits(*results, f"step {step}")
        if step % 17 == 5:
            options = {"reset_mask": np.arange(own.num_envs) % 2 == 0}
            assert_same_bits(own.reset(options=options), other.reset(options=options), f"reset after step {step}")
    own.close()


def test_float64_actions_stay_float64():
    own, serial = (fastvec.make("Pendulum-v1", 3, backend=backend) for backend in ("process", "serial"))
    own.reset(seed=0), serial.reset(seed=0)
    for dtype in (np.float64, np.float32, np.float64):
        actions = np.array([[0.1], [0.2], [0.3]], dtype)
        assert_same_bits(own.step(actions), serial.step(actions), str(dtype))


def test_lanes_are_shared_out_evenly_and_in_order():
    env = make_lanes(5, num_workers=3)
    processes = env.call("process")
    assert [processes.index(process) for process in processes] == [0, 1, 1, 3, 3]
    assert env.num_workers == 3
    assert os.getpid() not in processes


def test_what_only_the_script_knows_reaches_the_workers(context):
    """E12, with cloudpickle."""

    class Local(LaneEnv):
        pass

    offset = 7
    env = fastvec.make(lambda: Local(lane=offset), 2, backend="process", context=context)
    assert env.get_attr("lane") == (7, 7)
    env.set_attr("add", lambda one: one + offset)
    assert env.call("add", 1) == (8, 8)


def test_a_class_of_a_module_that_workers_cannot_import_reaches_them(tmp_path, monkeypatch, context):
    """As of a test suite that pytest imports by path."""
    path = tmp_path / "only_here.py"
    path.write_text("from ordinary_envs import LaneEnv\n\nclass Here(LaneEnv):\n    place = 'here'\n")
    spec = importlib.util.spec_from_file_location("only_here", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "only_here", module)
    spec.loader.exec_module(module)
    with closing(fastvec.make(module.Here, 2, backend="process", context=context)) as env:
        assert env.get_attr("place") == ("here", "here")
        # The class that comes back is the one that is here.
        assert isinstance(env.get_attr("unwrapped")[0], module.Here)
    with closing(fastvec.make(lambda: module.Here(), 2, backend="process", context=context)) as env:
        assert env.get_attr("place") == ("here", "here")


@pytest.mark.parametrize("name", ["json.only_here", "colorsys"])
def test_a_module_that_workers_would_take_for_another_travels_too(tmp_path, monkeypatch, name):
    """One that is said to be in a package, and one with the name of another."""
    path = tmp_path / "hidden.py"
    path.write_text("from ordinary_envs import LaneEnv\n\nclass Here(LaneEnv):\n    place = 'here'\n")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    with closing(fastvec.make(module.Here, 2, backend="process")) as env:
        assert env.get_attr("place") == ("here", "here")


def test_an_exception_of_a_class_that_only_this_process_has_is_the_cause(context):
    class OwnError(Exception):
        pass

    class Raising(LaneEnv):
        def step(self, action):
            raise OwnError(1, 2)

    with closing(fastvec.make(Raising, 2, backend="process", context=context)) as env:
        env.reset(seed=0)
        with pytest.raises(fastvec.WorkerError) as caught:
            env.step([0, 0])
        assert (type(caught.value.__cause__).__name__, caught.value.__cause__.args) == ("OwnError", (1, 2))


def test_without_cloudpickle_what_to_do_is_said(monkeypatch):
    monkeypatch.setattr(parcels, "code_pickler", None)
    with pytest.raises(TypeError, match="install cloudpickle"):
        fastvec.make(lambda: LaneEnv(), 2, backend="process")
    assert fastvec.make(LaneEnv, 2, backend="process").get_attr("lane") == (0, 0)
    assert fastvec.make(lambda: LaneEnv(), 2, backend="process", context="fork").get_attr("lane") == (0, 0)


# When something goes wrong


@pytest.mark.parametrize(
    ("trouble", "cause", "message"),
    [("raise", ValueError, "ValueError: boom"), ("unpicklable", type(None), "UnpicklableError: boom")],
)
def test_an_env_that_raises(trouble, cause, message, context):
    """E2: what it raised, where, and the results of the others; then it goes on."""
    env = make_lanes(trouble=trouble, context=context, num_workers=2)
    env.reset(seed=0)
    env.step([0, 1, 0, 2])
    env.step([0, 1, 0, 2])
    with pytest.raises(fastvec.WorkerError, match=message) as caught:
        env.step([0, 1, 0, 2])
    error = caught.value
    assert "lane 2 (worker 1, lanes 2..3) raised in step" in str(error)
    assert "in make_trouble" in str(error)  # the traceback of the worker
    assert type(error.__cause__) is cause
    assert (error.worker, error.lanes) == (1, (2,))
    assert error.valid.tolist() == [True, True, False, True]
    assert error.results[0][error.valid, 0].tolist() == [3, 6, 9]
    assert error.results[1].tolist() == [0, 1, 0, 3]
    with pytest.raises(ResetNeeded, match="lane 2"):
        env.step([0] * 4)
    obs, _ = env.reset(options={"reset_mask": env.failed})
    assert obs[:, 0].tolist() == [3, 6, 0, 9]
    assert env.step([0, 0, 0, 0])[0][:, 0].tolist() == [4, 7, 1, 10]


@pytest.mark.parametrize(("trouble", "message"), [("kill", "was killed by SIGKILL"), ("exit", "exited with code 3")])
def test_a_worker_that_ends(trouble, message, context):
    env = make_lanes(trouble=trouble, context=context, num_workers=2)
    processes = set(env.call("process"))
    env.reset(seed=0)
    env.step([0] * 4)
    env.step([0] * 4)
    with pytest.raises(fastvec.WorkerError, match=rf"worker 1 \(lanes 2\.\.3\) {message} in step") as caught:
        env.step([0] * 4)
    assert caught.value.lanes == (2, 3)
    assert caught.value.valid.tolist() == [True, True, False, False]
    assert caught.value.results[0][:2, 0].tolist() == [3, 3]
    for call in (lambda: env.step([0] * 4), lambda: env.reset(), lambda: env.get_attr("lane")):
        with pytest.raises(fastvec.WorkerError, match=message):
            call()
    env.close()
    wait_until_gone(processes)


def test_a_worker_that_is_killed_between_calls():
    env = make_lanes(num_workers=2)
    env.reset(seed=0)
    os.kill(env.call("process")[0], signal.SIGKILL)
    with pytest.raises(fastvec.WorkerError, match=r"worker 0 \(lanes 0\.\.1\) was killed by SIGKILL in step"):
        env.step([0] * 4)


@pytest.mark.parametrize("trouble", ["init", "reset"])
def test_envs_that_cannot_begin(trouble, context):
    with pytest.raises(fastvec.WorkerError, match=r"OSError: no (env|reset)") as caught:
        make_lanes(trouble=trouble, context=context, num_workers=2).reset(seed=0)
    assert isinstance(caught.value.__cause__, OSError)
    assert "lane 2" in str(caught.value)
    assert caught.value.worker == 1


def test_a_step_that_hangs_ends_with_its_timeout():
    """E3."""
    env = make_lanes(trouble="sleep", step_timeout=1.0, num_workers=2)
    env.reset(seed=0)
    env.step([0] * 4)
    env.step([0] * 4)
    began = time.monotonic()
    with pytest.raises(fastvec.WorkerError, match=r"had not answered after 1 s.*in step") as caught:
        env.step([0] * 4)
    assert 0.9 < time.monotonic() - began < 30
    assert caught.value.valid.tolist() == [True, True, False, False]


def test_infos_that_cannot_be_sent_are_an_error_of_their_lanes():
    env = fastvec.make(UnsendableEnv, 2, backend="process", num_workers=2)
    env.reset(seed=0)
    with pytest.raises(fastvec.WorkerError, match=r"lane 1 \(worker 1.*pickle") as caught:
        env.step([0, 1])
    assert caught.value.valid.tolist() == [True, False]
    env.reset(seed=0)
    env.step([0, 0])


class UnsendableEnv(LaneEnv):
    def step(self, action):
        info = {"thread": threading.Lock()} if action else {}
        return (*super().step(action)[:4], info)


def test_an_info_that_cannot_be_sent_is_named(context):
    env = fastvec.make(UnsendableEnv, 2, backend="process", context=context)
    env.reset(seed=0)
    with pytest.raises(fastvec.WorkerError, match=r"info\['thread'\] of lane 0 is lock, which cannot be sent"):
        env.step([1, 0])
    env.close()


def test_an_interrupted_step_is_over_with_the_next_reset():
    env = make_lanes(trouble="nap", num_workers=2)
    env.reset(seed=0)
    env.step([0] * 4)
    env.step([0] * 4)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        env.step([0] * 4)
    timer.join()
    with pytest.raises(ResetNeeded, match="interrupted"):
        env.step([0] * 4)
    env.reset(seed=0)
    assert env.step([0] * 4)[0].tolist() == [[1], [1], [1], [1]]


def test_too_little_memory_is_said_and_leaves_no_worker(monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    before = children()
    with pytest.raises(MemoryError, match=r"bytes.*shared_memory=False"):
        fastvec.make(LaneEnv, 2, backend="process", context="fork")
    assert children() == before


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"num_workers": 0}, ValueError, "num_workers"),
        ({"num_workers": 1.5}, TypeError, "num_workers"),
        ({"context": "thread"}, ValueError, "'thread'.*'spawn'"),
        ({"step_timeout": 0}, ValueError, "step_timeout"),
        ({"step_timeout": "1"}, TypeError, "step_timeout"),
        ({"backend": "serial", "num_workers": 2}, ValueError, "process backend alone"),
    ],
)
def test_what_cannot_be_is_refused(kwargs, error, message):
    with pytest.raises(error, match=message):
        fastvec.make(LaneEnv, 2, **{"backend": "process", **kwargs})


def test_a_native_env_has_no_workers():
    with pytest.raises(ValueError, match="num_workers"):
        fastvec.make("CartPole-v1", 2, num_workers=2)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_copies_are_refused(duplicate):
    """E10."""
    env = fastvec.make(LaneEnv, 2, backend="process")
    with pytest.raises(TypeError, match="serial"):
        duplicate(env)
    env.reset(seed=0)


def test_a_fork_of_the_parent_may_not_use_its_workers():
    env = fastvec.make(LaneEnv, 2, backend="process")
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        try:
            env.step([0, 0])
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert env.step([0, 0])[0].tolist() == [[1], [1]]


def test_worker_errors_can_be_pickled():
    error = fastvec.WorkerError("text", 1, (2, 3))
    error.valid = np.array([True, False])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.worker, again.lanes, again.valid.tolist()) == ("text", 1, (2, 3), [True, False])


# The end


@pytest.mark.parametrize("trouble", [None, "close"])
def test_close_returns_and_leaves_no_process(trouble, context):
    env = make_lanes(trouble=trouble, context=context, num_workers=2)
    processes = set(env.call("process"))
    began = time.monotonic()
    env.close(timeout=0.5)
    assert time.monotonic() - began < 30
    env.close()
    wait_until_gone(processes)


def test_close_can_kill_at_once_and_closes_envs_otherwise(tmp_path):
    for terminate in (False, True):
        env = fastvec.make(ClosingEnv, 2, backend="process", path=tmp_path / f"closed-{terminate}")
        env.close(terminate=terminate)
        assert (tmp_path / f"closed-{terminate}").exists() is not terminate


class ClosingEnv(LaneEnv):
    """Says in a file that it was closed."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def close(self):
        self.path.touch()


class BadlyClosingEnv(LaneEnv):
    def close(self):
        raise OSError("no close")


def test_an_env_that_raises_in_close():
    env = fastvec.make(BadlyClosingEnv, 2, backend="process")
    processes = set(env.call("process"))
    with pytest.raises(fastvec.WorkerError, match="OSError: no close"):
        env.close()
    wait_until_gone(processes)
    env.close()


@needs_proc
def test_nothing_is_left_after_many_envs(context):
    """E8."""

    def cycle(trouble):
        env = make_lanes(trouble=trouble, context=context, num_workers=2)
        env.reset(seed=0)
        try:
            for _ in range(4):
                env.step([0] * 4)
        except fastvec.WorkerError:
            pass
        env.close()

    cycle(None)  # starts the fork server and the like
    gc.collect()
    before = files(), sorted(os.listdir("/dev/shm")), children()
    for trouble in [None, "raise", "kill", None, "exit"] * (1 if context == "spawn" else 3):
        cycle(trouble)
    gc.collect()
    assert (files(), sorted(os.listdir("/dev/shm")), children()) == before


def test_an_env_that_is_forgotten_takes_its_workers_along():
    env = make_lanes(num_workers=2)
    processes = set(env.call("process"))
    del env
    gc.collect()
    wait_until_gone(processes)


SCRIPT = """
import os, signal, sys, time
import fastvec
from ordinary_envs import LaneEnv

def main():
    env = fastvec.make(LaneEnv, 4, backend="process", num_workers=2, context="{context}", trouble="{trouble}")
    env.reset(seed=0)
    print(*set(env.call("process")), flush=True)
    {body}

if __name__ == "__main__":
    main()
"""


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


def start_script(tmp_path, body, context="forkserver", trouble="none", script=SCRIPT):
    path = tmp_path / "script.py"
    path.write_text(script.format(context=context, trouble=trouble, body=body), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def test_a_script_that_does_not_close_ends_quietly(tmp_path, context):
    script = start_script(tmp_path, "env.step([0] * 4)", context)
    out, err = script.communicate(timeout=120)
    assert (script.returncode, err) == (0, "")
    wait_until_gone([int(each) for each in out.split()])


@pytest.mark.parametrize("trouble", ["none", "sleep"])
def test_workers_end_when_their_parent_is_killed(tmp_path, context, trouble):
    script = start_script(tmp_path, "while True: env.step([0] * 4)", context, trouble)
    processes = [int(each) for each in script.stdout.readline().split()]
    time.sleep(0.3)
    script.kill()
    script.wait(60)
    script.stdout.close()
    script.stderr.close()
    wait_until_gone(processes)


def test_ctrl_c_is_one_error_of_the_parent(tmp_path, context):
    """E5."""
    script = start_script(tmp_path, "while True: env.step([0] * 4)", context, "sleep")
    processes = [int(each) for each in script.stdout.readline().split()]
    time.sleep(0.3)
    os.killpg(script.pid, signal.SIGINT)
    _, err = script.communicate(timeout=120)
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    wait_until_gone(processes)


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_script_without_a_guard_is_told(tmp_path, context):
    """E12."""
    script = start_script(tmp_path, "", context, script=SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    _, err = script.communicate(timeout=120)
    assert script.returncode != 0
    assert "WorkerError" in err
    assert "`if __name__ == '__main__':`" in err


def test_a_class_of_the_script_reaches_the_workers(tmp_path, context):
    body = "print(env.get_attr('lane'))"
    source = SCRIPT.replace("def main", "class Own(LaneEnv):\n    pass\n\ndef main").replace("make(LaneEnv", "make(Own")
    script = start_script(tmp_path, body, context, script=source)
    out, err = script.communicate(timeout=120)
    assert (script.returncode, err) == (0, "")
    assert out.splitlines()[1] == "(0, 0, 0, 0)"


def test_an_id_that_only_the_script_has_registered_reaches_the_workers(context):
    """E12."""
    gym.register("tests/Process-v0", lambda **kwargs: LaneEnv(**kwargs), max_episode_steps=5)
    try:
        env = fastvec.make("tests/Process-v0", 2, backend="process", context=context, lane=3)
        env.reset(seed=0)
        results = [env.step([0, 0]) for _ in range(5)]
        assert [result[3].tolist() for result in results] == [[False, False]] * 4 + [[True, True]]
        assert results[0][1].tolist() == [3, 3]
    finally:
        gym.registry.pop("tests/Process-v0")


# Parents of other kinds


def test_a_fork_of_a_process_with_workers_makes_its_own(context):
    with closing(make_lanes(num_workers=2, context=context)) as env:
        env.reset(seed=0)
        child = multiprocessing.get_context("fork").Process(target=_make_and_step, args=(context,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert env.step([0] * 4)[0].tolist() == [[1]] * 4


def _make_and_step(context):
    with closing(make_lanes(num_workers=2, context=context)) as env:
        env.reset(seed=0)
        env.step([0] * 4)


def test_a_fork_that_exits_leaves_its_parents_workers_alone(tmp_path, context):
    body = "child = os.fork()\n    if child == 0: sys.exit(0)\n    os.waitpid(child, 0); env.step([0] * 4); env.close()"
    script = start_script(tmp_path, body, context)
    _, err = script.communicate(timeout=120)
    assert (script.returncode, err) == (0, "")


def test_workers_end_with_their_parent_though_a_fork_of_it_lives(tmp_path, context):
    script = start_script(tmp_path, "pid = os.fork()\n    if pid: print(pid, flush=True)\n    time.sleep(600)", context)
    processes = [int(each) for each in script.stdout.readline().split()]
    fork = int(script.stdout.readline())
    script.kill()
    script.wait(60)
    try:
        wait_until_gone(processes)
        assert is_there(fork)
    finally:
        os.kill(fork, signal.SIGKILL)
    script.stdout.close()
    script.stderr.close()


def test_a_daemonic_process_has_serial_envs():
    """As those of multiprocessing.Pool."""
    queue = multiprocessing.get_context("fork").Queue()
    child = multiprocessing.get_context("fork").Process(target=_try_backends, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=60) == "serial"
    assert "daemonic process" in queue.get(timeout=60)
    child.join(60)


def _try_backends(queue):
    queue.put(fastvec.make(LaneEnv, 4, trouble="nap", at=1).backend)
    try:
        fastvec.make(LaneEnv, 4, backend="process")
    except RuntimeError as error:
        queue.put(str(error))


class StartingEnv(LaneEnv):
    """Starts a process of its own."""

    def reset(self, *, seed=None, options=None):
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.01,))
        child.start()
        child.join()
        return super().reset(seed=seed)


def test_an_env_may_start_processes(context):
    with closing(fastvec.make(StartingEnv, 2, backend="process", context=context)) as env:
        assert env.reset(seed=0)[0].tolist() == [[0], [0]]


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_script_may_come_from_standard_input(context):
    source = SCRIPT.replace("def main", "class Own(LaneEnv):\n    pass\n\ndef main").replace("make(LaneEnv", "make(Own")
    script = source.format(body="print(env.get_attr('lane'))", context=context, trouble=None)
    run = subprocess.run(
        [sys.executable, "-"], input=script, text=True, capture_output=True, timeout=120, env=environment()
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "(0, 0, 0, 0)" in run.stdout


def test_a_worker_that_dies_at_the_start_does_not_blame_the_script():
    with pytest.raises(fastvec.WorkerError, match=r"killed by SIGKILL before its envs were made$"):
        fastvec.make(functools.partial(make_trouble, "kill"), 2, backend="process")
