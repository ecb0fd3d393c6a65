"""The one way to measure env-steps per second: under `fastvec bench` and bench/.

A race lets contenders (contenders.py) step in turns and keeps the times of every round."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from gymnasium.vector.utils import batch_space

import fastvec
from fastvec.contenders import CONTENDERS, REFERENCE, SEED, Contender, Source, ordinary_env
from fastvec.machine import usable_cores

# Enough different actions to keep episodes from repeating, few enough to stay in the cache beside the env's own state.
MOST_ACTION_ARRAYS = 1024
FEWEST_ACTION_ARRAYS = 16
ACTION_BYTES = 2**18
# Flags that are kept at once while resets are counted.
FLAGS = 2**18


def sample_actions(source: Source, n: int, seed: int = SEED) -> list[Any]:
    """Random actions for n envs, the same every time: a list of what ``step`` takes."""
    env = ordinary_env(source)
    space = batch_space(env.action_space, n)
    env.close()
    space.seed(seed)
    first = space.sample()
    # Those of nested spaces, which are no array, are taken to be large.
    count = ACTION_BYTES // max(1, getattr(first, "nbytes", ACTION_BYTES))
    count = max(FEWEST_ACTION_ARRAYS, min(MOST_ACTION_ARRAYS, count))
    return [first, *(space.sample() for _ in range(count - 1))]


def step_through(step: Callable[[Any], Any], actions: Sequence[Any]) -> None:
    """Calls ``step`` with each of the actions: the loop that is timed, the same for all contenders."""
    for action in actions:
        step(action)


def resets_between(contender: Contender, flags: Sequence[Any], pending: int) -> tuple[int, int]:
    """The reset rows in some steps, seen in all of them at once, which is much faster than one by one.

    Args:
        contender: whose they are.
        flags: what ``step`` returned as third and fourth in each of them: new arrays every time.
        pending: how many rows ended an episode in the step before.

    Returns:
        (reset rows, rows that ended an episode in the last step).
    """
    together = [np.concatenate(kind) for kind in zip(*flags, strict=True)]
    last = contender.ended((None, None, *flags[-1]))
    return pending + contender.ended((None, None, *together)) - last, last


RunnerType = TypeVar("RunnerType", bound="Runner")


class Runner:
    """A contender at work: one env, reset and ready to be stepped through a list of actions, over and over.

    Attributes:
        contender: who steps.
        source: what the envs are made of.
        n: number of envs.
        setting: keywords the env was made with.
        seed: that of the reset.
        burst: steps that fill a slice of time, once ``warm_up`` has found out.
        env: the env; None once it is closed.
        observation: what the reset returned.
    """

    def __init__(
        self,
        contender: Contender,
        source: Source,
        n: int,
        actions: Sequence[Any],
        setting: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seed: int = SEED,
    ) -> None:
        """Makes and resets the env.

        Args:
            contender: who steps.
            source: an id, or what else ``fastvec.make`` takes, lists aside.
            n: number of envs.
            actions: arrays as :func:`sample_actions` makes them.
            setting: keywords of the contender's ``make``.
            clock: seconds, as ``time.perf_counter``.
            seed: for the reset.
        """
        self.contender = contender
        self.source = source
        self.n = n
        self.setting = dict(setting or {})
        self.seed = seed
        self.burst = 1
        self.actions = actions
        self._clock = clock
        self._cycle = itertools.cycle(actions)
        self.env = contender.make(source, n, **self.setting)
        try:
            self.observation = contender.reset(self.env, seed)
        except BaseException:
            self.abandon()
            raise

    def step(self, k: int) -> float:
        """Steps k times and returns the seconds that took.

        Timed are the k calls, the loop around them, and the release of what they returned; not the choice of actions,
        and no look at the results: at n = 1 a look takes longer than a step, and keeping the results for
        later slows the steps down by a third.
        """
        actions = self.next_actions(k)
        step = self.env.step
        start = self._clock()
        step_through(step, actions)
        return self._clock() - start

    def next_actions(self, k: int) -> list[Any]:
        """Those of the next k steps."""
        return list(itertools.islice(self._cycle, k))

    def count_resets(self, k: int, pending: int = 0) -> tuple[int, int]:
        """Steps k times off the clock and counts the rows that were resets.

        Args:
            k: number of steps.
            pending: how many rows ended an episode in the step before.

        Returns:
            (reset rows, rows that ended an episode in the last step).
        """
        resets, step = 0, self.env.step
        at_once = max(1, FLAGS // self.n)
        while k > 0:
            flags = [step(action)[2:4] for action in self.next_actions(min(k, at_once))]
            counted, pending = resets_between(self.contender, flags, pending)
            resets, k = resets + counted, k - len(flags)
        return resets, pending

    def warm_up(self, seconds: float) -> int:
        """Steps for about that long, and sets ``burst`` to the number of steps that fill it. Returns the steps made."""
        made, k = 0, 1
        spent = 0.0
        while spent < seconds:
            took = self.step(k)
            made, spent = made + k, spent + took
            self.burst = max(1, round(seconds * k / took)) if took > 0 else 2 * k
            k = min(2 * k, self.burst)
        return made

    def close(self) -> None:
        """Closes and forgets the env, so that its memory and threads go now."""
        env, self.env = self.env, None
        env.close()

    def abandon(self) -> None:
        """Closes in the middle of whatever was interrupted."""
        env, self.env = self.env, None
        self.contender.abandon(env)


@contextmanager
def running_as(kind: type[RunnerType], *args: Any, **kwargs: Any) -> Iterator[RunnerType]:
    """A runner of some kind, closed at the end, and without waiting for its workers if the end is an exception."""
    runner = kind(*args, **kwargs)
    try:
        yield runner
    except BaseException:
        runner.abandon()
        raise
    else:
        runner.close()


def running(*args: Any, **kwargs: Any) -> AbstractContextManager[Runner]:
    """A :class:`Runner`, as :func:`running_as` makes it."""
    return running_as(Runner, *args, **kwargs)


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Lets Ctrl-C wait, so that no env is half made when it strikes.

    Processes that are started meanwhile never see it (they inherit the signal mask): they are closed by us,
    and print no tracebacks of their own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of some samples, one a round."""

    median: float
    low: float
    high: float
    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        low, median, high = np.percentile(samples, (25, 50, 75))
        return cls(float(median), float(low), float(high), tuple(float(sample) for sample in samples))

    def to_json(self) -> dict[str, Any]:
        return {"median": self.median, "low": self.low, "high": self.high, "samples": list(self.samples)}


