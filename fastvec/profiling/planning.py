"""What is asked for, checked, and what is planned for it: all that is settled before anything is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium

from fastvec import measure, registry
from fastvec.backends import choosing
from fastvec.backends.sources import registered_spec
from fastvec.contenders import SEED, Source, is_native, name_of, ordinary_env
from fastvec.factory import checked_count
from fastvec.machine import usable_cores
from fastvec.profiling import training
from fastvec.profiling.configurations import (
    BackendContender,
    LeftOut,
    Participant,
    checked_backends,
    configurations_of,
    default_counts,
    rivals_of,
    within_budget,
)
from fastvec.profiling.policy import Policy, make_policy
from fastvec.profiling.statistics import FEWEST_SAMPLES, require_scipy
from fastvec.terminal import Progress

# Bootstrap intervals of 9 and of 16 samples have the true median in 95 to 97 of 100 cases; of 6 to 8 in 90 to 93.
ROUNDS, QUICK_ROUNDS = 16, 9
# Seconds for all slices, and of one slice at most.
BUDGET, QUICK_BUDGET = 60.0, 6.0
LONGEST_SLICE, QUICK_LONGEST_SLICE = 0.15, 0.05
# Seconds after which the rounds should be over, starts included: slices are cut where a machine is slower than planned.
END, QUICK_END = 150.0, 12.0
# Seconds from which on a reset is looked at, and how long one episode is stepped for that.
DEAR_RESET, LOOK_AT_EPISODE = 2e-3, 0.3
# The share of an episode's time from which on its reset must not be missed.
DEAR_SHARE = 0.05


@dataclass(frozen=True)
class Request:
    """What was asked for: the arguments of :func:`fastvec.profile`, checked."""

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


def checked_request(source: Source, *, rounds: int | None = None, **asked: Any) -> Request:
    """The arguments of :func:`fastvec.profile`, or the error that it raises for them."""
    require_scipy()
    if not isinstance(source, (str, gymnasium.envs.registration.EnvSpec)) and not callable(source):
        raise TypeError(f"source is {source!r}: expected an id, an EnvSpec, a class or a function that makes an env")
    if isinstance(source, str) and not is_native(source) and source not in gymnasium.registry:
        if ":" not in source:
            registry.find(source)  # which raises, and names the closest ids
        source = registered_spec(source)  # which other processes need not have registered
    seed = asked.get("seed", SEED)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed is {seed!r}: expected an int from 0")
    for name in ("n", "workers"):
        if asked.get(name) is not None:
            if not isinstance(asked[name], (list, tuple)):
                raise TypeError(f"{name} is {asked[name]!r}: expected a list of numbers, such as [1, 8], or None")
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
        training.require_training(source)
        if asked.get("n") is not None and not training.trainable_counts(asked["n"]):
            raise ValueError(
                f"train: of n = {', '.join(map(str, asked['n']))} none divides a batch of {training.BATCH} rows; "
                f"expected a power of two among them"
            )
    return Request(source, rounds=rounds, **asked)


@dataclass
class Plan:
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
    reset_seconds: float = 0.0  # that a reset of one env takes
    fewest_steps: int = 1  # of a slice
    progress: Progress | None = None

    @property
    def resets_are_dear(self) -> bool:
        """Whether so few steps have so much of the time that medians would hide it."""
        return self.fewest_steps > 1

    @property
    def counts(self) -> list[int]:
        """The numbers of lanes that are measured."""
        return sorted({one.configuration.n for one in self.participants})

    @property
    def training_counts(self) -> tuple[int, ...]:
        """Those that are trained with."""
        return training.trainable_counts(self.counts) if self.request.train else ()

    @property
    def seeds(self) -> list[int]:
        """Those of training."""
        count = training.QUICK_SEEDS if self.request.quick else training.SEEDS
        return [self.request.seed + one for one in range(count)]

    @property
    def planned(self) -> int:
        """How many steps the progress has: starts, slices with their warm-up, and runs of training."""
        inferences = 0 if self.policy.act is None else len({1, *self.counts})
        racers = 2 * len(self.participants) + inferences
        return len(self.participants) + racers * (1 + self.request.rounds) + len(self.training_counts) * len(self.seeds)

    def advance(self, steps: int) -> None:
        """Says that so many more steps of the progress are done."""
        if self.progress is not None:
            self.progress.advance(steps)

    def describe(self, text: str) -> None:
        """Says what is being done."""
        if self.progress is not None:
            self.progress.describe(f"{self.label}: {text}")


def plan_of(request: Request) -> Plan:
    """Tries one env, and decides what is measured.

    Raises:
        ValueError: for a policy that does not fit, and if there is nothing to measure.
        RuntimeError: for an env that cannot be made or stepped.
    """
    machine = measure.machine_facts()  # before any load of ours
    observation_space, action_space, cost, make_seconds, resets = _tried(request.source)
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
    staying, too_long, seconds = within_budget(
        participants,
        cost,
        make_seconds + resets.seconds,
        cores,
        request.rounds,
        budget,
        longest,
        fewest_steps := resets.steps_of_slice(request.rounds),
    )
    return Plan(
        request,
        machine,
        name_of(request.source),
        observation_space,
        policy,
        staying,
        absent + too_long,
        seconds,
        time.monotonic() + (QUICK_END if request.quick else END),
        resets.seconds,
        fewest_steps,
    )


@dataclass(frozen=True)
class Resets:
    """What resets of an env take.

    Attributes:
        seconds: of one.
        step_seconds: of a step with its share of a reset, where that is dear, else 0.
        steps: of an episode, likewise.
    """

    seconds: float
    step_seconds: float
    steps: int

    def steps_of_slice(self, rounds: int) -> int:
        """How many steps a slice has at least, so that all rounds together have two episodes where resets are dear."""
        is_dear = self.seconds > DEAR_SHARE * self.step_seconds * self.steps
        return -(-2 * (self.steps + 1) // rounds) if is_dear else 1


def _tried(
    source: Source,
) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any], choosing.StepCost, float, Resets]:
    """The spaces of an env, what a step of it takes, how many seconds making it takes, and its resets.

    Raises:
        RuntimeError: for an env that cannot be made or stepped, with what it raised.
    """
    try:
        env = ordinary_env(source)
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"it makes a {type(env).__name__}: expected a gymnasium.Env")
        observation_space, action_space = env.observation_space, env.action_space
        env.close()
        began = time.perf_counter()
        env = ordinary_env(source)  # again: the first may have had much to import
        make_seconds = time.perf_counter() - began
        cost = choosing.measure(lambda: env)
        env = ordinary_env(source)
        try:
            resets = _resets_of(env)
        finally:
            env.close()
        cost = replace(cost, wall=max(cost.wall, resets.step_seconds))
        return observation_space, action_space, cost, make_seconds, resets
    except Exception as error:
        said = str(error).strip().rstrip(".")
        raise RuntimeError(f"{name_of(source)} failed when it was tried: {type(error).__name__}: {said}") from error


def _resets_of(env: gymnasium.Env[Any, Any]) -> Resets:
    """Looks at one reset, and if it is dear at the episode after it.

    An episode that does not end in the time of the look is taken to be as long as that.
    """
    began = time.perf_counter()
    env.reset()
    reset_seconds = time.perf_counter() - began
    if reset_seconds < DEAR_RESET:
        return Resets(reset_seconds, 0.0, 0)
    began, steps, ended = time.perf_counter(), 0, False
    while not ended and time.perf_counter() - began < LOOK_AT_EPISODE:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        ended = bool(terminated or truncated)
        steps += 1
    return Resets(reset_seconds, (time.perf_counter() - began + reset_seconds) / steps, steps)
