"""What is tried: numbers of lanes, backends and workers, and which of them there is no time for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import fastvec
from fastvec.backends.choosing import StepCost, with_workers
from fastvec.contenders import CONTENDERS, Contender, FastvecContender, Source, is_native
from fastvec.figures import in_time

BACKENDS = ("native", "serial", "process")
# Others that --compare adds, where they are installed.
RIVALS = ("sync", "async", "numpy", "dummy", "subproc", "envpool")
# More lanes than this are tried by default of native ids alone, and of ordinary envs that wait.
MOST_NATIVE, MOST_ORDINARY, MOST_BESIDE_NATIVE = 1024, 32, 8
QUICK_NATIVE, QUICK_ORDINARY = (1, 4, 16, 64, 256, 1024), (1, 2, 4, 8, 16)
# What a batch step costs beside its lanes, in seconds, what waking workers does, and starting one; for the plan alone.
AROUND, ROUND_TRIP, START_WORKER = 1e-4, 5e-5, 0.04
# How often a configuration is made: for its start, its speed, and its split.
MADE = 3


@dataclass(frozen=True)
class Configuration:
    """One way of stepping lanes.

    Attributes:
        backend: ``"native"``, ``"serial"``, ``"process"``, or the name of a rival.
        n: number of lanes.
        workers: number of worker processes, of EnvPool threads; 0 where the calling process steps.
    """

    backend: str
    n: int
    workers: int = 0

    @property
    def title(self) -> str:
        """Backend and workers for a table."""
        if self.backend in CONTENDERS:
            title = CONTENDERS[self.backend].title
            counts = self.backend == "envpool" and self.workers > 0
            return f"{title} ({self.workers} thread{'s' * (self.workers > 1)})" if counts else title
        return f"{self.backend} ({self.workers} worker{'s' * (self.workers > 1)})" if self.workers else self.backend

    @property
    def short_title(self) -> str:
        """The title where there is little room."""
        return (
            self.title.replace(" workers", "w").replace(" worker", "w").replace(" threads", "t").replace(" thread", "t")
        )

    def __str__(self) -> str:
        return f"{self.title}, n = {self.n}"


class BackendContender(FastvecContender):
    """A backend of fastvec's."""

    def __init__(self, configuration: Configuration) -> None:
        self.title = configuration.title
        self._options: dict[str, Any] = {"backend": configuration.backend}
        if configuration.workers:
            self._options["num_workers"] = configuration.workers

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return fastvec.make(source, n, **self._options)

    def abandon(self, env: Any) -> None:
        env.close(**({"terminate": True} if self._options["backend"] == "process" else {}))


@dataclass(frozen=True)
class Participant:
    """A configuration, who steps it, and keywords of its ``make``."""

    configuration: Configuration
    contender: Contender
    setting: dict[str, Any] = field(default_factory=dict)

    @property
    def in_one_piece(self) -> bool:
        """Whether no ordinary envs are in it, whose time could be told apart."""
        return self.configuration.backend in ("native", "numpy", "envpool")


