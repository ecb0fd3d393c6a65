"""The rules that check_vector_env knows, and what it reports where one is broken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

# Grouped by what they are about. docs/checker.md lists them too.
RULES = {
    "attributes": "num_envs is an int above zero, and both spaces are there, batched and single",
    "spaces": "the batched spaces are those that batch_space makes of the single ones",
    "autoreset-mode": "metadata['autoreset_mode'] is a member of AutoresetMode",
    "no-errors": "valid calls raise nothing",
    "results": "reset returns (observation, infos) and step (observation, rewards, terminations, truncations, infos)",
    "observation": "observations are in observation_space and have its dtype",
    "rewards": "rewards are a float array of shape (num_envs,)",
    "flags": "terminations and truncations are bool arrays of shape (num_envs,)",
    "infos": "every info has a row for each lane, and a bool mask under its name with an underscore in front",
    "arguments": "actions, seeds and options, with the mask in them, are read and stay as they are",
    "fresh-data": "what a call returned is not changed by later calls",
    "next-step": "NEXT_STEP: after an episode's end comes a row with reward 0 and no flag",
    "next-step-reset": "NEXT_STEP: that row has the observation and infos that reset() would have given",
    "same-step": "SAME_STEP: final_obs has the ended lanes' last observations, and _final_obs is true for these alone",
    "same-step-reset": "SAME_STEP: the observation of an ended lane is the next episode's first, not final_obs again",
    "final-obs": "in other modes than SAME_STEP there is no final_obs",
    "same-seed": "the same seed and actions give the same results",
    "lanes-independent": "what a lane returns does not depend on the actions of other lanes",
    "info-values": "a lane's infos do not depend on other lanes, as they do where one lane decides the dtype of all",
    "seeds-differ": "with an int seed, lanes have different seeds",
    "seed-int": "an int seed s is the list [s, s + 1, ...], where lists are taken",
    "seed-list": "each seed of a list is that of its lane, and None leaves the lane's stream running",
    "reset-continues": "a reset without a seed continues the streams: the same every time, and a new episode",
    "fresh-envs-differ": "envs that were never seeded differ from each other",
    "reset-forgets": "a reset with a seed forgets the past: no autoreset is pending",
    "reset-mask": "reset(options={'reset_mask': mask}) resets the lanes of the mask and leaves the others as they are",
    "reset-mask-forgets": "a lane that a mask resets has no autoreset pending",
    "statistics": "RecordEpisodeStatistics counts right",
    "statistics-mask": "RecordEpisodeStatistics counts right across resets of some lanes",
    "close": "close may be called twice, and before the first reset, and sets closed",
    "after-close": "calls after close work, or raise an error that says what is wrong",
    "same-as-single": "lanes do what single envs do",
}


@dataclass(frozen=True)
class Violation:
    """One rule that an env breaks, where it was first seen.

    Attributes:
        rule: its name, a key of RULES.
        expected: what the rule asks for.
        found: what the env did.
        lane: the lane, where it is one's.
        step: the number of the step since the reset before, from 1; None where it was in no step.
    """

    rule: str
    expected: str
    found: str
    lane: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        places = [f"{name} {value}" for name, value in (("step", self.step), ("lane", self.lane)) if value is not None]
        where = f" ({', '.join(places)})" if places else ""
        return f"{self.rule}{where}: expected {self.expected}; found {self.found}"


class Report:
    """Collects violations: the first of each rule, and none of rules that are skipped."""

    def __init__(self, skip: Collection[str]) -> None:
        unknown = [rule for rule in skip if rule not in RULES]
        if isinstance(skip, str) or unknown:
            raise ValueError(f"skip is {skip!r}: expected a collection of the rules {', '.join(RULES)}")
        self.violations: list[Violation] = []
        self._skip, self._broken = frozenset(skip), set[str]()

    def add(self, rule: str, expected: str, found: str, lane: int | None = None, step: int | None = None) -> None:
        """Notes a violation, unless the rule has one or is skipped; ``step`` is the number of steps before."""
        if rule not in self._skip and rule not in self._broken:
            self.violations.append(Violation(rule, expected, found, lane, None if step is None else step + 1))
        self._broken.add(rule)

    def has(self, rule: str) -> bool:
        """Whether the rule is known to be broken, be it skipped or not."""
        return rule in self._broken


def short(value: Any) -> str:
    """A value for a message, on one line and not endless."""
    text = " ".join(repr(value[()] if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= 160 else f"{text[:157]}..."
