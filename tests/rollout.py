"""Drives envs in a reproducible way and keeps what they return.

Everything goes through the public vector API, so that fastvec and Gymnasium's envs can be driven alike."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from fastvec.registry import NATIVE_ENVS

# What may become of float64 actions, (n, size), before they are passed to ``step``.
BOX_FORMS = {
    "float32": lambda actions: actions.astype(np.float32),
    "float64": lambda actions: actions,
    "list": lambda actions: actions.tolist(),
    "ints": lambda actions: np.rint(actions).astype(np.int64),
}

Trajectory = dict[str, npt.NDArray[Any]]


def make_single(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The ordinary Gymnasium env that the native env of this id reproduces."""
    return gymnasium.make(NATIVE_ENVS[env_id].gymnasium_id, disable_env_checker=True, **kwargs)


def make_oracle(env_id: str, n: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **kwargs: Any) -> SyncVectorEnv:
    """Gymnasium's SyncVectorEnv over n ordinary envs; kwargs are those of ``gymnasium.make``."""
    return SyncVectorEnv([lambda: make_single(env_id, **kwargs)] * n, autoreset_mode=mode)


def sample_actions(space: gymnasium.Space[Any], shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Random actions of a single action space, in an array of this leading shape: (n,) or (steps, n)."""
    if isinstance(space, Discrete):
        return rng.integers(space.start, space.start + space.n, shape, dtype=np.int64)
    return rng.uniform(space.low, space.high, (*shape, *space.shape)).astype(space.dtype)


def play(env: VectorEnv[Any, Any, Any], actions: npt.NDArray[Any], seed: Any = None) -> Trajectory:
    """Resets with ``seed`` and takes ``actions``, of shape (steps, n, ...); see :func:`proceed`."""
    return proceed(env, actions, env.reset(seed=seed)[0])


def proceed(env: VectorEnv[Any, Any, Any], actions: npt.NDArray[Any], first: Any = None) -> Trajectory:
    """Takes ``actions``, of shape (steps, n, ...); in DISABLED mode lanes that ended are reset at once, by a mask.

    Args:
        env: has been reset.
        actions: one row for each step.
        first: the observation before the first step, if it is to be kept.

    Returns:
        Copies of all that was returned, with shapes (steps, n, ...): "obs" and "final_obs" (zero where there is none),
        "next_obs" (in DISABLED mode after the reset, else as "obs"), "rewards", "terminations", "truncations". An
        observation space that is a tuple gives "obs0", "obs1" and so on. With the shape (1, n, ...): "first", and
        fastvec's state columns after the last step, "state x" and so on, since observations may hide their last bits.
    """
    disabled = env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    rows: dict[str, list[npt.NDArray[Any]]] = {}
    if first is not None:
        _append_observation(rows, "first", first)
    for row in actions:
        obs, rewards, terminations, truncations, info = env.step(row)
        _append_observation(rows, "obs", obs)
        for name, array in (("rewards", rewards), ("terminations", terminations), ("truncations", truncations)):
            rows.setdefault(name, []).append(array.copy())
        _append_observation(rows, "final_obs", _final_observation(obs, info))
        ended = terminations | truncations
        if disabled and ended.any():
            obs, _ = env.reset(options={"reset_mask": ended})
        _append_observation(rows, "next_obs", obs)
    for name, column in getattr(env, "state", {}).items():
        rows[f"state {name}"] = [column.copy()]
    return {name: np.stack(arrays) for name, arrays in rows.items()}


def reset_ended(env: VectorEnv[Any, Any, Any], result: tuple[Any, ...]) -> None:
    """In DISABLED mode resets the lanes that ended in a step, as a user would."""
    ended = result[2] | result[3]
    if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
        env.reset(options={"reset_mask": ended.copy()})


def parts_of(obs: Any) -> tuple[Any, ...]:
    """The arrays of an observation: those of a tuple, or the one that it is."""
    return obs if isinstance(obs, tuple) else (obs,)


def lanes_of(trajectory: Trajectory, lanes: Any) -> Trajectory:
    """The part of a trajectory that these lanes (a slice, or a list of indices) had."""
    return {name: array[:, lanes] for name, array in trajectory.items()}


def _append_observation(rows: dict[str, list[npt.NDArray[Any]]], name: str, obs: Any) -> None:
    if isinstance(obs, tuple):
        for i, part in enumerate(obs):
            rows.setdefault(f"{name}{i}", []).append(part.copy())
    else:
        rows.setdefault(name, []).append(obs.copy())


def _final_observation(obs: Any, info: dict[str, Any]) -> Any:
    parts = parts_of(obs)
    final = [np.zeros_like(part) for part in parts]
    if "final_obs" in info:
        for part, source in zip(final, parts_of(info["final_obs"]), strict=True):
            for lane in np.flatnonzero(info["_final_obs"]):
                part[lane] = source[lane]
    return tuple(final) if isinstance(obs, tuple) else final[0]
