"""What is installed, how it was built, whether it gives Gymnasium's bits here: for `fastvec doctor` and bug reports."""

from __future__ import annotations

import platform
import sys
from typing import Any

import gymnasium
import numpy as np

import fastvec
from fastvec import registry
from fastvec._core import build_info
from fastvec.parity import first_difference


def report() -> dict[str, Any]:
    """Versions, machine, build and, for each native id, None or the first difference from Gymnasium.

    Takes about a second: it steps every env beside Gymnasium's.
    """
    return {
        "fastvec": fastvec.__version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "gymnasium": gymnasium.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "c_library": " ".join(platform.libc_ver()).strip() or "unknown",
        **build_info(),
        "differences": {id: first_difference(id) for id in registry.NATIVE_ENVS},
    }


def envs() -> list[dict[str, Any]]:
    """Every native id with the spaces and limit that Gymnasium gives it."""
    rows = []
    for native in registry.NATIVE_ENVS.values():
        spec = gymnasium.spec(native.gymnasium_id)
        env = gymnasium.make(spec, disable_env_checker=True)
        rows.append(
            {
                "id": native.id,
                "observation_space": str(env.observation_space),
                "action_space": str(env.action_space),
                "max_episode_steps": spec.max_episode_steps,
                "reward_threshold": spec.reward_threshold,
            }
        )
        env.close()
    return rows
