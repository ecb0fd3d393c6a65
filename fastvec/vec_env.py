"""VecEnv: a batch of native lanes behind Gymnasium's vector API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from fastvec._core import Batch


class VecEnv(VectorEnv[Any, Any, npt.NDArray[Any]]):
    """N environments that are stepped as one. Made by :func:`fastvec.make`.

    Observations, rewards (float64), terminations and truncations (bool) have a row for each lane, and equal those of
    Gymnasium's ``SyncVectorEnv`` for the same seeds and actions bit for bit.
    """

    def __init__(self, batch: Batch, env: gymnasium.Env[Any, Any], num_envs: int, autoreset_mode: AutoresetMode) -> None:
        """Wraps a batch; spaces, metadata and spec are those of ``env``, one ordinary env."""
        self._batch = batch
        self.num_envs = num_envs
        self.spec = env.spec
        self.render_mode = env.render_mode
        self.metadata = {**env.metadata, "autoreset_mode": autoreset_mode}
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins a new episode in every lane.

        Args:
            seed: an int s seeds lane i with s + i; a sequence has a seed for each lane, where None leaves that lane's
                stream running; None leaves them all running. Lanes without any seed yet get one from the
                operating system.
            options: ``reset_mask``, a bool array (num_envs,), resets only those lanes.

        Returns:
            (observation, info), the observation with a row for every lane.

        Raises:
            gymnasium.error.Error: for a seed that is not an int or is negative.
            ValueError: for a sequence of the wrong length.
        """
        mask = None if options is None else options.get("reset_mask")
        self._batch.seed(self._checked_seeds(seed))
        return self._batch.reset(mask)

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Steps every lane.

        Args:
            actions: one action a lane. For Discrete actions int64 of shape (num_envs,) is fastest; other integers, lists
                and CPU tensors are converted.

        Returns:
            (observation, rewards, terminations, truncations, info); rewards are float64.

        Raises:
            ValueError: for a wrong number of actions or one outside of the space. No lane has moved.
            TypeError: for a dtype that does not fit. No lane has moved.
            gymnasium.error.ResetNeeded: before the first reset, or in DISABLED mode with a lane that has ended.
        """
        return self._batch.step(actions)

    def close_extras(self) -> None:
        """Ends the batch; called by ``close``."""
        self._batch.close()

    def _checked_seeds(self, seed: Any) -> Any:
        """The argument of ``reset``, known to be good for ``Batch.seed``."""
        return seed
