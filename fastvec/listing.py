"""The native ids with their spaces and limits: for `fastvec envs`."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium

from fastvec import registry
from fastvec._core import precisions
from fastvec.terminal import Column, Row, print_table


def rows() -> list[dict[str, Any]]:
    """For every native id what Gymnasium gives it, and the precisions that its kernel has."""
    found = []
    for native in registry.NATIVE_ENVS.values():
        spec = gymnasium.spec(native.gymnasium_id)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium's, of ids that have a successor
            env = gymnasium.make(spec, disable_env_checker=True)
        found.append(
            {
                "id": native.id,
                "observation_space": str(env.observation_space),
                "action_space": str(env.action_space),
                "observations": _in_short(env.observation_space),
                "actions": _in_short(env.action_space),
                "max_episode_steps": spec.max_episode_steps,
                "reward_threshold": spec.reward_threshold,
                "precision": list(precisions(native.kernel)),
            }
        )
        env.close()
    return found


def _in_short(space: gymnasium.Space[Any]) -> str:
    """The space without its bounds, which fill lines."""
    if isinstance(space, gymnasium.spaces.Box):
        return f"Box {space.shape} {space.dtype}"
    return str(space)


def run(as_json: bool) -> int:
    """Prints the list; the exit code is 0."""
    found = rows()
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    columns = (
        Column("id"),
        Column("observations", wraps=True),
        Column("actions"),
        Column("limit", figures=True),
        Column("precision"),
    )
    lines = [
        Row(
            (
                row["id"],
                row["observations"],
                row["actions"],
                str(row["max_episode_steps"] or "none"),
                ", ".join(row["precision"]),
            )
        )
        for row in found
    ]
    print_table("native envs", columns, (lines,))
    return 0
