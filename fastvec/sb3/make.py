"""make_vec_env with the signature of Stable-Baselines3's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from stable_baselines3.common import env_util
from stable_baselines3.common.vec_env import VecEnv as SB3VecEnv

from fastvec import registry
from fastvec.factory import checked_count, make_native
from fastvec.rendering import MAX_FRAMES, has_pygame, offered_modes
from fastvec.sb3.vec_env import FastVecEnv
from fastvec.vec_env import VecEnv

# What of Monitor's keywords native lanes need not know.
HARMLESS = {"allow_early_resets"}


def make_vec_env(
    env_id: str | Callable[..., gymnasium.Env[Any, Any]],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: type[SB3VecEnv] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
) -> SB3VecEnv:
    """As ``stable_baselines3.common.env_util.make_vec_env``, with lanes of fastvec.

    Args:
        env_id: an id, a class, or a function that makes an env.
        n_envs: number of lanes.
        seed: lane i begins with seed + i.
        start_index: as in SB3: the number of the first monitor file.
        monitor_dir, wrapper_class, monitor_kwargs, wrapper_kwargs: as in SB3. They need ordinary envs; a native id
            then has some, with a warning.
        env_kwargs: keywords of the env's constructor. A native id is made with ``render_mode="rgb_array"`` by default,
            for up to 64 of its lanes, where it has that and pygame is installed.
        vec_env_cls: ``FastVecEnv`` by default; any other of SB3's is made by SB3's own function.
        vec_env_kwargs: for ``FastVecEnv`` keywords of ``fastvec.make``, such as ``backend``, ``num_workers`` and
            ``num_threads``.

    Raises:
        ValueError: with ``backend="native"`` for what has no native lanes; the message says why.
    """
    if vec_env_cls is None:
        vec_env_cls = FastVecEnv
    own, make_kwargs = env_kwargs or {}, vec_env_kwargs or {}
    needs_ordinary = monitor_dir is not None or wrapper_class is not None or set(monitor_kwargs or ()) - HARMLESS
    if (
        issubclass(vec_env_cls, FastVecEnv)
        and isinstance(env_id, str)
        and env_id.removeprefix("fastvec/") in registry.NATIVE_ENVS
        and make_kwargs.get("backend", "auto") in ("auto", "native")
        and not needs_ordinary
    ):
        options = {name: value for name, value in make_kwargs.items() if name != "backend"}
        venv: SB3VecEnv = vec_env_cls(_make_drawn(env_id, n_envs, {**own, **options}))
        venv.seed(seed)
        return venv
    # SB3's own function wraps ordinary envs in what was asked for, and gives FastVecEnv what makes them.
    checked_count("n_envs", n_envs)
    others: Any = (
        monitor_dir,
        wrapper_class,
        env_kwargs,
        vec_env_cls,
        vec_env_kwargs,
        monitor_kwargs,
        wrapper_kwargs,
    )
    ordinary: SB3VecEnv = env_util.make_vec_env(env_id, n_envs, seed, start_index, *others)
    return ordinary


def _make_drawn(env_id: str, n: int, kwargs: dict[str, Any]) -> VecEnv:
    """The native env, with frames unless something else is asked for, if it can have them."""
    kwargs = {"autoreset_mode": "SameStep", "episode_stats": True, **kwargs}
    lanes = {"render_lanes": range(MAX_FRAMES)} if checked_count("n_envs", n) > MAX_FRAMES else {}
    if kwargs.get("render_mode") is not None:
        return make_native(env_id, n, **{**lanes, **kwargs})
    if "render_mode" not in kwargs and "rgb_array" in offered_modes(registry.find(env_id)) and has_pygame():
        return make_native(env_id, n, render_mode="rgb_array", **{**lanes, **kwargs})
    return make_native(env_id, n, **kwargs)
