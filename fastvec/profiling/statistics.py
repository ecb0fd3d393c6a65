"""Medians with bootstrap intervals, and when two configurations are told apart: all of the profile's statistics."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 2000
# The median lies outside of the range of k samples with a chance of 2 * 0.5**k: fewer cannot have a 95 % interval.
FEWEST_SAMPLES = 6


@dataclass(frozen=True)
class Estimate:
    """The median of samples, one a round, and the bootstrap interval that has the true one with 95 % confidence.

    Attributes:
        median: of the samples.
        low, high: the ends of the interval.
        samples: in the order of the rounds.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...]

    @property
    def relative_width(self) -> float:
        """Half of the interval as a share of the median: 0.1 is +- 10 %."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else 0.0

    def to_json(self) -> dict[str, Any]:
        return {"median": self.median, "low": self.low, "high": self.high, "samples": list(self.samples)}


def require_scipy() -> None:
    """Raises ImportError, which says what to install, where SciPy is missing."""
    try:
        found = importlib.util.find_spec("scipy")
    except ValueError:
        found = None
    if found is None:
        raise ImportError('intervals need SciPy, which is not installed; run: pip install "fastvec[profile]"')


def estimate(samples: Sequence[float], seed: int = 0) -> Estimate:
    """The median of samples with its bootstrap interval (percentiles of resampled medians).

    Args:
        samples: at least one; of fewer than FEWEST_SAMPLES the interval is their range.
        seed: of the resampling; the same samples and seed give the same interval.
    """
    values = np.asarray(samples, float)
    low, high = float(values.min()), float(values.max())
    if len(values) >= FEWEST_SAMPLES and low < high:
        require_scipy()
        from scipy import stats

        found = stats.bootstrap(
            (values,),
            np.median,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            vectorized=True,
            random_state=np.random.default_rng(seed),
        ).confidence_interval
        low, high = float(found.low), float(found.high)
    return Estimate(float(np.median(values)), low, high, tuple(values.tolist()))


def paired_ratio(ours: Estimate, theirs: Estimate, seed: int = 0) -> Estimate:
    """Ours over theirs, round by round: what slows the machine down in a round slows both.

    Raises:
        ValueError: for different numbers of rounds.
    """
    pairs = zip(ours.samples, theirs.samples, strict=True)
    return estimate([a / b for a, b in pairs], seed)


def differs(ratio: Estimate) -> bool:
    """Whether two configurations are told apart: whether the interval of their paired ratio excludes 1."""
    return not ratio.low <= 1.0 <= ratio.high
