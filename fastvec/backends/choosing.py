"""backend="auto": measures one ordinary env for some milliseconds, and says where its lanes are stepped fastest.

What counts is what a step of all lanes takes: one after the other in this process, or side by side in workers, whose
waking and waiting costs more than many a step. Envs that wait rather than compute can wait all at the same time."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

from fastvec.backends.parcels import pack, unpack

logger = logging.getLogger("fastvec")

# How long one env is stepped, in seconds, and how often at most.
BUDGET = 0.02
MOST_STEPS = 500
# What a step of the process backend costs beside the envs, in seconds: once, and for each worker.
ROUND_TRIP = 20e-6
PER_WORKER = 6e-6
# Workers must be faster by so much: what is measured on one env is not exact, and processes are more trouble.
MARGIN = 1.15


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
        ended, info = _step(env)  # the first often takes longer than any other
        steps, wall, cpu = 0, 0.0, 0.0
        waits_before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        while steps < MOST_STEPS and (steps == 0 or wall < BUDGET):
            action = env.action_space.sample()
            wall_before, cpu_before = time.perf_counter(), time.process_time()
            if ended:
                env.reset()
                ended = False
            else:
                *_, terminated, truncated, info = env.step(action)
                ended = bool(terminated) or bool(truncated)
            cpu += time.process_time() - cpu_before
            wall += time.perf_counter() - wall_before
            steps += 1
        # Who sleeps, reads or asks a server gives the core up of itself; who is only interrupted does not wait.
        waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - waits_before
        if 2 * waits < steps:
            wall = min(wall, cpu)
        return StepCost(wall / steps, cpu / steps, _sending(info))
    finally:
        env.close()


def _step(env: gymnasium.Env[Any, Any]) -> tuple[bool, dict[str, Any]]:
    *_, terminated, truncated, info = env.step(env.action_space.sample())
    return bool(terminated) or bool(truncated), info


def _sending(info: dict[str, Any]) -> float:
    """Seconds that it takes to send an info; those without anything in them are not sent."""
    if not info:
        return 0.0
    before = time.perf_counter()
    unpack(pack(info))
    return time.perf_counter() - before


def choose(cost: StepCost, n: int, cores: int, num_workers: int | None = None) -> Choice:
    """The backend for n lanes of which a step costs so much, and the number of workers unless it is given."""
    serial = n * cost.wall
    counts = {min(n, cores), n} if num_workers is None else {min(n, num_workers)}
    times = {count: _with_workers(cost, n, cores, count) for count in counts}
    workers = min(times, key=lambda count: (times[count], count))
    told = (
        f"a step of one env takes {_in_words(cost.wall)}, {_in_words(cost.cpu)} of it computing; of {n} lanes about "
        f"{_in_words(serial)} one after the other, and {_in_words(times[workers])} with {workers} workers on {cores} "
        f"core{'s' if cores > 1 else ''}"
    )
    if times[workers] * MARGIN < serial:
        return Choice("process", workers, told)
    return Choice("serial", None, told)


def _with_workers(cost: StepCost, n: int, cores: int, workers: int) -> float:
    """About what a step of all lanes takes with so many workers."""
    most_lanes = -(-n // workers)
    busy = max(most_lanes * cost.wall, n * min(cost.cpu, cost.wall) / min(cores, workers))
    return busy + ROUND_TRIP + workers * PER_WORKER + n * cost.info


def chosen(
    factories: list[Callable[[], gymnasium.Env[Any, Any]]], label: str, cores: int, num_workers: int | None
) -> Choice:
    """Measures the first env, and logs what is chosen for these lanes and why."""
    n = len(factories)
    if n == 1:
        choice = Choice("serial", None, "one lane has nothing to run beside")
    else:
        try:
            choice = choose(measure(factories[0]), n, cores, num_workers)
        except Exception as error:  # which will show where it can be dealt with: in reset or step
            choice = Choice("serial", None, f"measuring failed with {type(error).__name__}: {error}")
    logger.info("%s: backend %s, since %s", label, choice.backend, choice.reason)
    return choice


def _in_words(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1.0 else f"{seconds:.1f} s"