@dataclass(frozen=True)
class LeftOut:
    """A configuration that is not measured, and why."""

    configuration: Configuration
    reason: str


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to ``most``."""
    return tuple(2**power for power in range(most.bit_length()) if 2**power <= most)


def default_counts(source: Source, quick: bool) -> tuple[int, ...]:
    """The numbers of lanes that are tried if nobody says which."""
    if is_native(source):
        return QUICK_NATIVE if quick else powers_of_two(MOST_NATIVE)
    return QUICK_ORDINARY if quick else powers_of_two(MOST_ORDINARY)


def checked_backends(source: Source, backends: Sequence[str] | None) -> tuple[str, ...]:
    """The backends that are tried: those that were asked for, else all that the source has.

    Raises:
        ValueError: for one that there is not, or not for this source.
    """
    if backends is None:
        return BACKENDS if is_native(source) else BACKENDS[1:]
    for backend in backends:
        if backend not in BACKENDS:
            raise ValueError(f"backends has {backend!r}: expected some of {', '.join(BACKENDS)}")
        if backend == "native" and not is_native(source):
            raise ValueError(
                "backends has 'native', which needs an id that has a kernel (`fastvec envs` lists them): "
                "expected serial, process or both"
            )
    return tuple(dict.fromkeys(backends))


def configurations_of(
    source: Source,
    counts: Sequence[int] | None,
    backends: Sequence[str] | None,
    workers: Sequence[int] | None,
    cost: StepCost,
    cores: int,
    quick: bool,
) -> list[Configuration]:
    """All ways that are worth a try.

    Args:
        source: what lanes are made of.
        counts: numbers of lanes; None for powers of two.
        backends: None for all that the source has.
        workers: numbers of workers; None for as many as cores, and one a lane for envs that wait.
        cost: that of a step of one ordinary env.
        cores: that this process may use.
        quick: whether a few are enough.
    """
    found = []
    chosen = checked_backends(source, backends)
    waits = cost.cpu < cost.wall / 2
    for n in counts or default_counts(source, quick):
        for backend in chosen:
            beside_native = backends is None and "native" in chosen and backend != "native"
            if beside_native and n > MOST_BESIDE_NATIVE and not (counts and len(counts) == 1):
                continue
            if backend != "process":
                found.append(Configuration(backend, n))
                continue
            if n == 1 and backends is None:  # one lane has nothing to run beside
                continue
            numbers = workers or ((cores, n) if waits else (cores,))
            found += [Configuration(backend, n, count) for count in sorted({min(n, count) for count in numbers})]
    return found


def rivals_of(source: Source, counts: Sequence[int], quick: bool) -> tuple[list[Participant], list[LeftOut]]:
    """What is installed of others, and what is not; quickly only at the largest n that all of them run at."""
    few = [n for n in counts if n <= 8]
    counts = [max(few)] if quick and few else counts
    found, left_out = [], []
    for n in counts:
        for name in RIVALS:
            contender = CONTENDERS[name]
            reason = contender.absence(source, n)
            if reason is not None:
                left_out.append(LeftOut(Configuration(name, n), reason))
                continue
            for setting in contender.settings(n)[-1:] if quick else contender.settings(n):
                processes = n if contender.process_per_env else setting.get("num_threads", 0)
                found.append(Participant(Configuration(name, n, processes), contender, setting))
    return found, left_out


def expected_step(configuration: Configuration, cost: StepCost, cores: int) -> float:
    """About how many seconds a batch step takes."""
    if configuration.backend in ("native", "numpy", "envpool"):
        return AROUND
    if not configuration.workers:
        return AROUND + configuration.n * cost.wall
    return AROUND + with_workers(cost, configuration.n, cores, configuration.workers, ROUND_TRIP)


def expected_start(configuration: Configuration, make_seconds: float, cores: int) -> float:
    """About how many seconds it takes until lanes can be stepped."""
    if configuration.backend in ("native", "numpy", "envpool"):
        return make_seconds
    beside = min(configuration.workers, cores) or 1
    return configuration.n * make_seconds / beside + START_WORKER * configuration.workers


def within_budget(
    participants: Sequence[Participant],
    cost: StepCost,
    make_seconds: float,
    cores: int,
    rounds: int,
    budget: float,
    longest: float,
    fewest_steps: int = 1,
) -> tuple[list[Participant], list[LeftOut], float]:
    """Leaves out what takes longest until the rest fits.

    Args:
        participants: all that there are; the first stays.
        cost: of a step of one ordinary env.
        make_seconds: that making one takes.
        cores: that this process may use.
        rounds: slices of each.
        budget: seconds for all.
        longest: seconds that a slice has at most, unless its steps take longer.
        fewest_steps: of a slice.

    Returns:
        (who stays, who does not, seconds of a slice).
    """
    slices = 2 * (rounds + 2)  # speed and split, with the warm-up
    starts = {one.configuration: MADE * expected_start(one.configuration, make_seconds, cores) for one in participants}
    steps = {one.configuration: expected_step(one.configuration, cost, cores) for one in participants}
    staying, left_out = list(participants), list[LeftOut]()
    while True:
        started = sum(starts[one.configuration] for one in staying)
        seconds = max(0.004, min(longest, (budget - started) / (slices * len(staying))))
        takes = {one.configuration: slices * max(seconds, fewest_steps * steps[one.configuration]) for one in staying}
        if len(staying) == 1 or started + sum(takes.values()) <= 1.3 * budget:
            return staying, left_out, seconds
        worst = max(staying[1:], key=lambda one: takes[one.configuration] + starts[one.configuration])
        staying.remove(worst)
        step, start = steps[worst.configuration], starts[worst.configuration] / MADE
        left_out.append(
            LeftOut(worst.configuration, f"too long: a start of about {in_time(start)}, steps of {in_time(step)}")
        )
