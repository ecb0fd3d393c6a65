"""Factories of ordinary envs -> the native lanes that are what these envs would be.

SB3 passes a ``vec_env_cls`` functions that make ordinary envs. The native env is recognised by the class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.monitor import Monitor

from fastvec import registry
from fastvec._core import kernel_info
from fastvec.factory import assemble
from fastvec.rendering import MAX_FRAMES
from fastvec.vec_env import RENDER_MODES, VecEnv

EnvFactory = Callable[[], gymnasium.Env[Any, Any]]

# Wrappers that change nothing of what a lane returns, or that lanes do natively.
TRANSPARENT_WRAPPERS = (Monitor, OrderEnforcing, PassiveEnvChecker, TimeLimit)

NEEDS_ORDINARY_ENVS = "that needs ordinary envs: backend='serial' or 'process', or 'auto', which finds the faster one"


class NotNative(ValueError):
    """What factories make has no native lanes.

    Attributes:
        is_close: whether its class has, and something else is in the way.
    """

    def __init__(self, message: str, is_close: bool) -> None:
        super().__init__(message)
        self.is_close = is_close


def lanes_of_factories(factories: list[EnvFactory], make_kwargs: dict[str, Any]) -> VecEnv:
    """The lanes that are what the ordinary envs of these factories would be.

    Args:
        factories: they are called, unless it is known that they all make the same.
        make_kwargs: num_threads and precision, as in ``fastvec.make``.

    Raises:
        NotNative: if there are none.
        TypeError: for other keywords.
    """
    first = factories[0]()
    if not _are_alike(factories):
        numbers = _numbers_of(first)
        for place, factory in enumerate(factories[1:], 1):
            other = factory()
            if _numbers_of(other) != numbers:
                raise NotNative(
                    f"factory {place} makes another env than factory 0, and lanes are alike: {NEEDS_ORDINARY_ENVS}",
                    is_close=True,
                )
            other.close()
    return _lanes_like(first, len(factories), make_kwargs)


def _are_alike(factories: list[EnvFactory]) -> bool:
    """Whether they are known to differ in nothing, so that one of them need be called: those of SB3's make_vec_env, if
    they make an env by its id."""
    return all(
        getattr(factory, "__qualname__", "") == "make_vec_env.<locals>.make_env.<locals>._init"
        and isinstance(inspect.getclosurevars(factory).nonlocals.get("env_id"), str)
        for factory in factories
    )


def _numbers_of(env: gymnasium.Env[Any, Any]) -> tuple[Any, ...]:
    """All that lanes take from an ordinary env."""
    native, limit = _recognised(env)
    parameters = [native.parameter(name).read(env.unwrapped) for name in kernel_info(native.kernel)[1]]
    tables = [table.tobytes() for table in native.tables(env.unwrapped)]
    return native.kernel, limit, parameters, tables, env.unwrapped.render_mode


def _lanes_like(env: gymnasium.Env[Any, Any], n: int, make_kwargs: dict[str, Any]) -> VecEnv:
    """n native lanes with the parameters, tables, limit and render mode of an ordinary env, which is closed."""
    native, limit = _recognised(env)
    defaults: dict[str, Any] = {"num_threads": None, "precision": "float64"}
    if not make_kwargs.keys() <= defaults.keys():
        raise TypeError(
            f"FastVecEnv got {', '.join(make_kwargs)}: native lanes, which these factories' envs have, take "
            f"{', '.join(defaults)}; for other options choose backend='serial' or 'process'"
        )
    if env.unwrapped.render_mode not in (None, *RENDER_MODES):
        raise NotNative(
            f"render_mode is {env.unwrapped.render_mode!r}, and native lanes draw {', '.join(RENDER_MODES)}: "
            f"{NEEDS_ORDINARY_ENVS}",
            is_close=True,
        )
    lanes = assemble(
        native,
        env.unwrapped,
        native.tables(env.unwrapped),
        n,
        AutoresetMode.SAME_STEP,
        limit,
        copy=True,
        episode_stats=True,
        render_lanes=None if env.unwrapped.render_mode is None else tuple(range(min(n, MAX_FRAMES))),
        **{**defaults, **make_kwargs},
    )
    env.close()
    return lanes


def _recognised(env: gymnasium.Env[Any, Any]) -> tuple[registry.NativeEnv, int | None]:
    """The native env that an ordinary one is, and its limit.

    Raises:
        NotNative: if it is none; the message says what to use.
    """
    layer: Any = env.unwrapped
    of_class = [native for native in registry.NATIVE_ENVS.values() if registry.ordinary_class(native) is type(layer)]
    if not of_class:
        name = type(layer).__name__ if layer.spec is None else layer.spec.id
        raise NotNative(
            f"{name} has no native lanes, as {', '.join(registry.NATIVE_ENVS)} have: {NEEDS_ORDINARY_ENVS}",
            is_close=False,
        )
    limit = None
    wrapper: Any = env
    while isinstance(wrapper, gymnasium.Wrapper):
        if not isinstance(wrapper, TRANSPARENT_WRAPPERS):
            raise NotNative(f"the env is wrapped in {type(wrapper).__name__}: {NEEDS_ORDINARY_ENVS}", is_close=True)
        if isinstance(wrapper, Monitor) and (wrapper.results_writer is not None or wrapper.info_keywords):
            raise NotNative(f"the env's Monitor keeps more than statistics: {NEEDS_ORDINARY_ENVS}", is_close=True)
        if isinstance(wrapper, TimeLimit):
            limit = wrapper._max_episode_steps if limit is None else min(limit, wrapper._max_episode_steps)
        wrapper = wrapper.env
    own = None if layer.spec is None else layer.spec.id.removeprefix("fastvec/")
    return next((native for native in of_class if native.id == own), of_class[0]), limit
