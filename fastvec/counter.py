"""CounterEnv: the smallest env there is, as an ordinary Gymnasium class.

It is what the native Counter-v0 (csrc/envs/counter.h) is compared with, and what to hand to other libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt


class CounterEnv(gymnasium.Env[npt.NDArray[np.float32], np.int64]):
    """Counts up by ``action + 1``, a reward of 0.1 a step, and terminates at 20.

    Observations are the count, float32 of shape (1,) in [0, 100]; actions are 0 and 1.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium.Env declares it so)

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.render_mode = render_mode
        self.goal = 20
        self.step_reward = 0.1
        self.count = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Sets the count to 0."""
        super().reset(seed=seed)
        self.count = 0
        return self._observation(), {}

    def step(self, action: int | np.integer[Any]) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Adds ``action + 1`` to the count."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r}: Counter-v0 takes 0 or 1")
        self.count += int(action) + 1
        return self._observation(), self.step_reward, self.count >= self.goal, False, {}

    def _observation(self) -> npt.NDArray[np.float32]:
        return np.array([self.count], np.float32)
