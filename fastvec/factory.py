"""make: from an id, or whatever else makes envs, to a vector env."""

from __future__ import annotations

import copy as copying
import inspect
from collections.abc import Sequence
from typing import Any, Literal, overload

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Discrete, Tuple
from gymnasium.vector import AutoresetMode

from fastvec import registry
from fastvec._core import Batch, kernel_info, precisions
from fastvec.backends.choosing import chosen
from fastvec.backends.first_ready import FirstReadyVecEnv
from fastvec.backends.ordinary import OrdinaryVecEnv
from fastvec.backends.process import ProcessVecEnv
from fastvec.backends.serial import SerialVecEnv
from fastvec.backends.sources import EnvSource, Wrapper, factories_of, is_source, registered_spec
from fastvec.backends.starting import checked_context
from fastvec.machine import chosen_math, chosen_target, default_num_threads, usable_cores
from fastvec.rendering import RenderedVecEnv, checked_render_lanes
from fastvec.tables import Tables
from fastvec.vec_env import VecEnv

BACKENDS = ("auto", "native", "serial", "process")
# Lanes are counted in int64 in C; a count beyond this is a slip, not a wish.
MAX_LANES = 2**31 - 1
# A batch counts its steps in int64.
MAX_STEPS = 2**63 - 1


# With backend="native" type checkers know that a VecEnv comes back; for that the signature has to stand here once more.
@overload
def make(id: str, n: int = 1, *, backend: Literal["native"], **kwargs: Any) -> VecEnv: ...


@overload
def make(
    id: EnvSource,
    n: int = 1,
    *,
    backend: str = "auto",
    autoreset_mode: str | AutoresetMode = "NextStep",
    max_episode_steps: int | None = None,
    copy: bool = True,
    episode_stats: bool = False,
    num_threads: int | None = None,
    precision: str = "float64",
    render_mode: str | None = None,
    render_lanes: Sequence[int] | None = None,
    wrappers: Sequence[Wrapper] | None = None,
    num_workers: int | None = None,
    context: str | None = None,
    shared_memory: bool = True,
    step_timeout: float | None = None,
    batch_size: int | None = None,
    on_worker_error: str = "raise",
    **env_kwargs: Any,
) -> VecEnv | OrdinaryVecEnv: ...


