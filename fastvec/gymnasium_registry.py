"""fastvec's envs in Gymnasium's registry: ``fastvec/...`` ids, and, on request, native envs for its own ids."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium

from fastvec import registry
from fastvec.factory import make_native
from fastvec.vec_env import VecEnv

# What Gymnasium's ids had as vector_entry_point before register_vector_entry_points().
_replaced: dict[str, Any] = {}


def entry_point(native: registry.NativeEnv) -> str:
    """The text that ``gymnasium.make_vec`` finds the maker of this env by."""
    return f"{__name__}:{native.id}"


def __getattr__(name: str) -> Callable[..., VecEnv]:
    """The maker of the native env of that id, as Gymnasium calls it: with ``num_envs`` and keywords."""
    if name not in registry.NATIVE_ENVS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(_make_vec, name)


def _make_vec(id: str, num_envs: int = 1, render_mode: str | None = None, **kwargs: Any) -> VecEnv:
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    return make_native(id, num_envs, **kwargs)


def register_envs() -> None:
    """Registers ``fastvec/<id>`` for every native id: ``make`` gives the ordinary env, ``make_vec`` the native one."""
    for native in registry.NATIVE_ENVS.values():
        name = f"fastvec/{native.id}"
        if name in gymnasium.registry:
            continue
        if native.entry_point is not None:
            gymnasium.register(name, native.entry_point, vector_entry_point=entry_point(native))
        elif native.gymnasium_id in gymnasium.registry:
            spec = gymnasium.spec(native.gymnasium_id)
            gymnasium.register(
                name,
                spec.entry_point,
                reward_threshold=spec.reward_threshold,
                nondeterministic=spec.nondeterministic,
                max_episode_steps=spec.max_episode_steps,
                vector_entry_point=entry_point(native),
                kwargs=spec.kwargs,
            )


def register_vector_entry_points() -> None:
    """Makes ``gymnasium.make_vec`` of Gymnasium's own ids give native envs, so that code that uses them runs unchanged.

    Calling it again changes nothing; :func:`unregister_vector_entry_points` undoes it.
    """
    for native in registry.NATIVE_ENVS.values():
        if native.id in gymnasium.registry and native.id not in _replaced:
            spec = gymnasium.registry[native.id]
            _replaced[native.id] = spec.vector_entry_point
            spec.vector_entry_point = entry_point(native)


def unregister_vector_entry_points() -> None:
    """Gives Gymnasium's ids the vector entry points back that they had before :func:`register_vector_entry_points`."""
    for id, previous in _replaced.items():
        if id in gymnasium.registry:
            gymnasium.registry[id].vector_entry_point = previous
    _replaced.clear()
