"""Stable-Baselines3 on native lanes: ``FastVecEnv``, a ``VecEnv`` of its kind, and ``make_vec_env`` with its signature.

Needs stable-baselines3: ``pip install "fastvec[sb3]"``. What is returned equals what SB3's ``DummyVecEnv`` returns over
envs in ``Monitor``, for the same seeds and actions, but for what docs/sb3.md lists; the loop over them is gone."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common import env_util
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv as SB3VecEnv

from fastvec import registry
from fastvec._core import kernel_info
from fastvec.factory import assemble, checked_count, make_native
from fastvec.rendering import MAX_FRAMES, has_pygame, offered_modes
from fastvec.vec_env import RENDER_MODES, VecEnv

# Wrappers that change nothing of what a lane returns, or that lanes do natively.
TRANSPARENT_WRAPPERS = (Monitor, OrderEnforcing, PassiveEnvChecker, TimeLimit)
# What an info has beside the env's own.
STEP_NEWS = ("episode", "final_info", "final_obs")
# The only methods that ordinary envs have and native lanes offer.
METHODS = ("get_wrapper_attr", "has_wrapper_attr", "render", "set_wrapper_attr")

_NEEDS_ORDINARY_ENVS = (
    "that needs ordinary envs, and these lanes are native; wrap the whole env instead (VecMonitor writes files, too), "
    "or pass vec_env_cls=DummyVecEnv"
)

EnvFactory = Callable[[], gymnasium.Env[Any, Any]]


class FastVecEnv(SB3VecEnv):
    """Native lanes as a Stable-Baselines3 ``VecEnv``.

    Rewards are float32 and infos a list of dicts, as ``DummyVecEnv`` gives them: ``"TimeLimit.truncated"`` always, and
    ``"terminal_observation"`` and Monitor's ``"episode"`` in rows that end an episode. Dicts of lanes without such news
    are the same objects in the next step.

    A Tuple of Discrete spaces (Blackjack), which SB3's algorithms do not take, becomes a MultiDiscrete space.

    Attributes:
        env: the fastvec env, in SAME_STEP mode.
    """

    def __init__(self, env: VecEnv | Sequence[EnvFactory], **make_kwargs: Any) -> None:
        """Wraps an env, or makes one.

        Args:
            env: from ``fastvec.make(..., autoreset_mode="SameStep", episode_stats=True)``. Or factories of ordinary
                envs, as SB3's ``make_vec_env`` passes them to a ``vec_env_cls``: they are called, the native env is
                recognised by the class, and made with the numbers, tables and limit that they have in common.
            **make_kwargs: for factories, keywords of ``fastvec.make`` such as ``num_threads``.

        Raises:
            ValueError: for an env in another mode or without statistics, and for factories of anything that has no
                native lanes: other envs and wrappers, monitor files, envs that differ.
            TypeError: for anything else.
        """
        if not isinstance(env, VecEnv):
            env = _lanes_of_factories(env, make_kwargs)
        elif make_kwargs:
            raise TypeError(f"FastVecEnv takes {', '.join(make_kwargs)} with factories only: give it to fastvec.make")
        if env.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"the env has autoreset_mode={env.metadata['autoreset_mode'].value!r}, and Stable-Baselines3 resets in "
                f"the step that ends an episode: make it with autoreset_mode='SameStep'"
            )
        if not env.episode_stats:
            raise ValueError("the env keeps no statistics, which stand in for Monitor: make it with episode_stats=True")
        if env.reuses_arrays:
            raise ValueError("the env was made with copy=False, and Stable-Baselines3 keeps the last observation")
        self.env = env
        self._began = time.time()
        self._actions: npt.NDArray[Any] | None = None
        space = env.single_observation_space
        self._is_tuple, self._is_discrete = isinstance(space, Tuple), isinstance(space, Discrete)
        super().__init__(
            env.num_envs, _multi_discrete(space) if isinstance(space, Tuple) else space, env.single_action_space
        )
        self.metadata = env.get_attr("metadata")[0]
        self._infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(env.num_envs)]
        self._filled: list[int] = []  # lanes whose dict has news of the last step
        self._was_reset = False

    def reset(self) -> Any:
        """Begins all episodes, with the seeds and options that ``seed`` and ``set_options`` left; they hold once.

        Returns:
            The observation, (num_envs, ...). Infos are in ``reset_infos``.
        """
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        if len(self._options) != self.num_envs:
            raise ValueError(f"set_options got {len(self._options)} dicts for {self.num_envs} lanes; nothing was reset")
        groups: list[tuple[dict[str, Any], list[int]]] = []  # the different options, and the lanes that have them
        for lane, options in enumerate(self._options):
            for known, lanes in groups:
                if _are_equal(known, options):
                    lanes.append(lane)
                    break
            else:
                groups.append((options, [lane]))
        if len(groups) == 1:
            obs, info = self.env.reset(seed=seeds, options=groups[0][0] or None)
        else:
            obs, info = self._reset_by_groups(seeds, groups)
        self._was_reset = True
        self.reset_infos = _rows(info, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return self._stacked(obs)

    def _reset_by_groups(
        self, seeds: list[int | None] | None, groups: list[tuple[dict[str, Any], list[int]]]
    ) -> tuple[Any, dict[str, Any]]:
        """Every lane is reset once, by a mask, so that its stream moves as if it were reset alone.

        All options are checked before the first lane moves.
        """
        self.env.check_options([options for options, _ in groups])
        if not self._was_reset:  # masks come after a first reset of all; seeds are then given again
            self.env.reset(seed=seeds)
        obs: Any = None
        infos: dict[str, Any] = {}
        for options, lanes in groups:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[lanes] = True
            obs, info = self.env.reset(seed=seeds, options={**options, "reset_mask": mask})
            for name, values in info.items():
                infos.setdefault(name, np.zeros_like(values))[mask] = values[mask]
        return obs, infos

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Takes the actions, (num_envs, ...), of the step that ``step_wait`` makes."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Steps all lanes.

        Returns:
            (observation, rewards float32, dones bool, infos). Rows that end an episode show the next one's first
            observation, and their infos the last of the old one.
        """
        if self._actions is None:
            raise RuntimeError("step_wait: there are no actions; call step_async first, or step")
        actions, self._actions = self._actions, None
        obs, rewards, terminations, truncations, info = self.env.step(actions)
        dones = terminations | truncations
        for lane in self._filled:
            self._infos[lane] = {"TimeLimit.truncated": False}
        self._filled = []
        if info:
            self._fill(info, dones, truncations & ~terminations)
        return self._stacked(obs), rewards.astype(np.float32), dones, self._infos.copy()

    def _fill(self, info: dict[str, Any], dones: npt.NDArray[np.bool_], truncations: npt.NDArray[np.bool_]) -> None:
        """Puts a step's news into new dicts of the lanes that have them."""
        ended = np.flatnonzero(dones).tolist()
        own = {name: values for name, values in info.items() if name not in STEP_NEWS and not name.startswith("_")}
        self._filled = ended
        if own:  # the env's infos, of every lane in every step; those of ended lanes tell of their new episodes
            self._filled = list(range(self.num_envs))
            self._infos = [{**row, "TimeLimit.truncated": False} for row in _rows(own, self.num_envs)]
        if not ended:
            return
        seconds = round(time.time() - self._began, 6)
        last = self._stacked(info["final_obs"])
        last_rows = last[ended].tolist() if self._is_discrete else list(last[ended])
        returns, lengths = (info["episode"][name][ended].tolist() for name in ("r", "l"))
        last_infos = _rows({name: info["final_info"][name][ended] for name in own}, len(ended))
        first_infos = _rows({name: values[ended] for name, values in own.items()}, len(ended))
        for place, (lane, truncated) in enumerate(zip(ended, truncations[ended].tolist(), strict=True)):
            self._infos[lane] = {
                **last_infos[place],
                "TimeLimit.truncated": truncated,
                "terminal_observation": last_rows[place],
                "episode": {"r": round(returns[place], 6), "l": lengths[place], "t": seconds},
            }
            self.reset_infos[lane] = first_infos[place]

    def _stacked(self, obs: Any) -> npt.NDArray[Any]:
        """The observation as SB3 takes it: the arrays of a tuple become columns."""
        stacked: npt.NDArray[Any] = np.stack(obs, axis=-1) if self._is_tuple else obs
        return stacked

    def close(self) -> None:
        """Closes the env; again is no error."""
        self.env.close()

    def __repr__(self) -> str:
        """As the env's, under this class's name."""
        return f"{type(self).__name__}({self.env.label}, num_envs={self.num_envs})"

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of these lanes, or of all; see :meth:`fastvec.VecEnv.get_attr`."""
        values = self.env.get_attr(attr_name)
        return [values[lane] for lane in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Sets an attribute in these lanes, or in all, to one value; see :meth:`fastvec.VecEnv.set_attr`."""
        values = list(self.env.get_attr(attr_name))
        for lane in self._get_indices(indices):
            values[lane] = value
        self.env.set_attr(attr_name, values)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of these lanes, or of all: ``render``, or one of Gymnasium's wrapper attributes'.

        Raises:
            AttributeError: for any other; the message lists these.
        """
        lanes = list(self._get_indices(indices))
        if method_name == "render":
            frames = dict(zip(getattr(self.env, "render_lanes", ()), self.env.render(), strict=False))
            return [frames.get(lane) for lane in lanes]
        if method_name == "get_wrapper_attr":
            (name,) = _named(("name",), method_args, method_kwargs)
            return self.get_attr(name, lanes)
        if method_name == "has_wrapper_attr":
            return [self.has_attr(*_named(("name",), method_args, method_kwargs))] * len(lanes)
        if method_name == "set_wrapper_attr":
            name, value, force = _named(("name", "value", "force"), method_args, {"force": True, **method_kwargs})
            if not force and not self.has_attr(name):
                return [False] * len(lanes)
            self.set_attr(name, value, lanes)
            return [True] * len(lanes)
        raise AttributeError(f"env_method: native lanes have no method {method_name!r}; they have {', '.join(METHODS)}")

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """True for ``Monitor`` alone, whose statistics lanes keep themselves."""
        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """A frame of each lane that is drawn, with ``render_mode="rgb_array"``."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"the env was made with render_mode={self.render_mode!r}: make it with 'rgb_array' for images",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return list(self.env.render())


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
    """As ``stable_baselines3.common.env_util.make_vec_env``, with native lanes.

    Args:
        env_id: a native id, a class, or a callable that makes an env which is native.
        n_envs: number of lanes.
        seed: lane i begins with seed + i.
        start_index: as in SB3: counts monitor files alone, and so has no effect here.
        monitor_dir, wrapper_class, monitor_kwargs, wrapper_kwargs: need ordinary envs; native lanes refuse them.
        env_kwargs: keywords of the env's constructor. An id is made with ``render_mode="rgb_array"`` by default, for up
            to 64 of its lanes, where it has that and pygame is installed.
        vec_env_cls: ``FastVecEnv`` by default; any other of SB3's gets ordinary envs, from SB3's own function.
        vec_env_kwargs: for ``FastVecEnv`` keywords of ``fastvec.make``, such as ``num_threads`` and ``precision``.

    Raises:
        ValueError: for what has no native lanes; the message says what does.
    """
    if vec_env_cls is None:
        vec_env_cls = FastVecEnv
    elif not issubclass(vec_env_cls, FastVecEnv):
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
    for name, value in (("monitor_dir", monitor_dir), ("wrapper_class", wrapper_class)):
        if value is not None:
            raise ValueError(f"{name} is {value!r}: {_NEEDS_ORDINARY_ENVS}")
    if set(monitor_kwargs or ()) - {"allow_early_resets"}:
        raise ValueError(f"monitor_kwargs are {monitor_kwargs!r}: {_NEEDS_ORDINARY_ENVS}")
    env_kwargs, make_kwargs = env_kwargs or {}, vec_env_kwargs or {}
    if isinstance(env_id, str):
        env = _make_drawn(env_id, n_envs, {**env_kwargs, **make_kwargs})
    else:
        env = _lanes_of_factories([lambda: env_id(**env_kwargs)] * checked_count("n_envs", n_envs), make_kwargs)
    venv = vec_env_cls(env)
    venv.seed(seed)
    return venv


