"""Ordinary Python envs that backends of such envs are tested with, one for each thing that may go wrong."""

from __future__ import annotations

import os
import signal
import threading
import time

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class NestedEnv(gym.Env):
    """Observations and actions of every kind of space that has arrays, nested, all drawn at random."""

    observation_space = Dict(
        {
            "position": Box(-1, 1, (2, 3), np.float32),
            "inner": Tuple((Discrete(5, start=2), MultiBinary(3), Dict({"pixels": Box(0, 255, (4,), np.uint8)}))),
            "counts": MultiDiscrete([3, 4]),
        }
    )
    action_space = Dict({"move": Discrete(3), "force": Tuple((Box(-1, 1, (2,), np.float32), MultiDiscrete([2, 5])))})

    def _observation(self):
        rng = self.np_random
        return {
            "position": rng.uniform(-1, 1, (2, 3)).astype(np.float32),
            "inner": (
                int(rng.integers(2, 7)),
                rng.integers(0, 2, 3, np.int8),
                {"pixels": rng.integers(0, 256, 4, np.uint8)},
            ),
            "counts": rng.integers(0, [3, 4]),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observation(), {"began": True}

    def step(self, action):
        force, choice = action["force"]
        reward = float(action["move"]) + float(force.sum()) + 0.1 * float(choice[1])
        return self._observation(), reward, bool(self.np_random.random() < 0.1), False, {"force": force.copy()}


class FlatDictEnv(gym.Env):
    """Observations of two arrays, as Stable-Baselines3 takes them."""

    observation_space = Dict({"position": Box(-1, 1, (2, 3), np.float32), "pixels": Box(0, 255, (4,), np.uint8)})
    action_space = Discrete(3)

    def _observation(self):
        rng = self.np_random
        return {
            "position": rng.uniform(-1, 1, (2, 3)).astype(np.float32),
            "pixels": rng.integers(0, 256, 4, np.uint8),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observation(), {"options": options}

    def step(self, action):
        draw = self.np_random.random()
        return self._observation(), float(action) + draw, bool(draw < 0.1), bool(draw > 0.9), {"draw": draw}


class OneArrayEnv(gym.Env):
    """Writes all observations into one array, and its infos into one dict."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Box(-1, 1, (2,), np.float32)

    def __init__(self, length=5):
        self.length = length
        self.array = np.zeros(2)
        self.info = {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.array[:] = -1, self.np_random.random()
        self.info.clear()
        self.info["steps"] = 0
        return self.array, self.info

    def step(self, action):
        self.array[0] += 1
        self.info["steps"] += 1
        action *= 0  # the array of the caller must not notice
        return self.array, 0.1, False, bool(self.array[0] + 1 >= self.length), self.info


class InfosEnv(gym.Env):
    """Infos of every kind, some in some steps only, as they are drawn."""

    observation_space = Discrete(4)
    action_space = Discrete(2)

    def __init__(self, tells_options=True):
        self.tells_options = tells_options

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {"options": options, "first": 1} if self.tells_options else {"first": 1}

    def step(self, action):
        number = float(self.np_random.random())
        info = {
            "float": number,
            "float32": np.float32(number),
            "text": f"{number:.3f}",
            "array": np.full((2, 2), number, np.float32),
            "nested": {"int": int(number * 10), "deep": {"flag": number < 0.5}},
            "numpy_bool": np.bool_(number < 0.5),
            "list": [number],
        }
        if number < 0.3:
            info["rare"] = int(action)
        return int(number * 4), number, number < 0.2, number > 0.9, info


class MixedInfosEnv(gym.Env):
    """Infos whose type depends on the step, as FrozenLake's, shape and kind too."""

    observation_space = Discrete(2)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {"number": 1, "anything": None, "array": np.zeros(2, np.int64)}

    def step(self, action):
        if action == 0:
            return 0, 0.0, False, False, {"number": 1, "anything": "text", "array": np.zeros(2, np.int64)}
        return 1, 1.0, False, False, {"number": 0.25, "anything": 3, "array": np.array([0.5, 0.75])}


class WordsEnv(gym.Env):
    """Observations and actions that no array holds."""

    observation_space = Dict({"word": Text(8), "number": Box(0, 1, (), np.float32)})
    action_space = Text(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"word": "new", "number": np.float32(0.5)}, {}

    def step(self, action):
        ended = bool(self.np_random.random() < 0.2)
        return {"word": action * 2, "number": np.float32(self.np_random.random())}, float(len(action)), ended, False, {}


class LaneEnv(gym.Env):
    """Counts its steps, and does in one of them what it is told: raise, sleep, exit or be killed."""

    observation_space = Box(0, 1000, (1,), np.float32)
    action_space = Discrete(3)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, lane=0, length=1000, trouble=None, at=3, render_mode=None):
        self.lane, self.length, self.trouble, self.at = lane, length, trouble, at
        self.render_mode = render_mode
        self.count, self.total, self.was_closed = 0, 0, False
        if trouble == "init":
            raise OSError("no env")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        if self.trouble == "reset":
            raise OSError("no reset")
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        self.total += 1
        if self.total == self.at:
            make_trouble(self.trouble)
        self.count += int(action)
        return np.array([self.count], np.float32), float(self.lane), False, self.count >= self.length, {}

    def render(self):
        return np.full((2, 2, 3), self.lane, np.uint8)

    def add(self, one, *, other=0):
        return self.lane + one + other

    def count_up(self):
        self.total += 1
        return self.total

    def process(self):
        return os.getpid()

    def close(self):
        if self.trouble == "close":
            time.sleep(60)
        self.was_closed = True


class OnceEnv(LaneEnv):
    """Has trouble in its third step, if no env before had."""

    def __init__(self, lane, path, trouble):
        super().__init__(lane)
        self.path, self.kind = path, trouble

    def step(self, action):
        if self.path is not None and self.total == 2 and not self.path.exists():
            self.path.touch()
            make_trouble(self.kind)
        return super().step(action)


class UnpicklableError(Exception):
    """Cannot be pickled."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


def make_trouble(kind):
    """What may happen in a step."""
    if kind == "raise":
        raise ValueError("boom")
    if kind == "unpicklable":
        raise UnpicklableError("boom")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "exit":
        os._exit(3)
    if kind == "sleep":
        time.sleep(60)
    if kind == "nap":
        time.sleep(1)
    if kind == "interrupt":
        raise KeyboardInterrupt