@dataclass(frozen=True)
class Result:
    """What one contender did at one n.

    Attributes:
        n: number of envs.
        contender: who.
        absent: why it did not run; None if it did.
        setting: the keywords of ``make`` that were fastest.
        sps: env-steps a second, without reset rows.
        ratio: fastvec's ``sps`` over this one's, round by round; None if either did not run.
    """

    n: int
    contender: Contender
    absent: str | None = None
    setting: Mapping[str, Any] = field(default_factory=dict)
    sps: Spread | None = None
    ratio: Spread | None = None

    def to_json(self) -> dict[str, Any]:
        about = {"n": self.n, "contender": self.contender.name, "title": self.contender.title}
        if self.sps is None:
            return {**about, "absent": self.absent}
        return {
            **about,
            "setting": dict(self.setting),
            "sps": self.sps.to_json(),
            "ratio": None if self.ratio is None else self.ratio.to_json(),
        }


def race(
    source: Source,
    n: int,
    *,
    seconds: float,
    rounds: int,
    contenders: Sequence[Contender] = tuple(CONTENDERS.values()),
    advance: Callable[[int], None] = lambda slices: None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Result]:
    """Races contenders at one n.

    After a warm-up, every contender gets a slice of time in every round, and every round begins with another one, so
    that whatever the machine does meanwhile hits all alike. Ratios are taken within rounds.

    An env-step is a row that ``step`` returned, unless it only shows the reset of an episode that ended in the row
    before (the rule of Gymnasium's ``benchmark_vector_step``). Resets are not looked for while the clock runs
    (see :meth:`Runner.step`): all contenders are seeded, so afterwards a new env makes the same steps once more,
    and this time they are counted.

    Args:
        source: an id, or what else ``fastvec.make`` takes, lists aside.
        n: number of envs.
        seconds: measured time for each contender, all rounds together.
        rounds: number of slices it is cut into.
        contenders: who takes part.
        advance: called with a number of slices that are done; :func:`planned_slices` says how many there will be.
        clock: seconds, as ``time.perf_counter``.

    Returns:
        A result for each contender, in their order.

    Raises:
        KeyboardInterrupt: on Ctrl-C; all envs are closed by then.
    """
    actions = sample_actions(source, n)
    absent: dict[str, str] = {}
    runners: list[Runner] = []
    steps: list[list[int]] = []
    with ExitStack() as stack:
        for contender in contenders:
            reason = contender.absence(source, n)
            if reason is not None:
                absent[contender.name] = reason
                continue
            for setting in contender.settings(n):
                try:
                    with holding_interrupts():
                        runners.append(stack.enter_context(running(contender, source, n, actions, setting, clock)))
                except Exception as error:
                    # A rival that is broken on this machine is no reason to measure none; fastvec itself is.
                    if contender.name == REFERENCE:
                        raise
                    absent[contender.name] = f"failed: {type(error).__name__}: {error}"
        for runner in runners:
            warm_up = runner.warm_up(seconds / rounds)
            steps.append([warm_up] + [runner.burst] * rounds)
            advance(1)
        times = interleave(runners, rounds, advance)

    samples = []
    for runner, made, took in zip(runners, steps, times, strict=True):
        resets = count_again(runner, made)
        advance(rounds)
        rows = [k * n - uncounted for k, uncounted in zip(made[1:], resets[1:], strict=True)]
        samples.append([row / second for row, second in zip(rows, took, strict=True)])
    return _results(n, contenders, absent, runners, samples)


