"""profile: measures all configurations in turns, and puts together what is found.

What one part measures is in a module for each; here is in which order, and what an interrupt leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from fastvec import measure
from fastvec.backends import choosing
from fastvec.contenders import SEED, Source, name_of, ordinary_env
from fastvec.factory import checked_count
from fastvec.machine import usable_cores
from fastvec.measure import Racer, holding_interrupts, running_as, sample_actions
from fastvec.profiling import training as train_module
from fastvec.profiling.configurations import (
    BACKENDS,
    BackendContender,
    Configuration,
    LeftOut,
    Participant,
    checked_backends,
    configurations_of,
    default_counts,
    rivals_of,
    within_budget,
)
from fastvec.profiling.diversity import Diversity, diversity_of
from fastvec.profiling.policy import Inference, Policy, make_policy, one_torch_thread
from fastvec.profiling.recommendation import Recommendation, recommend
from fastvec.profiling.report import diversity_sentence
from fastvec.profiling.runners import SpeedRunner, SplitRunner, median_split
from fastvec.profiling.split import TimedSource
from fastvec.profiling.startup import Start, start_of
from fastvec.profiling.statistics import FEWEST_SAMPLES, Estimate, estimate, paired_ratio, require_scipy
from fastvec.profiling.training import Training
from fastvec.terminal import Progress

ROUNDS, QUICK_ROUNDS = 15, 7
# Seconds for all slices, and of one slice at most.
BUDGET, QUICK_BUDGET = 60.0, 6.0
LONGEST_SLICE, QUICK_LONGEST_SLICE = 0.15, 0.05
# Seconds after which the rounds should be over, starts included: slices are cut where a machine is slower than planned.
END, QUICK_END = 150.0, 14.0
# Seconds for the look at how different lanes are.
LOOKS, QUICK_LOOKS = 2.0, 0.4
# Above this relative half width of an interval the machine is called noisy.
NOISY = 0.1

MEANING = {
    "sps": "env-steps per second of inference and stepping, without NEXT_STEP reset rows: median over rounds, "
    "bootstrap 95 % interval (low, high), one sample a round",
    "workers": "worker processes, or threads of EnvPool; 0 where the calling process steps",
    "split_us": "microseconds of a batch step, medians over rounds: env (in the envs, mean over workers), ipc (round "
    "trip less the span of the slowest worker's envs), wait (for the slowest worker), policy, python (the rest)",
    "cpu_percent": "CPU time of all processes as a share of wall-clock; 100 is one core; null where it cannot be read",
    "peak_rss_bytes": "peak memory of a process that makes and steps this configuration, and of its workers, added up",
    "startup_s": "seconds from the call of make to the return of the first reset, in a process of its own",
    "gain": "n t(1) / t(n): what inference for n lanes at once saves over n inferences",
}


@dataclass(frozen=True)
class Request:
    """What was asked for: the arguments of :func:`profile`, checked."""

    source: Source
    n: tuple[int, ...] | None = None
    backends: tuple[str, ...] | None = None
    workers: tuple[int, ...] | None = None
    policy: str | Callable[[Any], Any] = "mlp:64,64"
    train: bool = False
    rounds: int = ROUNDS
    seed: int = SEED
    compare: bool = False
    quick: bool = False


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
    """Microseconds of one inference for n lanes, and what it saves over n for one; the gain is None without n = 1."""

    n: int
    us: Estimate
    gain: Estimate | None

    def to_json(self) -> dict[str, Any]:
        return {"n": self.n, "us": self.us.to_json(), "gain": None if self.gain is None else self.gain.to_json()}


@dataclass(frozen=True)
class Profile:
    """What :func:`profile` found.

    Attributes:
        source: the name of what lanes were made of.
        machine: what the figures depend on beside fastvec.
        request: what was asked for.
        rounds: that were measured.
        configurations: by number of lanes.
        policy: the name of the policy, with what it computes.
        inference: its cost at each n.
        diversity: how different lanes are; None if interrupted before.
        training: at each n; empty unless asked for.
        recommendation: None if nothing was measured.
        left_out: what was not measured, and why.
        notes: sentences that a reader should know.
        interrupted: whether Ctrl-C ended it early.
    """

    source: str
    machine: dict[str, Any]
    request: Request
    rounds: int
    configurations: tuple[Measured, ...]
    policy: str
    inference: tuple[InferenceCost, ...]
    diversity: Diversity | None
    training: tuple[Training, ...]
    recommendation: Recommendation | None
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """All of it, as ``--json`` writes it and the page shows it."""
        return {
            "source": self.source,
            "machine": self.machine,
            "settings": {
                "rounds": self.rounds,
                "seed": self.request.seed,
                "quick": self.request.quick,
                "compare": self.request.compare,
            },
            "meaning": MEANING,
            "configurations": [one.to_json() for one in self.configurations],
            "policy": {"name": self.policy, "inference": [one.to_json() for one in self.inference]},
            "diversity": None if self.diversity is None else self.diversity.to_json(),
            "training": [one.to_json() for one in self.training],
            "recommendation": None if self.recommendation is None else self.recommendation.to_json(),
            "left_out": [
                {
                    "backend": one.configuration.backend,
                    "n": one.configuration.n,
                    "workers": one.configuration.workers,
                    "reason": one.reason,
                }
                for one in self.left_out
            ],
            "notes": list(self.notes),
            "interrupted": self.interrupted,
        }

    def to_html(self) -> str:
        """A page of it, in one file that needs no network."""
        from fastvec.profiling.page import profile_page

        return profile_page(self.to_json())

    def print(self) -> None:
        """Prints it as tables and sentences."""
        from fastvec.profiling.report import print_profile

        print_profile(self.to_json())


def profile(
    source: Source,
    *,
    n: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    workers: Sequence[int] | None = None,
    policy: str | Callable[[Any], Any] = "mlp:64,64",
    train: bool = False,
    rounds: int | None = None,
    seed: int = SEED,
    compare: bool = False,
    quick: bool = False,
) -> Profile:
    """Measures how fast lanes of an env are stepped at several n, on which backend, and recommends some.

    Call it from a script below ``if __name__ == "__main__":``, as it starts processes. It needs SciPy
    (``pip install "fastvec[profile]"``).

    Args:
        source: what :func:`fastvec.make` takes, lists aside: an id, an ``EnvSpec``, a class or a function.
        n: numbers of lanes; None for powers of two.
        backends: some of ``"native"``, ``"serial"`` and ``"process"``; None for all that the source has.
        workers: numbers of worker processes; None for as many as cores, and for envs that wait one a lane as well.
        policy: whose inference is measured before every step: ``"mlp:64,64"``, a network with such hidden layers,
            ``"none"``, or a function of the observations of all lanes. Its actions are not used; lanes have random
            ones.
        train: whether to train with PPO at each n; native ids alone, and PyTorch is needed.
        rounds: in each of which every configuration has its turn, at least 6; None for 15, quick 7.
        seed: of lanes, actions, weights and the bootstrap.
        compare: whether to measure what is installed of Gymnasium's, Stable-Baselines3's and EnvPool's vector envs too.
        quick: whether to answer in less than 20 seconds, from fewer configurations.

    Returns:
        The profile, which :meth:`Profile.print`, :meth:`Profile.to_json` and :meth:`Profile.to_html` show.

    Raises:
        ValueError, TypeError: for arguments that cannot be. Nothing was measured.
        gymnasium.error.Error: for an unknown id.
        ImportError: without SciPy, and without PyTorch for ``train``.
        RuntimeError: for an env that cannot be made or stepped, before anything is measured.
        KeyboardInterrupt: on Ctrl-C; all envs are closed by then.
    """
    request = checked_request(
        source,
        n=n,
        backends=backends,
        workers=workers,
        policy=policy,
        train=train,
        rounds=rounds,
        seed=seed,
        compare=compare,
        quick=quick,
    )
    found = measured(prepared(request))
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def checked_request(source: Source, *, rounds: int | None = None, **asked: Any) -> Request:
    """The arguments of :func:`profile`, or the error that it raises for them."""
    require_scipy()
    if not isinstance(source, (str, gymnasium.envs.registration.EnvSpec)) and not callable(source):
        raise TypeError(f"source is {source!r}: expected an id, an EnvSpec, a class or a function that makes an env")
    name_of(source)
    for name in ("n", "workers"):
        if asked.get(name) is not None:
            asked[name] = tuple(dict.fromkeys(checked_count(name, one) for one in asked[name]))
            if not asked[name]:
                raise ValueError(f"{name} is empty: expected at least one number, or None")
    if asked.get("backends") is not None:
        asked["backends"] = checked_backends(source, asked["backends"])
        if not asked["backends"]:
            raise ValueError("backends is empty: expected some of native, serial, process, or None")
    if rounds is None:
        rounds = QUICK_ROUNDS if asked.get("quick") else ROUNDS
    rounds = checked_count("rounds", rounds)
    if rounds < FEWEST_SAMPLES:
        raise ValueError(f"rounds is {rounds}: a 95 % interval of a median needs at least {FEWEST_SAMPLES}")
    if asked.get("train"):
        train_module.require_training(source)
    return Request(source, rounds=rounds, **asked)


@dataclass
class Prepared:
    """A request, and what is known before anything is measured: who takes part, and for how long."""

    request: Request
    machine: dict[str, Any]
    label: str
    observation_space: gymnasium.Space[Any]
    policy: Policy
    participants: list[Participant]
    left_out: list[LeftOut]
    slice_seconds: float
    ends: float  # when, by time.monotonic, the rounds should be over
    progress: Progress | None = None

    @property
    def counts(self) -> list[int]:
        """The numbers of lanes that are measured."""
        return sorted({one.configuration.n for one in self.participants})

    @property
    def training_counts(self) -> tuple[int, ...]:
        """Those that are trained with."""
        return train_module.trainable_counts(self.counts) if self.request.train else ()

    @property
    def seeds(self) -> list[int]:
        """Those of training."""
        count = train_module.QUICK_SEEDS if self.request.quick else train_module.SEEDS
        return [self.request.seed + one for one in range(count)]

    @property
    def planned(self) -> int:
        """How many steps the progress has: starts, slices with their warm-up, and runs of training."""
        inferences = 0 if self.policy.act is None else len({1, *self.counts})
        racers = 2 * len(self.participants) + inferences
        return len(self.participants) + racers * (1 + self.request.rounds) + len(self.training_counts) * len(self.seeds)


def prepared(request: Request) -> Prepared:
    """Tries one env, and decides what is measured.

    Raises:
        ValueError: for a policy that does not fit, and if there is nothing to measure.
        RuntimeError: for an env that cannot be made or stepped.
    """
    machine = measure.machine_facts()  # before any load of ours
    observation_space, action_space, cost = _tried(request.source)
    policy = make_policy(request.policy, observation_space, action_space, request.seed)
    cores = usable_cores()
    counts = request.n or default_counts(request.source, request.quick)
    participants = [
        Participant(one, BackendContender(one))
        for one in configurations_of(
            request.source, request.n, request.backends, request.workers, cost, cores, request.quick
        )
    ]
    absent: list[LeftOut] = []
    if request.compare:
        rivals, absent = rivals_of(request.source, counts, request.quick)
        participants += rivals
    if not participants:
        raise ValueError("nothing to measure: one lane alone has no workers; expected larger n, or backends='process'")
    budget, longest = (QUICK_BUDGET, QUICK_LONGEST_SLICE) if request.quick else (BUDGET, LONGEST_SLICE)
    staying, too_long, seconds = within_budget(participants, cost, cores, request.rounds, budget, longest)
    return Prepared(
        request,
        machine,
        name_of(request.source),
        observation_space,
        policy,
        staying,
        absent + too_long,
        seconds,
        time.monotonic() + (QUICK_END if request.quick else END),
    )


def _tried(source: Source) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any], choosing.StepCost]:
    """The spaces of an env, and what a step of it takes.

    Raises:
        RuntimeError: for an env that cannot be made or stepped, with what it raised.
    """
    try:
        env = ordinary_env(source)
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"it makes a {type(env).__name__}: expected a gymnasium.Env")
        observation_space, action_space = env.observation_space, env.action_space
        env.close()
        return observation_space, action_space, choosing.measure(lambda: ordinary_env(source))
    except Exception as error:
        said = str(error).strip().rstrip(".")
        raise RuntimeError(f"{name_of(source)} failed when it was tried: {type(error).__name__}: {said}") from error


def measured(plan: Prepared) -> Profile:
    """Measures what was planned. After Ctrl-C it returns what there is by then."""
    found = _Findings()
    interrupted = False
    try:
        with one_torch_thread(plan.policy):
            _measure_starts(plan, found)
            _race(plan, found)
        _describe(plan, "how different lanes are")
        found.diversity = _diversity(plan, found)
        for n in plan.training_counts:
            _describe(plan, f"training, n = {n}")
            steps = train_module.QUICK_STEPS if plan.request.quick else train_module.STEPS
            found.training.append(
                train_module.train(str(plan.request.source), n, steps, plan.seeds, lambda done: _advance(plan, done))
            )
    except KeyboardInterrupt:
        interrupted = True
    return _put_together(plan, found, interrupted)


Racers: TypeAlias = list[tuple[Participant, SpeedRunner, SplitRunner]]


@dataclass
class _Findings:
    """What was measured so far."""

    rounds: int = 0
    starts: dict[Configuration, Start] = field(default_factory=dict)
    measured: list[Measured] = field(default_factory=list)
    inference: list[InferenceCost] = field(default_factory=list)
    diversity: Diversity | None = None
    training: list[Training] = field(default_factory=list)
    failed: list[LeftOut] = field(default_factory=list)


def _advance(plan: Prepared, steps: int) -> None:
    if plan.progress is not None:
        plan.progress.advance(steps)


def _describe(plan: Prepared, text: str) -> None:
    if plan.progress is not None:
        plan.progress.describe(f"{plan.label}: {text}")


def _measure_starts(plan: Prepared, found: _Findings) -> None:
    for participant in plan.participants:
        _describe(plan, f"start of {participant.configuration}")
        try:
            found.starts[participant.configuration] = start_of(participant, plan.request.source, plan.request.seed)
        except (RuntimeError, TypeError) as error:
            found.failed.append(LeftOut(participant.configuration, f"start and memory are not known: {error}"))
        _advance(plan, 1)


def _race(plan: Prepared, found: _Findings) -> None:
    """Lets all take turns; on Ctrl-C it keeps the rounds that are whole, and raises it again when envs are closed."""
    request, act = plan.request, plan.policy.act
    racers: Racers = []
    inferences: list[Inference] = []
    times: list[list[float]] = []
    prepared_slices: list[int] = []
    try:
        with ExitStack() as stack:
            _describe(plan, "making the envs")
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
                taker.prepare(plan.slice_seconds / (4 if isinstance(taker, Inference) else 1))
                _advance(plan, 1)
            _fit(takers, request.rounds, plan.ends - time.monotonic())
            prepared_slices = [speed.slices for _, speed, _ in racers]
            times = [[] for _ in takers]
            _describe(plan, f"{len(racers)} configurations in {request.rounds} rounds")
            turns: list[Racer] = takers
            measure.interleave(turns, request.rounds, lambda done: _advance(plan, done), times)
    finally:
        found.rounds = min((len(one) for one in times), default=0)
        if found.rounds:
            for (_, speed, _), slices in zip(racers, prepared_slices, strict=True):
                speed.forget_slices_after(found.rounds, slices)
            _settle(racers, inferences, times, found, request.seed)


def _fit(takers: Sequence[Any], rounds: int, seconds: float) -> None:
    """Cuts slices so that all rounds take about so many seconds at most, of one step each at least."""
    needed = rounds * sum(taker.slice_takes for taker in takers)
    if needed > seconds:
        for taker in takers:
            taker.burst = max(1, int(taker.burst * max(seconds, 0.0) / needed))


def _diversity(plan: Prepared, found: _Findings) -> Diversity:
    """Looks at as many lanes as were measured at most, on the backend that makes the most steps of them."""
    ours = [one for one in found.measured if one.configuration.backend in BACKENDS]
    fastest = max(ours, key=lambda one: one.sps.median).configuration if ours else Configuration("serial", 1)
    return diversity_of(
        plan.request.source,
        max(plan.counts),
        plan.request.seed,
        QUICK_LOOKS if plan.request.quick else LOOKS,
        fastest.backend,
        fastest.workers,
    )


def _entered(
    stack: ExitStack, participant: Participant, request: Request, act: Any, found: _Findings
) -> tuple[SpeedRunner, SplitRunner] | None:
    """The two runners of a configuration; None, and a note of it, for a rival that fails."""
    one, contender = participant.configuration, participant.contender
    actions = sample_actions(request.source, one.n, request.seed)
    timed = request.source if participant.in_one_piece else TimedSource(request.source)
    common = (one.n, actions, participant.setting)
    try:
        with holding_interrupts():
            speed = stack.enter_context(
                running_as(SpeedRunner, contender, request.source, *common, seed=request.seed, act=act)
            )
            split = stack.enter_context(
                running_as(
                    SplitRunner,
                    contender,
                    timed,
                    *common,
                    seed=request.seed,
                    act=act,
                    in_one_piece=participant.in_one_piece,
                )
            )
    except Exception as error:
        if isinstance(contender, BackendContender):
            raise
        found.failed.append(LeftOut(one, f"failed: {type(error).__name__}: {error}"))
        return None
    return speed, split


def _settle(
    racers: Racers, inferences: Sequence[Inference], times: Sequence[Sequence[float]], found: _Findings, seed: int
) -> None:
    """From slices to estimates, of the rounds that are whole."""
    rounds = found.rounds
    for (participant, speed, split), took in zip(racers, times[: len(racers)], strict=True):
        samples = [rows / seconds for rows, seconds in zip(speed.rows(rounds), took[:rounds], strict=True)]
        spent = None if len(speed.cpu) < rounds else 100 * float(np.median(speed.cpu[:rounds]))
        found.measured.append(
            Measured(
                participant.configuration,
                estimate(samples, seed),
                median_split(split.splits[:rounds]),
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


def _put_together(plan: Prepared, found: _Findings, interrupted: bool) -> Profile:
    order = sorted(found.measured, key=lambda one: one.configuration.n)
    speeds = [(one.configuration, one.sps) for one in order]
    chosen = recommend(speeds, plan.machine["cores"], plan.request.seed)
    left_out = [*plan.left_out, *found.failed]
    return Profile(
        plan.label,
        plan.machine,
        plan.request,
        found.rounds,
        tuple(order),
        plan.policy.name,
        tuple(found.inference),
        found.diversity,
        tuple(found.training),
        chosen,
        tuple(left_out),
        tuple(notes_of(order, found, plan, left_out, interrupted)),
        interrupted,
    )


def notes_of(
    measured: Sequence[Measured], found: _Findings, plan: Prepared, left_out: Sequence[LeftOut], interrupted: bool
) -> list[str]:
    """What a reader should know before believing the figures."""
    notes = []
    if found.diversity is not None:
        notes.append(diversity_sentence(found.diversity.to_json()))
        if found.diversity.warning is not None:
            notes.append(f"Warning: {found.diversity.warning}.")
    if found.training:
        notes.append(train_module.compared(found.training))
    if measured:
        notes.append(noise_sentence(measured, plan.machine))
    if 0 < found.rounds < FEWEST_SAMPLES:
        notes.append(
            f"Only {found.rounds} rounds were measured: the intervals are their range, and not 95 % intervals."
        )
    if interrupted:
        notes.append("It was interrupted: what was not finished is not shown.")
    for reason in dict.fromkeys(one.reason for one in left_out):
        which = ", ".join(str(one.configuration) for one in left_out if one.reason == reason)
        notes.append(f"Left out: {which} ({reason}).")
    return notes


def noise_sentence(measured: Sequence[Measured], machine: dict[str, Any]) -> str:
    """How wide the intervals are, and how busy the machine was."""
    widest = max(measured, key=lambda one: one.sps.relative_width)
    width = widest.sps.relative_width
    typical = float(np.median([one.sps.relative_width for one in measured]))
    load = f"load average {machine['load_average']:.1f} on {machine['cores']} cores before it"
    figures = f"intervals are +- {typical:.1%} in the median, +- {width:.1%} at most ({widest.configuration}); {load}"
    if width > NOISY or machine["load_average"] > machine["cores"] / 2:
        return f"The machine was noisy: {figures}. Smaller differences than that are not to be trusted; measure again."
    return f"The machine was calm: {figures}."
