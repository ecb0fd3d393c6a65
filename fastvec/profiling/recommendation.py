"""Which configuration to take, why, what is next best, and what the rule of thumb would have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastvec.profiling.configurations import BACKENDS, Configuration
from fastvec.profiling.statistics import Estimate, differs, paired_ratio

# What is at most so much slower than the fastest is taken, if it has fewer lanes: they learn with fresher policies.
GOOD_ENOUGH = 0.9
# The rule of thumb: at most so many envs for each core.
ENVS_PER_CORE = 2


@dataclass(frozen=True)
class Recommendation:
    """What to take.

    Attributes:
        choice: the configuration.
        reason: why, in one sentence.
        runner_up: the fastest of the others; None if there is none.
        runner_up_ratio: its speed over the choice's, round by round.
        rule_of_thumb: whether and how the choice contradicts "at most twice the cores", in one sentence.
        contradicts: whether it does.
    """

    choice: Configuration
    reason: str
    runner_up: Configuration | None
    runner_up_ratio: Estimate | None
    rule_of_thumb: str
    contradicts: bool

    def to_json(self) -> dict[str, Any]:
        def told(one: Configuration | None) -> dict[str, Any] | None:
            return None if one is None else {"backend": one.backend, "n": one.n, "workers": one.workers}

        ratio = self.runner_up_ratio
        return {
            **(told(self.choice) or {}),
            "reason": self.reason,
            "runner_up": told(self.runner_up),
            "runner_up_ratio": None
            if ratio is None
            else {"median": ratio.median, "low": ratio.low, "high": ratio.high},
            "rule_of_thumb": self.rule_of_thumb,
            "contradicts_rule_of_thumb": self.contradicts,
        }


def recommend(speeds: Sequence[tuple[Configuration, Estimate]], cores: int, seed: int = 0) -> Recommendation | None:
    """Recommends one of fastvec's configurations; None if there is none.

    Of those that are not told apart from the fastest, or at most a tenth slower, it takes the one with the fewest
    lanes, then with the fewest workers.

    Args:
        speeds: env-steps per second of each configuration, with a sample of each round.
        cores: that this process may use.
        seed: of the bootstrap.
    """
    ours = [(one, sps) for one, sps in speeds if one.backend in BACKENDS]
    if not ours:
        return None
    sps_of = dict(ours)
    fastest = max(sps_of, key=lambda one: sps_of[one].median)

    def ratio(one: Configuration, other: Configuration) -> Estimate:
        return paired_ratio(sps_of[one], sps_of[other], seed)

    def is_good_enough(one: Configuration) -> bool:
        to_fastest = ratio(one, fastest)
        return to_fastest.median >= GOOD_ENOUGH or not differs(to_fastest)

    choice = min(filter(is_good_enough, sps_of), key=lambda one: (one.n, one.workers, -sps_of[one].median))
    others = [one for one in sps_of if one != choice]
    runner_up = max(others, key=lambda one: sps_of[one].median) if others else None
    return Recommendation(
        choice,
        _reason(choice, fastest, ratio(choice, fastest), sps_of[choice].median),
        runner_up,
        None if runner_up is None else ratio(runner_up, choice),
        *_rule_of_thumb(choice, sps_of, ratio, cores),
    )


def _reason(choice: Configuration, fastest: Configuration, to_fastest: Estimate, sps: float) -> str:
    made = f"it makes {sps:,.0f} env-steps a second"
    if choice == fastest:
        return f"{made}, and none of the others is faster"
    fewer = (
        "fewer lanes" if choice.n < fastest.n else "fewer workers" if choice.workers < fastest.workers else "no more"
    )
    if differs(to_fastest):
        return f"{made}, {to_fastest.median:.0%} of what {fastest} does, with {fewer}"
    return f"{made}, is not told apart from the fastest, {fastest}, and has {fewer}"


def _rule_of_thumb(
    choice: Configuration, sps_of: dict[Configuration, Estimate], ratio: Any, cores: int
) -> tuple[str, bool]:
    most = ENVS_PER_CORE * cores
    rule = f'the rule of thumb "at most twice the cores" (n up to {most} here)'
    if choice.n <= most:
        return f"It agrees with {rule}.", False
    within = [one for one in sps_of if one.n <= most]
    if not within:
        return f"It contradicts {rule}; nothing within it was measured.", True
    best = max(within, key=lambda one: sps_of[one].median)
    gain = ratio(choice, best)
    if not differs(gain):
        return f"It contradicts {rule}, but is not told apart from the best within it, {best}.", True
    return (
        f"It contradicts {rule}: the best within it, {best}, is slower by a factor of {gain.median:.3g} "
        f"({gain.low:.3g} to {gain.high:.3g}).",
        True,
    )
