"""What careless programs do: threads in one env, forks, exits at any time. Nothing crashes, hangs or is half done.

Most tests run a program of its own, since a failure may take the process down, and with a deadline, so that a hang is a
failure."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from bits import assert_same_bits

import fastvec

DEADLINE = 120  # seconds


def run(program, *, python=(), **environment):
    """Runs a program in a process of its own.

    Returns:
        (exit code, standard output, standard error).
    """
    prelude = "import faulthandler, sys, time, threading\nimport numpy as np\nimport fastvec\nfaulthandler.enable()\n"
    done = subprocess.run(
        [sys.executable, *python, "-c", prelude + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | environment,
    )
    return done.returncode, done.stdout, done.stderr


def assert_runs(program, output="", **environment):
    """Runs a program that is to end well, to print this and to complain of nothing."""
    code, printed, complaints = run(program, **environment)
    assert (code, printed.strip(), complaints.strip()) == (0, output, "")


# Threads


THREADS = """
    def in_threads(count, work):
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""


def test_threads_that_pass_lists_of_actions_do_not_meet_in_a_step():
    """Converting a list hands the GIL over, as does much of what a step does after its loop."""
    assert_runs(
        THREADS
        + """
    actions = [1] * 3000
    array = np.array(actions)

    def make():
        env = fastvec.make("CartPole-v1", n=3000, autoreset_mode="SameStep", episode_stats=True)
        env.reset(seed=0)
        return env

    env, done, stop = make(), [], time.monotonic() + 1.5

    def work(number):
        while time.monotonic() < stop:
            try:
                env.step(array if number % 2 else actions)
                done.append(number)
            except RuntimeError as error:
                assert "step" in str(error)

    in_threads(8, work)
    undisturbed = make()
    for _ in done:
        undisturbed.step(array)
    ours, expected = env.get_state(), undisturbed.get_state()
    pairs = [(ours["columns"][name], expected["columns"][name]) for name in ours["columns"]]
    pairs += [(ours[name], expected[name]) for name in ("elapsed", "pending", "streams", "returns")]
    print(len(done) > 8, all(one.tobytes() == other.tobytes() for one, other in pairs))
    """,
        "True True",
    )


def test_threads_with_different_calls_do_not_meet():
    assert_runs(
        THREADS
        + """
    n = 20_000  # so that columns are pages of their own, which are not there once they were given back
    env = fastvec.make("CartPole-v1", n=n, autoreset_mode="SameStep", episode_stats=True)
    env.reset(seed=0)
    state, stop, ones = env.get_state(), time.monotonic() + 2, np.ones(n, np.int64)
    calls = (
        lambda: env.step(ones),
        lambda: env.step(ones),
        lambda: env.set_attr("gravity", list(np.linspace(1, 10, n))),
        lambda: env.set_state(state),
        lambda: env.set_state(state),
        lambda: env.get_state(),
        lambda: env.reset(seed=[None, *range(1, n)]),
        lambda: env.reset(options={"reset_mask": ones.astype(bool)}),
        lambda: env.set_attr("x", list(np.zeros(n))),
        lambda: env.np_random,
    )
    done = [0] * len(calls)

    def work(number):
        while time.monotonic() < stop:
            try:
                calls[number]()
                done[number] += 1
            except RuntimeError as error:
                assert "another thread" in str(error)

    in_threads(len(calls), work)
    env.set_state(state)
    again = fastvec.make("CartPole-v1", n=n, autoreset_mode="SameStep", episode_stats=True)
    again.reset(seed=0)
    print(all((ours == theirs).all() for ours, theirs in zip(env.step(ones)[:4], again.step(ones)[:4])))
    """,
        "True",
    )


class CallsBack:
    """Actions that use the env while they are being converted."""

    def __init__(self, call, actions):
        self.call, self.actions = call, actions

    def __array__(self, dtype=None, copy=None):
        self.call()
        return self.actions


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.close(),
        lambda env: env.reset(seed=1),
        lambda env: env.step([1, 1]),
        lambda env: env.set_attr("gravity", [1.0, 2.0]),
        lambda env: env.set_state(env.get_state()),
    ],
    ids=["close", "reset", "step", "set_attr", "set_state"],
)
def test_actions_cannot_use_the_env_that_they_are_for(call):
    env, plain = (fastvec.make("CartPole-v1", n=2) for _ in range(2))
    actions = np.array([0, 1])
    for each in (env, plain):
        each.reset(seed=0)
    with pytest.raises(TypeError, match="in step"):
        env.step(CallsBack(lambda: call(env), actions))
    assert_same_bits(env.step(actions), plain.step(actions), "after the refusal")
