"""Envs with workers are made, stepped, made to fail and closed, over and over, and nothing is left of them.

For half a minute, or, with ``pytest -m full``, for ten minutes."""

import functools
import gc
import os
import random
import resource
import signal
import time

import numpy as np
import pytest
from ordinary_envs import LaneEnv
from processes import children, files, needs_proc

import fastvec

CONTEXTS = ("forkserver", "fork")  # spawn takes most of its time for imports


def cycle(rng):
    """The life of one env, with something in it that goes wrong, or nothing; returns the number of steps."""
    trouble = rng.choice([None, None, "raise", "unpicklable", "kill", "exit"])
    at, n = rng.randrange(1, 12), rng.randrange(1, 6)
    factories = [functools.partial(LaneEnv, i, length=5, trouble=trouble if i == 0 else None, at=at) for i in range(n)]
    batch_size = rng.choice([None, rng.randrange(1, n + 1)])
    env = fastvec.make(
        factories,
        backend="process",
        batch_size=batch_size,
        num_workers=rng.randrange(1, 4),
        context=rng.choice(CONTEXTS),
        autoreset_mode=rng.choice(["NextStep", "SameStep"]),
        on_worker_error=rng.choice(["raise", "restart"]),
    )
    steps = 0
    try:
        env.reset(seed=rng.randrange(1000))
        processes = env.call("process")
        ready = range(n)
        for _ in range(rng.randrange(20)):
            if batch_size is None:
                obs = env.step(np.zeros(n, np.int64))[0]
                assert obs.shape == (n, 1)
            else:
                env.send(np.zeros(len(ready), np.int64), ready)
                ready = env.recv(timeout=60)[-1]["env_id"]
                assert len(ready) == batch_size
            steps += 1
        if rng.random() < 0.2:
            os.kill(rng.choice(processes), signal.SIGKILL)
            if batch_size is None:
                env.step(np.zeros(n, np.int64))
    except (fastvec.WorkerError, ProcessLookupError):
        pass
    if rng.random() < 0.8:  # or it is left to the garbage collector
        env.close(terminate=rng.random() < 0.3)
    return steps


def soak(seconds):
    rng = random.Random(0)
    for _ in range(3):
        cycle(rng)  # starts the fork server, and imports what is imported late
    gc.collect()
    before = files(), sorted(os.listdir("/dev/shm")), children()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end, cycles, steps = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        steps += cycle(rng)
        cycles += 1
    gc.collect()
    assert (files(), sorted(os.listdir("/dev/shm")), children()) == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 50_000  # kilobytes
    assert cycles > 5
    assert steps > 10


@needs_proc
def test_nothing_is_left():
    soak(30)


@needs_proc
@pytest.mark.full
def test_nothing_is_left_for_long():
    soak(600)
