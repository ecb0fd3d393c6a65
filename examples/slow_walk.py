"""An ordinary Python env that is slow as many are: its step computes for a while, and then waits for someone else.

fastvec profile fastvec.examples.slow_walk:SlowWalk --quick
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt


class SlowWalk(gymnasium.Env[npt.NDArray[np.float32], np.int64]):
    """Walks along a line from somewhere near 0, and ends beyond 3, or after 50 steps.

    Args:
        computes: seconds of computing in each step.
        waits: seconds of waiting in each step, as for a simulator that answers over a socket.
    """

    observation_space = gymnasium.spaces.Box(-4, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, computes: float = 0.0005, waits: float = 0.0015) -> None:
        self.computes, self.waits = computes, waits

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins near 0."""
        super().reset(seed=seed)
        self.place, self.steps = float(self.np_random.uniform(-1, 1)), 0
        return np.array([self.place], np.float32), {}

    def step(self, action: np.int64) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Goes 0.1 to the left or right, and is pushed a little."""
        end = time.thread_time() + self.computes
        while time.thread_time() < end:
            pass
        time.sleep(self.waits)
        self.place += (0.1 if action == 1 else -0.1) + self.np_random.normal(0, 0.1)
        self.steps += 1
        has_ended = abs(self.place) > 3
        return np.array([self.place], np.float32), -abs(self.place), has_ended, self.steps >= 50, {}
