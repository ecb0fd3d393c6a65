"""Whether more lanes bring more: how different they begin, how alike their rewards are, how long episodes last."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fastvec
from fastvec.backends.parts import parts_of
from fastvec.contenders import Source
from fastvec.measure import sample_actions

# Lanes that are looked at, and steps of each.
MOST_LANES, MOST_STEPS, FEWEST_STEPS = 64, 500, 2
# Fewer rewards say nothing about how alike they are.
FEWEST_REWARDS = 8
# Rewards of independent lanes are this alike only if the actions decide nothing.
ALIKE = 0.95


@dataclass(frozen=True)
class EpisodeLengths:
    """Lengths of the episodes that ended: how many, and their quartiles and extremes."""

    episodes: int
    least: int
    low: float
    median: float
    high: float
    most: int

    @classmethod
    def of(cls, lengths: npt.ArrayLike) -> EpisodeLengths | None:
        """Those of some episodes; None if there is none."""
        values = np.asarray(lengths)
        if not len(values):
            return None
        low, median, high = np.percentile(values, (25, 50, 75))
        return cls(len(values), int(values.min()), float(low), float(median), float(high), int(values.max()))


@dataclass(frozen=True)
class Diversity:
    """How different lanes are, with random actions of each its own.

    Attributes:
        lanes: that were looked at.
        steps: that each made.
        distinct_starts: different first observations among them.
        finite: whether all rewards are finite numbers.
        reward_correlation: mean correlation of the rewards of two lanes over the steps; None where they never vary,
            there is one lane, there were too few steps, or some are no finite numbers.
        episode_lengths: of the episodes that ended; None if none did.
        warning: why more lanes add nothing; None if they do.
    """

    lanes: int
    steps: int
    distinct_starts: int
    finite: bool
    reward_correlation: float | None
    episode_lengths: EpisodeLengths | None
    warning: str | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def distinct_rows(parts: list[Any]) -> int:
    """How many lanes differ in some part of their observations; a part has a row, or an object, for each lane."""
    lanes = len(parts[0])
    return len({tuple(_bits(part[lane]) for part in parts) for lane in range(lanes)})


def _bits(value: Any) -> Any:
    return np.asarray(value).tobytes() if isinstance(value, (np.ndarray, np.generic)) else repr(value)


def mean_correlation(rewards: npt.NDArray[np.float64]) -> float | None:
    """The mean correlation of two lanes' rewards.

    Args:
        rewards: (steps, lanes). Lanes whose reward is always the same correlate with none, and are left out.

    Returns:
        None where there are too few, none varies, or some are no finite numbers.
    """
    if len(rewards) < FEWEST_REWARDS:
        return None
    if not np.isfinite(rewards).all():
        return None
    # Of huge ones, whose squares are no numbers any more, it is the same.
    scaled = rewards / max(float(np.abs(rewards).max()), 1.0)
    varying = scaled[:, np.ptp(scaled, axis=0) > 0]
    lanes = varying.shape[1]
    if lanes < 2:
        return None
    with np.errstate(all="ignore"):
        matrix = np.corrcoef(varying, rowvar=False)
    found = float((matrix.sum() - lanes) / (lanes * (lanes - 1)))
    return found if np.isfinite(found) else None


def warning_of(lanes: int, first: int, second: int, moved_on: bool, correlation: float | None) -> str | None:
    """Why more lanes add nothing, if so.

    Args:
        lanes: number of lanes.
        first: different first observations after a reset with a seed for each lane.
        second: different ones after the next reset.
        moved_on: whether those of the second reset are others than those of the first.
        correlation: of rewards.
    """
    if lanes < 2:
        return None
    if first == 1 and second == 1 and moved_on:
        return (
            f"all {lanes} lanes begin alike, and differently the next time: the env does not draw from the seed that "
            "reset gives it, and every lane draws the same; use self.np_random after super().reset(seed=seed)"
        )
    if first == 1:
        return (
            f"all {lanes} lanes begin with the same observation: they differ by their actions alone, and a "
            "deterministic policy would play the same episode in each"
        )
    if correlation is not None and correlation >= ALIKE:
        return (
            f"rewards of different lanes rise and fall together (correlation {correlation:.2f}): more lanes add little"
        )
    if first <= lanes // 2:
        return f"{lanes} lanes begin in {first} different ways only"
    return None


def diversity_of(
    source: Source,
    n: int,
    seed: int,
    seconds: float,
    backend: str = "serial",
    workers: int = 0,
    reset_seconds: float = 0.0,
) -> Diversity:
    """Plays lanes of a source with random actions, for about so many seconds.

    Args:
        source: what lanes are made of.
        n: number of lanes, of which the first MOST_LANES are looked at.
        seed: lane i has seed + i.
        seconds: after which no further step is made.
        backend: where they are stepped, which changes nothing but how many steps that makes.
        workers: of the process backend.
        reset_seconds: that a reset takes; of slow ones there are fewer lanes.
    """
    lanes = min(n, MOST_LANES, max(2, int(seconds / max(reset_seconds, 1e-9))))
    options: dict[str, Any] = {"num_workers": min(workers, lanes)} if backend == "process" else {}
    env = fastvec.make(source, lanes, backend=backend, autoreset_mode="SameStep", **options)
    try:
        parts = parts_of(env.single_observation_space)

        def rows(observation: Any) -> list[Any]:
            found = []
            for part in parts:
                value = observation
                for key in part.path:
                    value = value[key]
                found.append(value if part.dtype is None else np.array(value))
            return found

        first = rows(env.reset(seed=seed)[0])
        rewards: list[npt.NDArray[np.float64]] = []
        ages, lengths = np.zeros(lanes, int), []
        end = time.perf_counter() + seconds
        actions = sample_actions(source, lanes, seed)
        for step in range(MOST_STEPS):
            if step >= FEWEST_STEPS and time.perf_counter() > end:
                break
            _, reward, terminations, truncations, _ = env.step(actions[step % len(actions)])
            rewards.append(reward)
            ages += 1
            ended = terminations | truncations
            lengths += ages[ended].tolist()
            ages[ended] = 0
        second = rows(env.reset()[0])
    finally:
        env.close()
    correlation = mean_correlation(np.array(rewards))
    distinct = distinct_rows(first)
    moved_on = [_bits(part[0]) for part in first] != [_bits(part[0]) for part in second]
    warning = warning_of(lanes, distinct, distinct_rows(second), moved_on, correlation)
    finite = bool(np.isfinite(rewards).all())
    return Diversity(lanes, len(rewards), distinct, finite, correlation, EpisodeLengths.of(lengths), warning)
