"""FastVecEnv: an env of fastvec as a ``VecEnv`` of Stable-Baselines3."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv as SB3VecEnv

from fastvec.backends.ordinary import OrdinaryVecEnv
from fastvec.factory import make
from fastvec.sb3.native_lanes import NativeLanes
from fastvec.sb3.ordinary_lanes import OrdinaryLanes
from fastvec.sb3.recognising import EnvFactory, NotNative, lanes_of_factories
from fastvec.vec_env import VecEnv


class FastVecEnv(SB3VecEnv):
    """An env of fastvec, native or of ordinary envs, as a Stable-Baselines3 ``VecEnv``.

    Rewards are float32 and infos a list of dicts, as ``DummyVecEnv`` gives them: ``"TimeLimit.truncated"`` always, and
    ``"terminal_observation"`` and Monitor's ``"episode"`` in rows that end an episode. Dicts of native lanes without
    such news are the same objects in the next step.

    A Tuple of Discrete spaces (Blackjack), which SB3's algorithms do not take, becomes a MultiDiscrete space.

    Attributes:
        env: the fastvec env, in SAME_STEP mode.
    """

    def __init__(self, env: VecEnv | OrdinaryVecEnv | Sequence[EnvFactory], **make_kwargs: Any) -> None:
        """Wraps an env, or makes one.

        Args:
            env: from ``fastvec.make(..., autoreset_mode="SameStep", episode_stats=True)``; ordinary envs in Monitor
                need no episode_stats. Or factories of ordinary envs, as SB3's ``make_vec_env`` passes them to a
                ``vec_env_cls``: they are called, and where that shows that all make the same native env, it is made
                with the numbers, tables and limit that they have in common. Else they go to ``fastvec.make``.
            **make_kwargs: for factories, keywords of ``fastvec.make`` such as ``backend``, ``num_threads`` or
                ``num_workers``.

        Raises:
            ValueError: for an env in another mode, for native lanes without statistics, and with ``backend="native"``
                for factories of anything that has no native lanes: other envs and wrappers, monitor files, envs that
                differ.
            TypeError: for anything else.
        """
        if not isinstance(env, (VecEnv, OrdinaryVecEnv)):
            env = _env_of_factories(env, make_kwargs)
        elif make_kwargs:
            raise TypeError(f"FastVecEnv takes {', '.join(make_kwargs)} with factories only: give it to fastvec.make")
        if env.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"the env has autoreset_mode={env.metadata['autoreset_mode'].value!r}, and Stable-Baselines3 resets in "
                f"the step that ends an episode: make it with autoreset_mode='SameStep'"
            )
        if isinstance(env, VecEnv) and not env.episode_stats:
            raise ValueError("the env keeps no statistics, which stand in for Monitor: make it with episode_stats=True")
        if env.reuses_arrays:
            raise ValueError("the env was made with copy=False, and Stable-Baselines3 keeps the last observation")
        self.env = env
        self._lanes = NativeLanes(env) if isinstance(env, VecEnv) else OrdinaryLanes(env)
        self._actions: npt.NDArray[Any] | None = None
        space = _multi_discrete(env.single_observation_space)
        self._is_tuple = space is not None
        super().__init__(env.num_envs, space or env.single_observation_space, env.single_action_space)
        self.metadata = env.get_attr("metadata")[0]
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
            infos = self._lanes.reset_infos(info)
        else:
            obs, infos = self._reset_by_groups(seeds, groups)
        self._was_reset = True
        self.reset_infos = infos
        self._reset_seeds()
        self._reset_options()
        return self._stacked(obs)

    def _reset_by_groups(
        self, seeds: list[int | None] | None, groups: list[tuple[dict[str, Any], list[int]]]
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Every lane is reset once, by a mask, so that its stream moves as if it were reset alone.

        All options are checked before the first lane moves.
        """
        self._lanes.check_options([options for options, _ in groups])
        if not self._was_reset:  # masks come after a first reset of all; seeds are then given again
            self.env.reset(seed=seeds)
        obs: Any = None
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for options, lanes in groups:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[lanes] = True
            obs, info = self.env.reset(seed=seeds, options={**options, "reset_mask": mask})
            rows = self._lanes.reset_infos(info)
            for lane in lanes:
                infos[lane] = rows[lane]
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
        last = self._stacked(info["final_obs"]) if "final_obs" in info else None
        infos, firsts = self._lanes.step_infos(info, dones, truncations & ~terminations, last)
        for lane, first in firsts.items():
            self.reset_infos[lane] = first
        return self._stacked(obs), rewards.astype(np.float32), dones, infos

    def _stacked(self, obs: Any) -> Any:
        """The observation as SB3 takes it: the arrays of a tuple become columns."""
        return np.stack(obs, axis=-1) if self._is_tuple else obs

    def close(self) -> None:
        """Closes the env; again is no error."""
        self.env.close()

    def __repr__(self) -> str:
        """As the env's, under this class's name."""
        return f"{type(self).__name__}({self.env.label}, num_envs={self.num_envs})"

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of these lanes, or of all; see ``get_attr`` of the env."""
        values = self.env.get_attr(attr_name)
        return [values[lane] for lane in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Sets an attribute in these lanes, or in all, to one value; see ``set_attr`` of the env."""
        self._lanes.set_attr(attr_name, value, self._chosen(indices))

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of these lanes, or of all.

        Raises:
            AttributeError: for one that the envs do not have. Native lanes have ``render`` and Gymnasium's wrapper
                attributes' alone.
        """
        return self._lanes.call(method_name, method_args, method_kwargs, self._chosen(indices))

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """Whether these lanes, or all, are wrapped in this; in ``Monitor`` also where lanes keep its statistics."""
        are_wrapped = self._lanes.are_wrapped(wrapper_class)
        return [are_wrapped[lane] for lane in self._chosen(indices)]

    def _chosen(self, indices: int | Iterable[int] | None) -> list[int]:
        """The lanes that are meant: as with a list, -1 is the last."""
        lanes = range(self.num_envs)
        return [lanes[place] for place in self._get_indices(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """A frame of each lane that is drawn, with ``render_mode="rgb_array"``."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"the env was made with render_mode={self.render_mode!r}: make it with 'rgb_array' for images",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return list(self._lanes.images().values())


