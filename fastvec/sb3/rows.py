"""Rows of single lanes, of the batched values that a step returns, as Stable-Baselines3's infos have them."""

from __future__ import annotations

import time
from typing import Any

from gymnasium import Space
from gymnasium.spaces import Discrete


def observation_rows(single_space: Space[Any], observation: Any, lanes: list[int]) -> list[Any]:
    """The observations of some lanes; of a Discrete space as ints."""
    if isinstance(observation, dict):
        return [{name: values[lane] for name, values in observation.items()} for lane in lanes]
    if isinstance(observation, tuple):
        return [tuple(values[lane] for values in observation) for lane in lanes]
    rows = observation[lanes]
    return rows.tolist() if isinstance(single_space, Discrete) else list(rows)


def episode_rows(episode: dict[str, Any], lanes: list[int], began: float) -> list[dict[str, Any]]:
    """Statistics of some lanes' episodes as Monitor has them; ``began`` is when the env was made, by ``time.time``."""
    seconds = round(time.time() - began, 6)
    returns, lengths = (episode[name][lanes].tolist() for name in ("r", "l"))
    return [{"r": round(r, 6), "l": length, "t": seconds} for r, length in zip(returns, lengths, strict=True)]