def make(
    id: EnvSource,
    n: int = 1,
    *,
    backend: str = "auto",
    autoreset_mode: str | AutoresetMode = "NextStep",
    max_episode_steps: int | None = None,
    copy: bool = True,
    episode_stats: bool = False,
    num_threads: int | None = None,
    precision: str = "float64",
    render_mode: str | None = None,
    render_lanes: Sequence[int] | None = None,
    wrappers: Sequence[Wrapper] | None = None,
    num_workers: int | None = None,
    context: str | None = None,
    shared_memory: bool = True,
    step_timeout: float | None = None,
    batch_size: int | None = None,
    on_worker_error: str = "raise",
    **env_kwargs: Any,
) -> VecEnv | OrdinaryVecEnv:
    """Makes n lanes of an environment: natively where it has a kernel, else of ordinary Python envs.

    Args:
        id: a native id such as ``"CartPole-v1"`` (``fastvec envs`` lists them), any other id in Gymnasium's registry
            (``"module:id"`` imports the module first), an ``EnvSpec``, a class or function that makes an ordinary env,
            or a list of functions without arguments, one a lane, whose envs may differ in all but their spaces.
        n: number of lanes (``num_envs``); a list says it itself.
        backend: where lanes are stepped. ``"native"``: in C, for native ids. ``"serial"``: ordinary envs in this
            process, one after the other. ``"process"``: ordinary envs in worker processes. ``"auto"``: native for
            native ids; else one env is made and stepped for some milliseconds, which shows whether serial or process
            is faster. The result's ``backend_reason`` says what was found, and so does a line in the log ``fastvec``.
        autoreset_mode: what happens when an episode ends: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, or a
            ``gymnasium.vector.AutoresetMode``.
        max_episode_steps: steps after which an episode is truncated: None for the id's own limit, -1 for none.
        copy: True returns new arrays from every call. False returns the same arrays every time, overwritten by the next
            call: faster for very large n, for code that never keeps them.
        episode_stats: True adds ``info["episode"]`` with the returns ``r``, lengths ``l`` and seconds ``t`` of
            episodes that end in a step, and the mask ``info["_episode"]``.
        num_threads: native alone: how many threads a step may use; None for what FASTVEC_NUM_THREADS says, else 1. No
            more are used than there are cores for this process, nor so many that a thread's part is too small to pay.
            The results are the same for every number.
        precision: native alone: ``"float64"`` for Gymnasium's bits; ``"float32"``, for envs that have it, computes in
            float32, faster and nearly the same.
        render_mode: ``"rgb_array"`` for an env whose ``render()`` gives a frame for every lane, drawn by Gymnasium's
            own renderer; ``"ansi"`` for texts, where the env has them. Ordinary envs have every mode of their own.
        render_lanes: native alone: the lanes to draw, for fewer than all; needed for more than 64.
        wrappers: what each ordinary env is put in, the first innermost; a native id then goes to the serial backend,
            with a warning.
        num_workers: process alone: the number of worker processes, each with a run of lanes; None for the cores that
            this process may use. There are no more than lanes.
        context: process alone: how workers are started, ``"forkserver"`` (the default where it exists), ``"spawn"`` or
            ``"fork"``.
        shared_memory: process alone: False sends observations and actions through pipes, which is slower.
        step_timeout: process alone: seconds after which a worker that has not finished a call is killed, and the call
            raises; None for no limit.
        on_worker_error: process alone: ``"raise"`` a WorkerError, or ``"restart"`` the worker with new envs, whose
            lanes are reported as truncated, with ``info["worker_restarted"]``.
        batch_size: process alone, for ``send`` and ``recv``, :class:`fastvec.backends.first_ready.FirstReadyVecEnv`:
            how many lanes a batch has, those that are ready first; None for an env that steps all lanes together.
        **env_kwargs: keywords of the env's constructor, for example ``sutton_barto_reward=True``.

    Returns:
        The env, not yet reset: a :class:`fastvec.VecEnv` of native lanes, else an ``OrdinaryVecEnv``. Its ``backend``
        says where lanes are stepped.

    Raises:
        gymnasium.error.NameNotFound: for an id that nobody knows; the message has the closest native ids.
        TypeError: for a keyword that the env's constructor does not take, and for arguments of the wrong type.
        ValueError: for arguments out of range.
        gymnasium.error.DependencyNotInstalled: for ``render_mode="rgb_array"`` without pygame.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}: expected one of {', '.join(map(repr, BACKENDS))}")
    native_only: dict[str, Any] = {"num_threads": num_threads, "precision": precision, "render_lanes": render_lanes}
    process_only: dict[str, Any] = {
        "num_workers": num_workers,
        "context": context,
        "shared_memory": shared_memory,
        "step_timeout": step_timeout,
        "batch_size": batch_size,
        "on_worker_error": on_worker_error,
    }
    if _goes_native(id, backend, wrappers):
        _refuse_others("process", **process_only)
        return make_native(
            id,  # type: ignore[arg-type]
            n,
            autoreset_mode=autoreset_mode,
            max_episode_steps=max_episode_steps,
            copy=copy,
            episode_stats=episode_stats,
            render_mode=render_mode,
            **native_only,
            **env_kwargs,
        )
    _refuse_others("native", **native_only)
    n = checked_count("num_envs (n)", n)
    mode = checked_mode(autoreset_mode)
    if render_mode is not None:
        env_kwargs["render_mode"] = render_mode
    if isinstance(id, str) and id.removeprefix("fastvec/") in registry.NATIVE_ENVS:
        id = gymnasium.spec(registry.find(id).gymnasium_id)
    factories, label = factories_of(id, n, checked_limit(max_episode_steps), wrappers or (), env_kwargs)
    num_workers = None if num_workers is None else checked_count("num_workers", num_workers)
    checked_context(context)
    step_timeout = _checked_timeout(step_timeout)
    reason = "it was asked for"
    if backend == "auto" and batch_size is not None:
        backend = "process"
    if backend == "auto":
        choice = chosen(factories, label, usable_cores(), num_workers)
        backend, reason = choice.backend, choice.reason
        num_workers = choice.num_workers if num_workers is None else num_workers
    else:
        _refuse_others("process", **(process_only if backend == "serial" else {}))
    vec_env: OrdinaryVecEnv
    if backend == "process":
        options: dict[str, Any] = {
            "copy": copy,
            "episode_stats": episode_stats,
            "num_workers": num_workers,
            "context": context,
            "shared_memory": shared_memory,
            "step_timeout": step_timeout,
            "on_worker_error": on_worker_error,
        }
        if batch_size is None:
            vec_env = ProcessVecEnv(factories, mode, label, **options)
        else:
            size = checked_count("batch_size", batch_size)
            vec_env = FirstReadyVecEnv(factories, mode, label, batch_size=size, **options)
    else:
        vec_env = SerialVecEnv(factories, mode, label, copy=copy, episode_stats=episode_stats)
    vec_env.backend_reason = reason
    return vec_env


def _refuse_others(backend: str, **options: Any) -> None:
    """Refuses options that only another backend has."""
    for name, value in options.items():
        if value != inspect.signature(make).parameters[name].default:
            raise ValueError(f"{name} is {value!r}: the {backend} backend alone has that, and this is another")


def _checked_timeout(step_timeout: Any) -> float | None:
    """The argument step_timeout: None or seconds above zero."""
    if step_timeout is None:
        return None
    if isinstance(step_timeout, bool) or not isinstance(step_timeout, (int, float)):
        raise TypeError(f"step_timeout is {step_timeout!r}, {type(step_timeout).__name__}: expected seconds or None")
    if not step_timeout > 0:
        raise ValueError(f"step_timeout is {step_timeout}: expected seconds above zero, or None for no limit")
    return float(step_timeout)


def _goes_native(source: Any, backend: str, wrappers: Sequence[Wrapper] | None) -> bool:
    """Whether the lanes are native; raises for what neither they nor ordinary envs can be made of."""
    _refuse_what_makes_no_env(source)
    is_native = isinstance(source, str) and source.removeprefix("fastvec/") in registry.NATIVE_ENVS
    if backend == "native":
        if not isinstance(source, str):
            raise ValueError(f"backend is 'native', and {source!r} is no id: an id has native lanes, or none has")
        registry.find(source)
        if wrappers:
            raise ValueError("wrappers need ordinary envs, and backend is 'native': leave one of the two out")
        return True
    if is_native and backend == "auto":
        if not wrappers:
            return True
        gymnasium.logger.warn(
            f"make: wrappers need ordinary envs, so that {source} goes to the serial backend; vector wrappers around "
            f"the whole env leave it native, and backend='serial' leaves this warning out"
        )
    if isinstance(source, str) and not is_native:
        try:
            registered_spec(source)
        except gymnasium.error.NameNotFound as error:
            try:
                registry.find(source)
            except gymnasium.error.NameNotFound as known:
                raise gymnasium.error.NameNotFound(f"{error}; {known}") from None
    return False


def _refuse_what_makes_no_env(source: Any) -> None:
    """Refuses what was meant to make envs, and does not."""
    if isinstance(source, gymnasium.Env):
        raise TypeError(
            f"the env to make is {source!r}, an env itself: give what makes it, its class or a function, which is "
            f"called once for each lane"
        )
    if not isinstance(source, (str, EnvSpec)) and not is_source(source):
        raise TypeError(
            f"the env to make is {source!r}, {type(source).__name__}: expected an id, an EnvSpec, a class or function "
            f"that makes an env, or a list or tuple of such functions with one in it at least"
        )


def make_native(
    id: str,
    n: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = "NextStep",
    max_episode_steps: int | None = None,
    copy: bool = True,
    episode_stats: bool = False,
    num_threads: int | None = None,
    precision: str = "float64",
    render_mode: str | None = None,
    render_lanes: Sequence[int] | None = None,
    **env_kwargs: Any,
) -> VecEnv:
    """Makes n native lanes, as :func:`make` does with ``backend="native"``; see there."""
    native = registry.find(id)
    n = checked_count("num_envs (n)", n)
    mode = checked_mode(autoreset_mode)
    max_episode_steps = checked_limit(max_episode_steps)
    spec = gymnasium.spec(native.gymnasium_id)
    _check_keywords(native, spec, env_kwargs)
    lanes = checked_render_lanes(native, spec, render_mode, render_lanes, n)
    if render_mode is not None:
        env_kwargs["render_mode"] = render_mode
    env = gymnasium.make(spec, max_episode_steps=max_episode_steps, disable_env_checker=True, **env_kwargs)
    limit = spec.max_episode_steps if max_episode_steps is None else max_episode_steps
    vec_env = assemble(
        native,
        env,
        native.tables(env.unwrapped),
        n,
        mode,
        limit,
        copy=copy,
        episode_stats=episode_stats,
        num_threads=num_threads,
        precision=precision,
        render_lanes=lanes,
    )
    options = {
        "max_episode_steps": max_episode_steps,
        "copy": copy,
        "episode_stats": episode_stats,
        "num_threads": num_threads,
        "precision": precision,
        "render_lanes": None if render_lanes is None else lanes,
    }
    vec_env.spec = _vector_spec(native, spec, n, mode, options, env_kwargs)
    env.close()
    return vec_env


def assemble(
    native: registry.NativeEnv,
    env: gymnasium.Env[Any, Any],
    tables: Tables,
    n: int,
    mode: AutoresetMode,
    limit: int | None,
    *,
    copy: bool,
    episode_stats: bool,
    num_threads: int | None,
    precision: str,
    render_lanes: tuple[int, ...] | None = None,
) -> VecEnv:
    """Makes a VecEnv of what has been checked already; num_threads and precision are checked here.

    Args:
        native: the kernel, and how its parameters and ranges follow from ``env``.
        env: one ordinary env, with the spaces, metadata and attributes of a lane.
        tables: what all lanes of the kernel read.
        n: number of lanes.
        mode: what happens when an episode ends.
        limit: steps after which an episode is truncated; None or -1 for none.
        copy: as in :func:`make`, and so are the others.
        render_lanes: the lanes to draw, if any.
    """
    _, parameter_names, _, _ = kernel_info(native.kernel)
    observation_space, action_space = env.observation_space, env.action_space
    spaces = observation_space.spaces if isinstance(observation_space, Tuple) else (observation_space,)
    actions = (int(action_space.start), int(action_space.n)) if isinstance(action_space, Discrete) else (0, 0)
    target = chosen_target()
    batch = Batch(
        target,
        chosen_math(target),
        native.kernel,
        _checked_precision(native, precision),
        n,
        tuple(parameter.read(env.unwrapped) for parameter in map(native.parameter, parameter_names)),
        tables,
        dict(native.state_ranges(env.unwrapped)),
        tuple(space.shape or () for space in spaces),
        *actions,
        action_space.shape or (),
        None if limit == -1 else limit,
        mode.value,
        bool(copy),
        bool(episode_stats),
        _checked_threads(num_threads),
        native.id,
    )
    if render_lanes is not None:
        return RenderedVecEnv(batch, native, env, n, mode, render_lanes)
    return VecEnv(batch, native, env, n, mode)


def checked_count(name: str, value: Any, most: int = MAX_LANES) -> int:
    """A count as a Python int: an int or a NumPy integer above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {value!r}, {type(value).__name__}: expected an int from 1")
    if not 1 <= value <= most:
        raise ValueError(f"{name} is {value}: expected an int from 1 to {most}")
    return int(value)