def _env_of_factories(factories: Any, make_kwargs: dict[str, Any]) -> VecEnv | OrdinaryVecEnv:
    """Native lanes of what these factories make where there are such, else their envs."""
    try:
        factories = list(factories)
    except TypeError:
        factories = []
    if not factories or not all(callable(factory) for factory in factories):
        raise TypeError("FastVecEnv takes an env of fastvec.make, or a list of functions that make ordinary envs")
    backend = make_kwargs.get("backend", "auto")
    if backend in ("auto", "native"):
        options = {name: value for name, value in make_kwargs.items() if name != "backend"}
        try:
            return lanes_of_factories(factories, options)
        except NotNative as reason:
            if backend == "native":
                raise
            if reason.is_close:
                gymnasium.logger.warn(f"FastVecEnv: no native lanes, since {reason}")
    env: VecEnv | OrdinaryVecEnv = make(factories, autoreset_mode="SameStep", **make_kwargs)
    return env


def _multi_discrete(space: gymnasium.Space[Any]) -> MultiDiscrete | None:
    """The space of a tuple's numbers as one array; None where it is no tuple of such."""
    if not isinstance(space, Tuple) or not all(isinstance(part, Discrete) and part.start == 0 for part in space.spaces):
        return None
    return MultiDiscrete([int(part.n) for part in space.spaces if isinstance(part, Discrete)])


def _are_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two lanes have the same options; of arrays, which answer with arrays, it is enough to take them apart."""
    try:
        return one == other
    except ValueError:
        return False
