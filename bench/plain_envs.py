"""Ordinary envs for bench/backends.py: the plainest there are, with frames, and with steps of a known cost."""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium
import numpy as np

IMAGE = (84, 84, 4)


class PlainCounter(gymnasium.Env):
    """``fastvec.CounterEnv`` as people write it: the same spaces and numbers, but no check of the action."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Sets the count to 0."""
        super().reset(seed=seed)
        self.count = 0
        return np.array([self.count], dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        """Adds ``action + 1`` to the count."""
        self.count += int(action) + 1
        return np.array([self.count], dtype=np.float32), 0.1, self.count >= 20, False, {}


class Endless(gymnasium.Env):
    """What the others have in common: a small observation, and episodes without end."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begins an episode."""
        super().reset(seed=seed)
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        """Observes."""
        return self.observe(), 0.0, False, False, {}

    def observe(self) -> Any:
        """A new observation."""
        return np.zeros(4, np.float32)


class Computing(Endless):
    """Steps that compute: so many turns of a loop."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns

    def step(self, action: Any) -> Any:
        """Turns, and observes."""
        for _ in range(self.turns):
            pass
        return super().step(action)

    @classmethod
    def turns_for(cls, seconds: float) -> int:
        """How many turns make a step take so long, when nothing else runs: the fastest of some tries counts."""

        def took(turns: int, steps: int) -> float:
            env = cls(turns)
            tries = []
            for _ in range(20):
                before = time.perf_counter()
                for _ in range(steps):
                    env.step(0)
                tries.append((time.perf_counter() - before) / steps)
            return min(tries)

        empty = took(0, 1000)
        turn = (took(10_000, 1) - empty) / 10_000
        return max(0, round((seconds - empty) / turn))


class Waiting(Endless):
    """Steps that wait for so many seconds, as for a server or a simulator elsewhere."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def step(self, action: Any) -> Any:
        """Sleeps, and observes."""
        time.sleep(self.seconds)
        return super().step(action)


class UnevenlyWaiting(Endless):
    """Steps that wait for 1 to 20 ms, log-uniformly."""

    def step(self, action: Any) -> Any:
        """Sleeps, and observes."""
        time.sleep(math.exp(self.np_random.uniform(math.log(0.001), math.log(0.020))))
        return super().step(action)


class Images(Endless):
    """Observations of 84 x 84 x 4 bytes as of a game: a flat ground, and some rectangles that move.

    They are drawn beforehand, so that what is measured is their way to the learner.
    """

    def __init__(self, as_float: bool = False) -> None:
        super().__init__()
        high, dtype = (1.0, np.float32) if as_float else (255, np.uint8)
        self.observation_space = gymnasium.spaces.Box(0, high, IMAGE, dtype)
        self.as_float, self.place = as_float, 0
        rng = np.random.default_rng(0)
        self.images = np.full((16, *IMAGE), 87, np.uint8)
        for image in self.images:
            for x, y in rng.integers(0, 70, (12, 2)):
                image[x : x + 9, y : y + 14] = rng.integers(0, 256, 4)

    def observe(self) -> Any:
        """The next image."""
        self.place = (self.place + 1) % len(self.images)
        image = self.images[self.place]
        return image.astype(np.float32) / 255 if self.as_float else image.copy()
