"""backend="auto": measures one ordinary env for some milliseconds, and says where its lanes are stepped fastest.

What counts is what a step of all lanes takes: one after the other in this process, or side by side in workers, whose
waking and waiting costs more than many a step. Envs that wait rather than compute can wait all at the same time."""

from __future__ import annotations

import itertools
import logging
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from fastvec.backends import _bell
from fastvec.backends.parcels import pack, unpack
from fastvec.backends.process import looks_of
from fastvec.backends.starting import may_start

logger = logging.getLogger("fastvec")

# How long one env is stepped, in seconds; of steps that take longer there are two.
BUDGET = 0.02
# Enough different actions to see what an env does, few enough to be made in no time.
ACTIONS = 16
# The most workers that are considered. How long waking them is tried, in seconds, and which part of the trips is below
# what is taken for one: it takes the scheduler a while to spread workers over cores. How long to wait for one.
MOST_WORKERS, TRYING, QUANTILE, PATIENCE = 64, 0.01, 0.1, 0.1
# What the process backend's own Python takes beside that, in seconds: once, and for each worker.
CALL, CALL_OF_WORKER = 6e-6, 1e-6
# Workers must be faster by so much: at times the system puts all of them on one core, and processes are more trouble.
MARGIN = 1.1


@dataclass(frozen=True)
class StepCost:
    """What a step of one env takes, on average with resets, in seconds.

    Attributes:
        wall: of time; of an env that does not wait, without the time in which other processes had its core.
        cpu: of computing, in all threads of the process.
        info: of sending its info to another process.
    """

    wall: float
    cpu: float
    info: float


@dataclass(frozen=True)
class Choice:
    """A backend, for the process backend the number of workers, and why."""

    backend: str
    num_workers: int | None
    reason: str


def measure(factory: Callable[[], gymnasium.Env[Any, Any]]) -> StepCost:
    """Steps an env with random actions, and closes it.

    Raises:
        Exception: what the env raises.
    """
    env = factory()
    try:
        env.reset()
        actions = itertools.cycle([env.action_space.sample() for _ in range(ACTIONS)])
        ended, info = _steps(env, actions, 1, False)  # the first often takes longer than any other
        steps, wall, cpu, count = 0, 0.0, 0.0, 1
        waits_before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        while wall < BUDGET:
            wall_before, cpu_before = time.perf_counter(), time.process_time()
            ended, info = _steps(env, actions, count, ended)
            cpu += time.process_time() - cpu_before
            wall += time.perf_counter() - wall_before
            steps += count
            count *= 2  # so that cheap steps are many for each look at the clock, which takes as long as some of them
        # Who sleeps, reads or asks a server gives the core up of itself; who is only interrupted does not wait.
        waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - waits_before
        if 2 * waits < steps:
            wall = min(wall, cpu)
        return StepCost(wall / steps, cpu / steps, _sending(info))
    finally:
        env.close()


def _steps(
    env: gymnasium.Env[Any, Any], actions: Iterator[Any], count: int, ended: bool
) -> tuple[bool, dict[str, Any]]:
    """Steps so often, where a reset after an end counts as one; returns whether the last ended, and its info."""
    info: dict[str, Any] = {}
    for _ in range(count):
        if ended:
            _, info = env.reset()
            ended = False
        else:
            *_, terminated, truncated, info = env.step(next(actions))
            ended = bool(terminated or truncated)
    return ended, info


def _sending(info: dict[str, Any]) -> float:
    """Seconds that it takes to send an info; those without anything in them are not sent."""
    if not info:
        return 0.0
    before = time.perf_counter()
    unpack(pack(info))
    return time.perf_counter() - before


def counts_of_workers(n: int, cores: int, num_workers: int | None) -> tuple[int, ...]:
    """How many workers are worth considering for n lanes: one a core, and one a lane for envs that wait."""
    if num_workers is not None:
        return (min(n, num_workers),)
    return (n,) if n <= cores else (cores, min(n, MOST_WORKERS))


def measure_round_trip(workers: int, cores: int) -> float:
    """Seconds from waking so many workers, which have nothing to do, until the last has answered, when all goes well.

    It depends on the machine, and on what else runs there, by a factor of ten. Threads stand for the workers, which
    sleep and wake as those do, and are there at once.
    """
    count = min(workers, MOST_WORKERS)
    words = np.zeros((1 + count, _bell.WORDS), np.int32)
    looks, worker_looks = looks_of(workers, cores)
    threads = [
        threading.Thread(target=_bell.echo, args=(words, worker, worker_looks, PATIENCE), daemon=True)
        for worker in range(count)
    ]
    for thread in threads:
        thread.start()
    trips: list[float] = []
    end = time.perf_counter() + TRYING
    while not trips or time.perf_counter() < end:
        trips.append(_bell.round_trip(words, 1, looks, PATIENCE))
    _bell.round_trip(words, 0, looks, PATIENCE)  # which ends them
    for thread in threads:
        thread.join()
    return float(np.quantile(trips, QUANTILE)) * workers / count


def choose(
    cost: StepCost, n: int, cores: int, round_trips: Mapping[int, float], num_workers: int | None = None
) -> Choice:
    """The backend for n lanes of which a step costs so much, and the number of workers unless it is given.

    Args:
        cost: that of one env's step.
        n: number of lanes.
        cores: how many this process may use.
        round_trips: seconds to wake workers and wait for them, for each of :func:`counts_of_workers`.
        num_workers: the number of workers that was asked for, if any.
    """
    serial = n * cost.wall
    times = {
        count: with_workers(cost, n, cores, count, round_trips[count])
        for count in counts_of_workers(n, cores, num_workers)
    }
    workers = min(times, key=lambda count: (times[count], count))
    told = (
        f"a step of one env takes {_in_words(cost.wall)}, {_in_words(cost.cpu)} of it computing, and waking {workers} "
        f"workers {_in_words(round_trips[workers])}; of {n} lanes about {_in_words(serial)} one after the other, and "
        f"{_in_words(times[workers])} with these workers on {cores} core{'s' if cores > 1 else ''}"
    )
    if times[workers] * MARGIN < serial:
        return Choice("process", workers, told)
    return Choice("serial", None, told)


def with_workers(cost: StepCost, n: int, cores: int, workers: int, round_trip: float) -> float:
    """About what a step of all lanes takes with so many workers, in seconds; waking them takes ``round_trip``."""
    most_lanes = -(-n // workers)
    busy = max(most_lanes * cost.wall, n * min(cost.cpu, cost.wall) / min(cores, workers))
    return busy + round_trip + CALL + workers * CALL_OF_WORKER + n * cost.info


def chosen(
    factories: list[Callable[[], gymnasium.Env[Any, Any]]], label: str, cores: int, num_workers: int | None
) -> Choice:
    """Measures the first env and what waking workers takes, and logs what is chosen for these lanes and why."""
    n = len(factories)
    if n == 1:
        choice = Choice("serial", None, "one lane has nothing to run beside")
    elif not may_start():
        choice = Choice("serial", None, "this process is daemonic, and may start no others")
    else:
        try:
            cost = measure(factories[0])
            trips = {count: measure_round_trip(count, cores) for count in counts_of_workers(n, cores, num_workers)}
            choice = choose(cost, n, cores, trips, num_workers)
        except Exception as error:  # which will show where it can be dealt with: in reset or step
            choice = Choice("serial", None, f"measuring failed with {type(error).__name__}: {error}")
    logger.info("%s: backend %s, since %s", label, choice.backend, choice.reason)
    return choice


def _in_words(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1.0 else f"{seconds:.1f} s"
