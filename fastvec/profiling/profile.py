"""profile: plans, measures and recommends; and what it returns, in all the forms that it is shown in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastvec.contenders import SEED, Source
from fastvec.profiling import training
from fastvec.profiling.configurations import BACKENDS, Configuration, LeftOut
from fastvec.profiling.diversity import Diversity, diversity_of
from fastvec.profiling.notes import notes_of
from fastvec.profiling.planning import Plan, Request, checked_request, plan_of
from fastvec.profiling.policy import one_thread
from fastvec.profiling.race import Findings, InferenceCost, Measured, measure_starts, race
from fastvec.profiling.recommendation import Recommendation, recommend
from fastvec.profiling.training import Training

# Seconds for the look at how different lanes are.
LOOKS, QUICK_LOOKS = 2.0, 0.4

MEANING = {
    "sps": "env-steps per second of inference and stepping, without NEXT_STEP reset rows: median over rounds (or, "
    "where settings say total, the rate over all of them), bootstrap 95 % interval (low, high), one sample a round",
    "workers": "worker processes, or threads of EnvPool; 0 where the calling process steps",
    "split_us": "microseconds of a batch step, medians over rounds: env (in the envs, mean over workers), ipc (round "
    "trip less the span of the slowest worker's envs), wait (for the slowest worker), policy, python (the rest)",
    "cpu_percent": "CPU time of all processes as a share of wall-clock; 100 is one core; null where it cannot be read",
    "peak_rss_bytes": "peak memory of a process that makes and steps this configuration, and of its workers, added up",
    "startup_s": "seconds from the call of make to the return of the first reset, in a process of its own",
    "gain": "n t(1) / t(n): what inference for n lanes at once saves over n inferences",
}


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
        are_totals: whether rates are those of all rounds together, since medians would hide what is rare and dear.
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
    are_totals: bool = False

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
                "statistic": "total" if self.are_totals else "median",
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
        rounds: in each of which every configuration has its turn, at least 6; None for 16, quick 9.
        seed: of lanes, actions, weights and the bootstrap.
        compare: whether to measure what is installed of Gymnasium's, Stable-Baselines3's and EnvPool's vector envs too.
        quick: whether to answer in less than 20 seconds, from fewer configurations.

    Returns:
        The profile, which :meth:`Profile.print`, :meth:`Profile.to_json` and :meth:`Profile.to_html` show.

    Raises:
        ValueError, TypeError: for arguments that cannot be. Nothing was measured.
        gymnasium.error.Error: for an unknown id.
        ImportError: without SciPy, and without PyTorch for ``train``.
        RuntimeError: for an env that cannot be made or stepped, before anything is measured or in the middle of it; the
            cause is what it raised.
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
    found = measured(plan_of(request))
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def measured(plan: Plan) -> Profile:
    """Measures what was planned. After Ctrl-C it returns what there is by then."""
    found = Findings()
    interrupted = False
    try:
        with one_thread(plan.policy):
            measure_starts(plan, found)
            race(plan, found)
        plan.describe("how different lanes are")
        found.diversity = _diversity(plan, found)
        for n in plan.training_counts:
            plan.describe(f"training, n = {n}")
            steps = training.QUICK_STEPS if plan.request.quick else training.STEPS
            found.training.append(training.train(str(plan.request.source), n, steps, plan.seeds, plan.advance))
    except KeyboardInterrupt:
        interrupted = True
    except Exception as error:
        raise RuntimeError(
            f"{plan.label} failed while it was measured, where a trial step had not: {type(error).__name__}: {error}"
        ) from error
    return _put_together(plan, found, interrupted)


def _diversity(plan: Plan, found: Findings) -> Diversity:
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
        plan.reset_seconds,
    )


def _put_together(plan: Plan, found: Findings, interrupted: bool) -> Profile:
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
        found.are_totals,
    )
