"""What FastVecEnv asks of ordinary envs in other words than of native lanes: infos a lane, methods, wrappers."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor

from fastvec.backends.ordinary import OrdinaryVecEnv
from fastvec.sb3.rows import episode_rows, observation_rows


class OrdinaryLanes:
    """The lanes of an env of the serial or the process backend. Infos are the dicts that the envs returned."""

    def __init__(self, env: OrdinaryVecEnv) -> None:
        self.env = env
        self._began = time.time()

    def check_options(self, options: list[dict[str, Any]]) -> None:
        """Does nothing: what options there are is known to the envs alone."""

    def reset_infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of the last reset, a dict a lane."""
        return self._rows(self.env.lane_infos[0])

    def step_infos(
        self, info: dict[str, Any], dones: npt.NDArray[np.bool_], truncations: npt.NDArray[np.bool_], last: Any
    ) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
        """The infos of a step; see :meth:`fastvec.sb3.native_lanes.NativeLanes.step_infos`."""
        own, finals = self.env.lane_infos
        infos = self._rows(own)
        firsts: dict[int, dict[str, Any]] = {}
        if dones.any():
            ended = np.flatnonzero(dones).tolist()
            firsts = {lane: infos[lane] for lane in ended}
            of_last_steps = self._rows(finals)
            episodes = episode_rows(info["episode"], ended, self._began) if "episode" in info else []
            for place, row in enumerate(observation_rows(self.env.single_observation_space, last, ended)):
                lane = ended[place]
                infos[lane] = {**of_last_steps[lane], "terminal_observation": row}
                if episodes and info["_episode"][lane]:
                    infos[lane]["episode"] = episodes[place]
                if "worker_restarted" in info:
                    infos[lane]["worker_restarted"] = bool(info["worker_restarted"][lane])
        for row, truncated in zip(infos, truncations.tolist(), strict=True):
            row["TimeLimit.truncated"] = truncated
        return infos, firsts

    def _rows(self, pairs: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
        """A dict a lane. An env in this process may go on writing to the one that it returned."""
        rows: list[dict[str, Any]] = [{} for _ in range(self.env.num_envs)]
        for lane, info in pairs:
            rows[lane] = copy.deepcopy(info) if self.env.backend == "serial" else info
        return rows

    def images(self) -> dict[int, npt.NDArray[np.uint8]]:
        """A frame of each lane."""
        return dict(enumerate(self.env.render()))

    def call(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], lanes: list[int]) -> list[Any]:
        """Calls a method of these lanes' envs or wrappers; of a lane that is there twice, twice."""
        if len(set(lanes)) < len(lanes):
            return [self.env.call_lanes([lane], name, *args, **kwargs)[0] for lane in lanes]
        return self.env.call_lanes(lanes, name, *args, **kwargs)

    def set_attr(self, name: str, value: Any, lanes: list[int]) -> None:
        """Sets an attribute to one value, in these lanes' envs or the wrapper that has it."""
        self.env.call_lanes(lanes, "set_wrapper_attr", name, value)

    def are_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> list[bool]:
        """Whether each env is wrapped in this class; in ``Monitor`` also if fastvec keeps its statistics."""
        if self.env.episode_stats and issubclass(wrapper_class, Monitor):
            return [True] * self.env.num_envs
        return self.env.are_wrapped(wrapper_class)
