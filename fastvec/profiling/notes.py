"""What a reader of a profile should know before believing its figures, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastvec.figures import in_time
from fastvec.profiling import training
from fastvec.profiling.configurations import LeftOut
from fastvec.profiling.planning import Plan
from fastvec.profiling.race import Findings, Measured
from fastvec.profiling.report import diversity_sentence
from fastvec.profiling.statistics import FEWEST_SAMPLES

# Above this relative half width of an interval the machine is called noisy.
NOISY = 0.1


def notes_of(
    measured: Sequence[Measured], found: Findings, plan: Plan, left_out: Sequence[LeftOut], interrupted: bool
) -> list[str]:
    """What a reader should know before believing the figures."""
    notes = []
    if found.diversity is not None:
        notes.append(diversity_sentence(found.diversity.to_json()))
        if found.diversity.warning is not None:
            notes.append(f"Warning: {found.diversity.warning}.")
    if found.are_totals:
        notes.append(
            f"A reset takes {in_time(plan.reset_seconds)}, and few rounds have one in them: rates are those of all "
            f"rounds together, and parts of a step are means, as medians would hide it. Intervals are wide."
        )
    if found.training:
        notes.append(training.compared(found.training))
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
