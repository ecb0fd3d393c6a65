"""What ``make`` is given in place of a native id -> a function for each lane that makes its ordinary env."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from fastvec.backends.notes import add_note

EnvFactory: TypeAlias = Callable[..., gymnasium.Env[Any, Any]]
Wrapper: TypeAlias = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]
EnvSource: TypeAlias = str | EnvSpec | EnvFactory | Sequence[EnvFactory]


def factories_of(
    source: EnvSource,
    n: int,
    max_episode_steps: int | None,
    wrappers: Sequence[Wrapper],
    env_kwargs: dict[str, Any],
) -> tuple[list[Callable[[], gymnasium.Env[Any, Any]]], str]:
    """A function for each lane, and the name of what they make.

    Args:
        source: an id in Gymnasium's registry, an EnvSpec, a class, a function, or a list of functions.
        n: number of lanes; for a list 1 or its length.
        max_episode_steps: as in :func:`fastvec.make`.
        wrappers: what each env is put in, the first innermost.
        env_kwargs: what ids, classes and functions are called with.

    Raises:
        TypeError, ValueError: for what cannot be.
    """
    if not isinstance(wrappers, Sequence) or not all(callable(wrapper) for wrapper in wrappers):
        raise TypeError(f"wrappers is {wrappers!r}: expected a list of functions or classes that take an env")
    if isinstance(source, (str, EnvSpec)):
        spec = registered_spec(source) if isinstance(source, str) else source
        make_one = functools.partial(_make_registered, spec, max_episode_steps, tuple(wrappers), env_kwargs)
        return [make_one] * n, spec.id
    if max_episode_steps == -1:
        raise ValueError(
            "max_episode_steps is -1, no limit: only an id has one that could be left out; "
            "a class or function has those that it puts around its env itself"
        )
    if callable(source):
        make_one = functools.partial(_make_called, source, max_episode_steps, tuple(wrappers), env_kwargs)
        return [make_one] * n, _name_of(source)
    if env_kwargs:
        raise TypeError(f"{', '.join(env_kwargs)}: the functions of a list take no keywords; give them their own")
    if n not in (1, len(source)):
        raise ValueError(f"n is {n} for a list of {len(source)} functions, which makes as many lanes; leave n out")
    names = {_name_of(one) for one in source}
    label = names.pop() if len(names) == 1 else "a list of functions"
    return [functools.partial(_make_called, one, max_episode_steps, tuple(wrappers), {}) for one in source], label


def is_source(source: Any) -> bool:
    """Whether it is something that ordinary envs are made of; texts aside, of which only some are ids."""
    if isinstance(source, (str, EnvSpec)) or callable(source):
        return True
    return isinstance(source, (list, tuple)) and len(source) > 0 and all(callable(one) for one in source)


def registered_spec(id: str) -> EnvSpec:
    """The spec of an id in Gymnasium's registry; of ``"module:id"`` when the module has been imported.

    Raises:
        gymnasium.error.NameNotFound: if it is not in there under exactly this name.
    """
    module, _, name = id.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in gymnasium.registry:
        stem = name.rpartition("-v")[0] or name
        others = sorted(other for other in gymnasium.registry if other.rpartition("-v")[0] == stem)
        hint = f", which has {', '.join(others)}" if others else ""
        raise gymnasium.error.NameNotFound(f"{id!r} is no id in Gymnasium's registry{hint}")
    return gymnasium.spec(name)


def make_envs(factories: Sequence[Callable[[], Any]], first: int) -> list[gymnasium.Env[Any, Any]]:
    """Makes the envs of lanes ``first`` and on, and checks that they go together; closes them all if one fails."""
    envs: list[gymnasium.Env[Any, Any]] = []
    try:
        for factory in factories:
            env = factory()
            lane = first + len(envs)
            if not isinstance(env, gymnasium.Env):
                raise TypeError(f"the factory of lane {lane} made a {type(env).__name__}: expected a gymnasium.Env")
            if any(env is other for other in envs):
                raise ValueError(
                    f"the factory of lane {lane} gave an env that another lane has: it must make a new one in each call"
                )
            envs.append(env)
            for name in ("observation_space", "action_space"):
                own, expected = getattr(env, name), getattr(envs[0], name)
                if own != expected:
                    raise ValueError(f"lane {lane} has the {name} {own}, and lane {first} {expected}: lanes share one")
    except Exception as error:
        for env in envs:
            env.close()
        add_note(error, f"raised while the env of lane {first + len(envs)} was made")
        raise
    return envs


def _make_registered(
    spec: EnvSpec, max_episode_steps: int | None, wrappers: tuple[Wrapper, ...], env_kwargs: dict[str, Any]
) -> gymnasium.Env[Any, Any]:
    env = gymnasium.make(spec, max_episode_steps=max_episode_steps, disable_env_checker=True, **env_kwargs)
    return _wrapped(env, wrappers)


def _make_called(
    source: EnvFactory, max_episode_steps: int | None, wrappers: tuple[Wrapper, ...], env_kwargs: dict[str, Any]
) -> gymnasium.Env[Any, Any]:
    env = source(**env_kwargs)
    if max_episode_steps is not None:
        env = TimeLimit(env, max_episode_steps)
    return _wrapped(env, wrappers)


def _wrapped(env: gymnasium.Env[Any, Any], wrappers: tuple[Wrapper, ...]) -> gymnasium.Env[Any, Any]:
    for wrapper in wrappers:
        env = wrapper(env)
    return env


def _name_of(source: Any) -> str:
    while isinstance(source, functools.partial):
        source = source.func
    name: str = getattr(source, "__name__", type(source).__name__)
    return name
