"""Whether this machine's native envs give Gymnasium's bits: a short lock-step run beside SyncVectorEnv."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

from fastvec import registry
from fastvec.factory import make


def first_difference(id: str, *, num_envs: int = 3, steps: int = 300, seed: int = 0) -> str | None:
    """Steps a native env and Gymnasium's in lock-step with the same random actions.

    Args:
        id: a native id.
        num_envs: number of lanes.
        steps: steps of each lane, through autoresets.
        seed: of the reset and of the actions.

    Returns:
        None if every observation, reward and flag is equal bit for bit; otherwise a sentence on the first that is not.
    """
    native = registry.find(id)
    ours = make(id, num_envs)
    theirs = SyncVectorEnv([lambda: gymnasium.make(native.gymnasium_id, disable_env_checker=True)] * num_envs)
    try:
        ours.action_space.seed(seed)
        found = _compare("reset", [ours.reset(seed=seed)[0]], [theirs.reset(seed=seed)[0]])
        for step in range(1, steps + 1):
            if found is not None:
                break
            actions = ours.action_space.sample()
            found = _compare(f"step {step}", ours.step(actions)[:4], theirs.step(actions)[:4])
        return found
    finally:
        ours.close()
        theirs.close()


def _compare(when: str, ours: Any, theirs: Any) -> str | None:
    for name, own, other in zip(("observation", "reward", "terminated", "truncated"), ours, theirs, strict=False):
        own, other = np.asarray(own), np.asarray(other)
        # Bytes, so that -0.0 differs from 0.0 and NaN equals itself.
        if own.dtype != other.dtype or own.tobytes() != other.tobytes():
            lanes = [lane for lane in range(len(own)) if own[lane].tobytes() != other[lane].tobytes()]
            lane = lanes[0] if lanes else 0
            return f"{when}, lane {lane}: {name} is {own[lane]!r} here and {other[lane]!r} in Gymnasium"
    return None
