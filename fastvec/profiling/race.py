"""The measurement itself: each configuration's start, then all of them in turns, and estimates of what they did.

What is found is put where it outlives an interrupt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fastvec import measure
from fastvec.measure import Racer, holding_interrupts, running_as, sample_actions
from fastvec.profiling.configurations import BackendContender, Configuration, LeftOut, Participant
from fastvec.profiling.diversity import Diversity
from fastvec.profiling.planning import Plan, Request
from fastvec.profiling.policy import Inference
from fastvec.profiling.runners import SpeedRunner, SplitRunner, split_over
from fastvec.profiling.split import TimedSource
from fastvec.profiling.startup import Start, start_of
from fastvec.profiling.statistics import Estimate, estimate, paired_ratio, total
from fastvec.profiling.training import Training

Racers: TypeAlias = list[tuple[Participant, SpeedRunner, SplitRunner]]


@dataclass(frozen=True)
class Measured:
    """What one configuration did.

    Attributes:
        configuration: which.
        sps: env-steps a second, the policy's inference included.
        split_us: microseconds of a batch step in each of ``split.PARTS``.
        cpu_percent: of all of its processes; None where it cannot be read.
        start: None if it could not be measured.
    """

    configuration: Configuration
    sps: Estimate
    split_us: dict[str, float]
    cpu_percent: float | None
    start: Start | None

    def to_json(self) -> dict[str, Any]:
        return {
            "backend": self.configuration.backend,
            "n": self.configuration.n,
            "workers": self.configuration.workers,
            "sps": self.sps.to_json(),
            "split_us": dict(self.split_us),
            "cpu_percent": self.cpu_percent,
            "peak_rss_bytes": None if self.start is None else self.start.peak_rss_bytes,
            "startup_s": None if self.start is None else self.start.seconds,
        }


@dataclass(frozen=True)
class InferenceCost:
    """Microseconds of one inference for n lanes, and as gain what it saves over n for one, n t(1) / t(n)."""

    n: int
    us: Estimate
    gain: Estimate

    def to_json(self) -> dict[str, Any]:
        return {"n": self.n, "us": self.us.to_json(), "gain": self.gain.to_json()}


@dataclass
class Findings:
    """What was measured so far."""

    rounds: int = 0
    are_totals: bool = False  # whether rates are those of all rounds together, rather than medians
    starts: dict[Configuration, Start] = field(default_factory=dict)
    measured: list[Measured] = field(default_factory=list)
    inference: list[InferenceCost] = field(default_factory=list)
    diversity: Diversity | None = None
    training: list[Training] = field(default_factory=list)
    failed: list[LeftOut] = field(default_factory=list)


def measure_starts(plan: Plan, found: Findings) -> None:
    """Start-up time and memory of each configuration, one after the other, before anything else is in memory."""
    for participant in plan.participants:
        plan.describe(f"start of {participant.configuration}")
        try:
            found.starts[participant.configuration] = start_of(participant, plan.request.source, plan.request.seed)
        except (RuntimeError, TypeError) as error:
            found.failed.append(LeftOut(participant.configuration, f"start and memory are not known: {error}"))
        plan.advance(1)


def race(plan: Plan, found: Findings) -> None:
    """Lets all take turns; on Ctrl-C it keeps the rounds that are whole, and raises it again when envs are closed."""
    request, act = plan.request, plan.policy.act
    racers: Racers = []
    inferences: list[Inference] = []
    times: list[list[float]] = []
    prepared_slices: list[int] = []
    interrupt: KeyboardInterrupt | None = None
    try:
        with ExitStack() as stack:
            plan.describe("making the envs")
            for participant in plan.participants:
                pair = _entered(stack, participant, request, act, found)
                if pair is not None:
                    racers.append((participant, *pair))
            if act is not None:
                ns = sorted({1, *plan.counts})
                inferences = [Inference(act, plan.observation_space, n, request.seed) for n in ns]
            takers: list[Any] = [
                *(speed for _, speed, _ in racers),
                *(split for _, _, split in racers),
                *inferences,
            ]
            for taker in takers:
                if isinstance(taker, Inference):
                    taker.prepare(plan.slice_seconds / 4)
                else:
                    taker.prepare(plan.slice_seconds, plan.fewest_steps)
                plan.advance(1)
            _fit(takers, request.rounds, plan.ends - time.monotonic(), plan.fewest_steps)
            prepared_slices = [speed.slices for _, speed, _ in racers]
            times = [[] for _ in takers]
            plan.describe(f"{len(racers)} configurations in {request.rounds} rounds")
            turns: list[Racer] = takers
            measure.interleave(turns, request.rounds, plan.advance, times)
    except KeyboardInterrupt as error:
        interrupt = error
    found.rounds = min((len(one) for one in times), default=0)
    if found.rounds:
        for (_, speed, _), slices in zip(racers, prepared_slices, strict=True):
            speed.forget_slices_after(found.rounds, slices)
        found.are_totals = plan.resets_are_dear
        _settle(racers, inferences, times, found, request.seed)
    if interrupt is not None:
        raise interrupt


def _fit(takers: Sequence[Any], rounds: int, seconds: float, fewest_steps: int) -> None:
    """Cuts slices so that all rounds take about so many seconds at most, of so many steps each at least."""
    needed = rounds * sum(taker.slice_takes for taker in takers)
    if needed > seconds:
        for taker in takers:
            fewest = 1 if isinstance(taker, Inference) else fewest_steps
            taker.burst = max(fewest, int(taker.burst * max(seconds, 0.0) / needed))


def _entered(
    stack: ExitStack, participant: Participant, request: Request, act: Any, found: Findings
) -> tuple[SpeedRunner, SplitRunner] | None:
    """The two runners of a configuration; None, and a note of it, for a rival that fails."""
    one, contender = participant.configuration, participant.contender
    actions = sample_actions(request.source, one.n, request.seed)
    timed = request.source if participant.in_one_piece else TimedSource(request.source)
    common = (one.n, actions, participant.setting)
    options = {"seed": request.seed, "act": act}
    whole = participant.in_one_piece
    try:
        with ExitStack() as own:
            with holding_interrupts():
                speed = own.enter_context(running_as(SpeedRunner, contender, request.source, *common, **options))
                split = own.enter_context(
                    running_as(SplitRunner, contender, timed, *common, **options, in_one_piece=whole)
                )
            for runner in (speed, split):
                runner.step(1)  # some cannot be given the actions of every space
            stack.enter_context(own.pop_all())
    except Exception as error:
        if isinstance(contender, BackendContender):
            raise
        found.failed = [other for other in found.failed if other.configuration != one]  # its start failed too
        found.failed.append(LeftOut(one, f"failed: {type(error).__name__}: {error}"))
        return None
    return speed, split


def _settle(
    racers: Racers, inferences: Sequence[Inference], times: Sequence[Sequence[float]], found: Findings, seed: int
) -> None:
    """From slices to estimates, of the rounds that are whole."""
    rounds = found.rounds
    taken = [took[:rounds] for took in times[: len(racers)]]
    sampled = [
        [rows / seconds for rows, seconds in zip(speed.rows(rounds), took, strict=True)]
        for (_, speed, _), took in zip(racers, taken, strict=True)
    ]
    for (participant, speed, split), samples, took in zip(racers, sampled, taken, strict=True):
        spent = None if len(speed.cpu) < rounds else 100 * float(np.median(speed.cpu[:rounds]))
        found.measured.append(
            Measured(
                participant.configuration,
                total(samples, took, seed) if found.are_totals else estimate(samples, seed),
                split_over(split.splits[:rounds], found.are_totals),
                spent,
                found.starts.get(participant.configuration),
            )
        )
    of_inferences = times[2 * len(racers) :]
    costs = {
        one.n: estimate([seconds / one.burst * 1e6 for seconds in took[:rounds]], seed)
        for one, took in zip(inferences, of_inferences, strict=True)
    }
    for n, us in costs.items():
        of_one = estimate([n * sample for sample in costs[1].samples], seed)
        found.inference.append(InferenceCost(n, us, paired_ratio(of_one, us, seed)))