def planned_slices(
    source: Source, n: int, rounds: int, contenders: Sequence[Contender] = tuple(CONTENDERS.values())
) -> int:
    """How many slices :func:`race` will report."""
    slots = sum(len(contender.settings(n)) for contender in contenders if contender.absence(source, n) is None)
    return slots * (1 + 2 * rounds)


class Racer(Protocol):
    """What takes turns: it makes ``burst`` steps when it is its turn."""

    burst: int

    def step(self, k: int) -> float:
        """Steps k times and returns the seconds that took."""


def interleave(
    runners: Sequence[Racer],
    rounds: int,
    advance: Callable[[int], None] = lambda slices: None,
    times: list[list[float]] | None = None,
) -> list[list[float]]:
    """Lets every runner make one burst a round; the runner that is first changes from round to round.

    Args:
        runners: who takes turns.
        rounds: number of rounds.
        advance: called with a number of slices that are done.
        times: an empty list for each runner, to be filled as it goes, so that an interrupt leaves what there is.

    Returns:
        For each runner the seconds of each round.
    """
    times = [[] for _ in runners] if times is None else times
    for number in range(rounds):
        for place in range(len(runners)):
            turn = (number + place) % len(runners)
            times[turn].append(runners[turn].step(runners[turn].burst))
            advance(1)
    return times


def count_again(runner: Runner, made: Sequence[int]) -> list[int]:
    """The reset rows in each of the stretches of steps that a runner, closed by now, has made since its reset."""
    if runner.contender.same_step:
        return [0] * len(made)
    resets, pending = [], 0
    with ExitStack() as stack:
        with holding_interrupts():
            again = stack.enter_context(
                running(runner.contender, runner.source, runner.n, runner.actions, runner.setting, seed=runner.seed)
            )
        for k in made:
            count, pending = again.count_resets(k, pending)
            resets.append(count)
    return resets


def _results(
    n: int,
    contenders: Sequence[Contender],
    absent: Mapping[str, str],
    runners: Sequence[Runner],
    samples: Sequence[Sequence[float]],
) -> list[Result]:
    """Each contender's best setting, with its ratio."""
    best: dict[str, tuple[Mapping[str, Any], Sequence[float]]] = {}
    for runner, sps in zip(runners, samples, strict=True):
        name = runner.contender.name
        if name not in best or np.median(sps) > np.median(best[name][1]):
            best[name] = (runner.setting, sps)
    reference = best.get(REFERENCE)
    results = []
    for contender in contenders:
        if contender.name not in best:
            results.append(Result(n, contender, absent[contender.name]))
            continue
        setting, sps = best[contender.name]
        ratio = None
        if reference is not None:
            ratio = Spread.of([ours / theirs for ours, theirs in zip(reference[1], sps, strict=True)])
        results.append(Result(n, contender, None, setting, Spread.of(sps), ratio))
    return results


def machine_facts() -> dict[str, Any]:
    """What a figure depends on beside fastvec: the processor, how busy it is, and the versions of what is measured."""
    packages = ["numpy", "gymnasium", *(c.package for c in CONTENDERS.values() if c.package is not None)]
    return {
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "fastvec": fastvec.__version__,
        **{package: _version(package) for package in dict.fromkeys(packages)},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return platform.processor() or platform.machine()
