"""What FastVecEnv asks of native lanes in other words than of ordinary envs: infos a lane, methods, wrappers."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor

from fastvec.sb3.rows import episode_rows, observation_rows
from fastvec.vec_env import VecEnv

# What an info has beside the env's own.
STEP_NEWS = ("episode", "final_info", "final_obs")
# The only methods that ordinary envs have and native lanes offer.
METHODS = ("get_wrapper_attr", "has_wrapper_attr", "render", "set_wrapper_attr")


class NativeLanes:
    """The lanes of a :class:`fastvec.VecEnv`."""

    def __init__(self, env: VecEnv) -> None:
        self.env = env
        self._began = time.time()
        self._infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(env.num_envs)]
        self._filled: list[int] = []  # lanes whose dict has news of the last step

    def check_options(self, options: list[dict[str, Any]]) -> None:
        """Raises for options of a reset that are none."""
        self.env.check_options(options)

    def reset_infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of a reset, a dict a lane."""
        return _rows(info, self.env.num_envs)

    def step_infos(
        self, info: dict[str, Any], dones: npt.NDArray[np.bool_], truncations: npt.NDArray[np.bool_], last: Any
    ) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
        """The infos of a step.

        Args:
            info: what the env returned.
            dones: the lanes whose episode ended.
            truncations: of these, the ones that were only cut off.
            last: the last observations of episodes that ended, as SB3 takes them; None if there are none.

        Returns:
            (a dict a lane, the reset infos of lanes whose episode ended). Dicts of lanes without news are the same
            objects as in the step before.
        """
        for lane in self._filled:
            self._infos[lane] = {"TimeLimit.truncated": False}
        self._filled = []
        firsts = self._fill(info, dones, truncations, last) if info else {}
        return self._infos.copy(), firsts

    def _fill(
        self, info: dict[str, Any], dones: npt.NDArray[np.bool_], truncations: npt.NDArray[np.bool_], last: Any
    ) -> dict[int, dict[str, Any]]:
        """Puts a step's news into new dicts of the lanes that have them."""
        ended = np.flatnonzero(dones).tolist()
        own = {name: values for name, values in info.items() if name not in STEP_NEWS and not name.startswith("_")}
        self._filled = ended
        if own:  # the env's infos, of every lane in every step; those of ended lanes tell of their new episodes
            self._filled = list(range(self.env.num_envs))
            self._infos = [{**row, "TimeLimit.truncated": False} for row in _rows(own, self.env.num_envs)]
        if not ended:
            return {}
        last_rows = observation_rows(self.env.single_observation_space, last, ended)
        episodes = episode_rows(info["episode"], ended, self._began)
        last_infos = _rows({name: info["final_info"][name][ended] for name in own}, len(ended))
        first_infos = _rows({name: values[ended] for name, values in own.items()}, len(ended))
        for place, (lane, truncated) in enumerate(zip(ended, truncations[ended].tolist(), strict=True)):
            self._infos[lane] = {
                **last_infos[place],
                "TimeLimit.truncated": truncated,
                "terminal_observation": last_rows[place],
                "episode": episodes[place],
            }
        return dict(zip(ended, first_infos, strict=True))

    def images(self) -> dict[int, npt.NDArray[np.uint8]]:
        """A frame of each lane that is drawn."""
        return dict(zip(getattr(self.env, "render_lanes", ()), self.env.render(), strict=False))

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], lanes: list[int]) -> list[Any]:
        """Calls a method of these lanes: ``render``, or one of Gymnasium's wrapper attributes'.

        Raises:
            AttributeError: for any other; the message lists these.
        """
        if name == "render":
            frames = self.images()
            return [frames.get(lane) for lane in lanes]
        if name == "get_wrapper_attr":
            values = self.env.get_attr(*_named(("name",), args, kwargs))
            return [values[lane] for lane in lanes]
        if name == "has_wrapper_attr":
            return [self._has(*_named(("name",), args, kwargs))] * len(lanes)
        if name == "set_wrapper_attr":
            attribute, value, force = _named(("name", "value", "force"), args, {"force": True, **kwargs})
            if not force and not self._has(attribute):
                return [False] * len(lanes)
            self.set_attr(attribute, value, lanes)
            return [True] * len(lanes)
        raise AttributeError(f"env_method: native lanes have no method {name!r}; they have {', '.join(METHODS)}")

    def set_attr(self, name: str, value: Any, lanes: list[int]) -> None:
        """Sets an attribute in these lanes to one value; see :meth:`fastvec.VecEnv.set_attr`."""
        values = list(self.env.get_attr(name))
        for lane in lanes:
            values[lane] = value
        self.env.set_attr(name, values)

    def _has(self, attribute: str) -> bool:
        try:
            self.env.get_attr(attribute)
        except AttributeError:
            return False
        return True

    def are_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> list[bool]:
        """True for ``Monitor`` alone, whose statistics lanes keep themselves."""
        return [issubclass(wrapper_class, Monitor)] * self.env.num_envs


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