def _make_drawn(env_id: str, n: int, kwargs: dict[str, Any]) -> VecEnv:
    """The native env, with frames unless something else is asked for, if it can have them."""
    kwargs = {"autoreset_mode": "SameStep", "episode_stats": True, **kwargs}
    lanes = {"render_lanes": range(MAX_FRAMES)} if checked_count("n_envs", n) > MAX_FRAMES else {}
    if kwargs.get("render_mode") is not None:
        return make_native(env_id, n, **{**lanes, **kwargs})
    if "render_mode" not in kwargs and "rgb_array" in offered_modes(registry.find(env_id)) and has_pygame():
        return make_native(env_id, n, render_mode="rgb_array", **{**lanes, **kwargs})
    return make_native(env_id, n, **kwargs)


def _lanes_of_factories(factories: Any, make_kwargs: dict[str, Any]) -> VecEnv:
    """The lanes that are what the ordinary envs of these factories would be."""
    try:
        factories = list(factories)
    except TypeError:
        factories = []
    if not factories or not all(callable(factory) for factory in factories):
        raise TypeError("FastVecEnv takes an env of fastvec.make, or a list of functions that make ordinary envs")
    first = factories[0]()
    if not _are_alike(factories):
        numbers = _numbers_of(first)
        for place, factory in enumerate(factories[1:], 1):
            other = factory()
            if _numbers_of(other) != numbers:
                raise ValueError(
                    f"factory {place} makes another env than factory 0: lanes are alike, but for what set_attr gives "
                    f"each of them; use DummyVecEnv for envs that differ"
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
        raise TypeError(f"FastVecEnv got {', '.join(make_kwargs)}: with factories it takes {', '.join(defaults)}")
    if env.unwrapped.render_mode not in (None, *RENDER_MODES):
        raise ValueError(f"render_mode is {env.unwrapped.render_mode!r}: lanes draw {', '.join(RENDER_MODES)}")
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
        ValueError: if it is none; the message says what to use.
    """
    limit = None
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if not isinstance(layer, TRANSPARENT_WRAPPERS):
            raise ValueError(f"the env is wrapped in {type(layer).__name__}: {_NEEDS_ORDINARY_ENVS}")
        if isinstance(layer, Monitor) and (layer.results_writer is not None or layer.info_keywords):
            raise ValueError(f"the env's Monitor keeps more than statistics: {_NEEDS_ORDINARY_ENVS}")
        if isinstance(layer, TimeLimit):
            limit = layer._max_episode_steps if limit is None else min(limit, layer._max_episode_steps)
        layer = layer.env
    of_class = [native for native in registry.NATIVE_ENVS.values() if registry.ordinary_class(native) is type(layer)]
    if not of_class:
        name = type(layer).__name__ if layer.spec is None else layer.spec.id
        raise ValueError(
            f"{name} has no native lanes; there are {', '.join(registry.NATIVE_ENVS)}. Use DummyVecEnv or SubprocVecEnv"
        )
    own = None if layer.spec is None else layer.spec.id.removeprefix("fastvec/")
    return next((native for native in of_class if native.id == own), of_class[0]), limit


def _multi_discrete(space: Tuple[Any]) -> MultiDiscrete:
    """The space of a tuple's numbers as one array."""
    counts = [int(part.n) for part in space.spaces if isinstance(part, Discrete) and part.start == 0]
    if len(counts) < len(space.spaces):
        raise ValueError(f"the observation space {space} is none that Stable-Baselines3 takes")
    return MultiDiscrete(counts)


def _are_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two lanes have the same options; of arrays, which answer with arrays, it is enough to take them apart."""
    try:
        return one == other
    except ValueError:
        return False


def _named(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Arguments in the order of their names, however they were passed.

    Raises:
        TypeError: for one that is missing, or too many.
    """
    given = {**kwargs, **dict(zip(names, args, strict=False))}
    if len(args) > len(names) or set(given) != set(names):
        raise TypeError(f"env_method: got the arguments {args} and {kwargs}, expected {', '.join(names)}")
    return [given[name] for name in names]


def _rows(info: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """A dict for each lane of what an env's info has for all of them."""
    names = [name for name in info if not name.startswith("_")]
    columns = [info[name].tolist() if info[name].ndim == 1 else list(info[name]) for name in names]
    return (
        [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if names else [{} for _ in range(n)]
    )
