"""Medians with bootstrap intervals, and when two configurations are told apart: all of the profile's statistics.

Where few rounds have in them what is rare and dear, as resets may be, medians would hide it: then rates are totals."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 2000
# The median lies outside of the range of k samples with a chance of 2 * 0.5**k: fewer cannot have a 95 % interval.
FEWEST_SAMPLES = 6


@dataclass(frozen=True)
class Estimate:
    """The median of samples, one a round, and the bootstrap interval that has the true one with 95 % confidence.

    Attributes:
        median: of the samples; of a total the rate over all rounds.
        low, high: the ends of the interval.
        samples: in the order of the rounds.
        seconds: of a total how long each round took; None of a median.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...]
    seconds: tuple[float, ...] | None = None

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
    low, high = _interval((values,), np.median, values, seed)
    return Estimate(float(np.median(values)), low, high, tuple(values.tolist()))


def total(samples: Sequence[float], seconds: Sequence[float], seed: int = 0) -> Estimate:
    """The rate over all rounds together, with the bootstrap interval of resampled rounds.

    Args:
        samples: the rate in each round.
        seconds: how long each took.
        seed: as in :func:`estimate`.
    """
    values, weights = np.asarray(samples, float), np.asarray(seconds, float)
    low, high = _interval((values, weights), _overall, values, seed)
    rate = float(_overall(values, weights))
    return Estimate(rate, low, high, tuple(values.tolist()), tuple(weights.tolist()))


def _overall(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], axis: int = -1) -> Any:
    return (values * weights).sum(axis=axis) / weights.sum(axis=axis)


def _interval(
    data: tuple[npt.NDArray[np.float64], ...], statistic: Callable[..., Any], values: npt.NDArray[np.float64], seed: int
) -> tuple[float, float]:
    """The bootstrap interval of a statistic of rounds; the range of too few values."""
    low, high = float(values.min()), float(values.max())
    if len(values) < FEWEST_SAMPLES or low == high:
        return low, high
    require_scipy()
    from scipy import stats

    found = stats.bootstrap(
        data,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        paired=len(data) > 1,
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def paired_ratio(ours: Estimate, theirs: Estimate, seed: int = 0) -> Estimate:
    """Ours over theirs, round by round: what slows the machine down in a round slows both. Of totals, their ratio.

    Raises:
        ValueError: for different numbers of rounds.
    """
    pairs = list(zip(ours.samples, theirs.samples, strict=True))
    if ours.seconds is not None and theirs.seconds is not None:
        data = tuple(np.asarray(one) for one in (ours.samples, ours.seconds, theirs.samples, theirs.seconds))
        ratios = np.asarray([a / b for a, b in pairs])
        low, high = _interval(data, _ratio_of_totals, ratios, seed)
        return Estimate(ours.median / theirs.median, low, high, tuple(ratios.tolist()))
    return estimate([a / b for a, b in pairs], seed)


def _ratio_of_totals(
    ours: npt.NDArray[np.float64],
    our_seconds: npt.NDArray[np.float64],
    theirs: npt.NDArray[np.float64],
    their_seconds: npt.NDArray[np.float64],
    axis: int = -1,
) -> Any:
    return _overall(ours, our_seconds, axis) / _overall(theirs, their_seconds, axis)


def differs(ratio: Estimate) -> bool:
    """Whether two configurations are told apart: whether the interval of their paired ratio excludes 1."""
    return not ratio.low <= 1.0 <= ratio.high