def checked_limit(max_episode_steps: Any) -> int | None:
    """The argument max_episode_steps: None, -1 or an int above zero."""
    if max_episode_steps is None:
        return None
    if isinstance(max_episode_steps, (int, np.integer)) and max_episode_steps == -1:
        return -1
    return checked_count("max_episode_steps", max_episode_steps, MAX_STEPS)


def _checked_threads(num_threads: int | None) -> int:
    """The threads that a step may use: what was asked for, but no more than there are cores for this process."""
    asked = default_num_threads() if num_threads is None else checked_count("num_threads", num_threads)
    return min(asked, usable_cores())


def _checked_precision(native: registry.NativeEnv, precision: str) -> str:
    offered = precisions(native.kernel)
    if precision not in offered:
        raise ValueError(f"precision is {precision!r}: {native.id} has {' and '.join(map(repr, offered))}")
    return precision


def checked_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ValueError(f"autoreset_mode is {mode!r}: expected one of {values}") from None


def _check_keywords(native: registry.NativeEnv, spec: EnvSpec, env_kwargs: dict[str, Any]) -> None:
    """Refuses keywords that the env's constructor does not take."""
    known = {
        name: spec.kwargs.get(name, parameter.default)
        for name, parameter in inspect.signature(registry.ordinary_class(native)).parameters.items()
        if name != "render_mode"
    }
    for name in env_kwargs:
        if name not in known:
            defaults = ", ".join(f"{key}={value!r}" for key, value in known.items()) or "none"
            raise TypeError(
                f"{native.id} takes no keyword {name!r}; its own are {defaults}, beside autoreset_mode, "
                f"max_episode_steps, copy, episode_stats, num_threads, precision, render_mode and render_lanes"
            )


def _vector_spec(
    native: registry.NativeEnv,
    spec: EnvSpec,
    n: int,
    mode: AutoresetMode,
    options: dict[str, Any],
    env_kwargs: dict[str, Any],
) -> EnvSpec:
    """A spec from which ``gymnasium.make_vec`` makes this env again."""
    defaults = inspect.signature(make).parameters
    kwargs = {name: value for name, value in options.items() if value != defaults[name].default}
    if mode.value != defaults["autoreset_mode"].default:
        kwargs["autoreset_mode"] = mode.value
    vector_spec = copying.deepcopy(spec)
    vector_spec.kwargs = {**spec.kwargs, **env_kwargs, **kwargs, "vectorization_mode": "vector_entry_point"}
    if n != 1:
        vector_spec.kwargs["num_envs"] = n
    vector_spec.vector_entry_point = f"fastvec.gymnasium_registry:{native.id}"
    return vector_spec
