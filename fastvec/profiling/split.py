"""Where the time of a batch step goes: env, ipc, wait, policy and python, from stamps of one clock.

CLOCK_MONOTONIC is the same in all processes, so that what envs in workers note fits between what the loop notes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt

from fastvec.contenders import Source, ordinary_env

PARTS = ("env", "ipc", "wait", "policy", "python")

# The process that an env is in, and begin and end of each of its calls: what TimedEnv.take_stamps returns.
Stamps: TypeAlias = tuple[int, list[tuple[float, float]]]


@dataclass(frozen=True)
class Split:
    """Seconds of a batch step, on average over a slice; their sum is the batch step's time.

    Attributes:
        env: in the envs' own ``step`` and ``reset``: the sum over a worker's lanes, as the mean over workers.
        ipc: the round trip, from the call of the vector env's ``step`` to its return, without the time from the first
            call of an env to the end of the last in the worker whose envs took longest. 0 without workers.
        wait: for the slowest: by how much that worker's envs took longer than ``env``.
        policy: inference.
        python: the rest: loops around the envs, in that worker or in this process, and around it all.
    """

    env: float
    ipc: float
    wait: float
    policy: float
    python: float


class TimedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes begin and end of every call of ``step`` and ``reset``, in seconds of CLOCK_MONOTONIC."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._stamps: list[tuple[float, float]] = []

    def step(self, action: Any) -> Any:
        begin = time.monotonic()
        result = self.env.step(action)
        self._stamps.append((begin, time.monotonic()))
        return result

    def reset(self, **kwargs: Any) -> Any:
        begin = time.monotonic()
        result = self.env.reset(**kwargs)
        self._stamps.append((begin, time.monotonic()))
        return result

    def take_stamps(self) -> Stamps:
        """The process that this env is in, and its calls since this was asked last."""
        stamps, self._stamps = self._stamps, []
        return os.getpid(), stamps


@dataclass(frozen=True)
class TimedSource:
    """Makes the ordinary envs of a source, each in a TimedEnv: a source itself, which goes to workers as it is."""

    source: Source

    def __call__(self) -> gymnasium.Env[Any, Any]:
        return TimedEnv(ordinary_env(self.source))


def split_of(
    loop: npt.NDArray[np.float64], end: float, lanes: Sequence[Stamps] | None, own_process: int | None = None
) -> Split:
    """The mean split of some batch steps.

    Args:
        loop: (steps, 3): when the policy was called, when the vector env's ``step`` was, and when that returned.
        end: when the loop had ended.
        lanes: what the lanes noted; None for a vector env in one piece, all of whose ``step`` counts as env.
        own_process: that of the loop; None for this one.
    """
    own_process = os.getpid() if own_process is None else own_process
    steps = len(loop)
    policy, trip = loop[:, 1] - loop[:, 0], loop[:, 2] - loop[:, 1]
    around = float(end - loop[0, 0] - policy.sum() - trip.sum()) / steps
    if lanes is None:
        return Split(float(trip.mean()), 0.0, 0.0, float(policy.mean()), around)
    busy, span = _by_worker(loop[:, 1], lanes)
    slowest = busy.argmax(axis=0)[None]
    longest = np.take_along_axis(busy, slowest, 0)[0]
    its_span = np.take_along_axis(span, slowest, 0)[0]
    env = float(busy.mean())
    if {process for process, _ in lanes} == {own_process}:
        return Split(env, 0.0, 0.0, float(policy.mean()), float((trip - longest).mean()) + around)
    return Split(
        env,
        float((trip - its_span).mean()),
        float(longest.mean()) - env,
        float(policy.mean()),
        float((its_span - longest).mean()) + around,
    )


def _by_worker(
    begins: npt.NDArray[np.float64], lanes: Sequence[Stamps]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """For each worker and batch step the seconds in envs, and from the first call of one to the end of the last.

    Calls before the first batch step, those of the first reset, belong to none.
    """
    workers = {process: row for row, process in enumerate(dict.fromkeys(process for process, _ in lanes))}
    busy = np.zeros((len(workers), len(begins)))
    first, last = np.full(busy.shape, np.inf), np.full(busy.shape, -np.inf)
    for process, stamps in lanes:
        if not stamps:
            continue
        calls = np.asarray(stamps)
        step = np.searchsorted(begins, calls[:, 0], side="right") - 1
        calls, step = calls[step >= 0], step[step >= 0]
        row = workers[process]
        np.add.at(busy[row], step, calls[:, 1] - calls[:, 0])
        np.minimum.at(first[row], step, calls[:, 0])
        np.maximum.at(last[row], step, calls[:, 1])
    return busy, np.where(last >= first, last - first, 0.0)


def timed_loop(
    step: Callable[[Any], Any],
    act: Callable[[Any], Any],
    observation: Any,
    actions: Sequence[Any],
    clock: Callable[[], float],
) -> tuple[npt.NDArray[np.float64], float, Any]:
    """Infers and steps with each of the actions.

    Returns:
        (the loop's stamps as :func:`split_of` takes them, when it had ended, the last observation).
    """
    stamps = []
    for action in actions:
        asked = clock()
        act(observation)
        sent = clock()
        observation = step(action)[0]
        stamps.append((asked, sent, clock()))
    end = clock()
    return np.array(stamps), end, observation
