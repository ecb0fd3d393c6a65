"""SerialVecEnv: ordinary Python envs in this process, stepped one after the other by one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from fastvec._lanes import Lanes
from fastvec.backends.ordinary import Errors, Infos, LaneFacts, OrdinaryVecEnv
from fastvec.backends.sources import make_envs


class SerialVecEnv(OrdinaryVecEnv):
    """Ordinary Python envs in this process. Made by :func:`fastvec.make`."""

    backend = "serial"

    def __init__(
        self,
        factories: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        autoreset_mode: AutoresetMode,
        label: str,
        *,
        copy: bool = True,
        episode_stats: bool = False,
    ) -> None:
        """Makes an env with each factory.

        Raises:
            TypeError: for a factory that makes something else.
            ValueError: for envs with different spaces, and for a factory that gives one env twice.
            Exception: what a factory raises, with a note that names the lane.
        """
        envs = make_envs(factories, 0)
        super().__init__(
            LaneFacts.of(envs[0]), len(envs), autoreset_mode, label, copy=copy, episode_stats=episode_stats
        )
        ledger = self._ledger
        self._lanes = Lanes(
            envs,
            0,
            self._paths,
            self._observations,
            self._final,
            ledger.rewards,
            ledger.terminations,
            ledger.truncations,
            ledger.status,
            autoreset_mode.value,
        )

    @property
    def envs(self) -> list[gymnasium.Env[Any, Any]]:
        """The envs themselves, one a lane."""
        return self._lanes.envs

    def _reset_lanes(
        self, seeds: list[int | None], mask: npt.NDArray[np.bool_] | None, options: dict[str, Any] | None
    ) -> tuple[Infos, Errors]:
        return self._lanes.reset(seeds, mask, options)

    def _step_lanes(self, actions: list[Any]) -> tuple[Infos, Infos, Errors]:
        return self._lanes.step(self._actions.rows(actions))

    def _ask_lanes(self, method: str, *args: Any) -> list[Any]:
        values: list[Any] = getattr(self._lanes, method)(*args)
        return values

    def _set_in_lanes(self, name: str, values: list[Any]) -> None:
        self._lanes.set_attr(name, values)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes all envs; called by ``close``. If some raise, so does this, when all have been closed."""
        self._refuse_while_running()
        errors = self._lanes.close()
        self.closed = True
        if errors:
            raise self._told(errors, "close", None)
