"""check_same: a vector env in lock-step with single envs, compared bit for bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode

from fastvec.testing.rows import AnyVectorEnv, final_obs_rows, info_of, rows_of, same_bits, same_values
from fastvec.testing.violation import short

# What vector envs add to the infos of their lanes.
ADDED_INFOS = ("final_obs", "final_info", "episode")


@dataclass(frozen=True)
class LaneDifference:
    """Where a lane is not as its single env.

    Attributes:
        when: "reset", or "step" with its number, from 1.
        lane: the lane.
        what: "observation", "reward", "terminated", "truncated", "info" and so on.
        vector, single: what the two gave.
    """

    when: str
    lane: int
    what: str
    vector: Any
    single: Any

    def __str__(self) -> str:
        return (
            f"{self.when}, lane {self.lane}: {self.what} is {short(self.vector)} in the vector env "
            f"and {short(self.single)} in the single env"
        )


def check_same(
    env_factory: Callable[[], gymnasium.Env[Any, Any]],
    vec_env: AnyVectorEnv,
    *,
    steps: int = 1000,
    seed: int = 0,
    policy: Callable[[Any], Any] | None = None,
) -> None:
    """Steps a vector env and a single env for each of its lanes with the same actions, and compares all they return.

    Lane i is seeded with seed + i. Ends are handled as the vector env's ``metadata["autoreset_mode"]`` says, with the
    single envs reset where it resets lanes; in DISABLED mode both are reset after each end, the lanes by a mask.
    Observations, rewards and flags must have the same bits, in the dtypes of the vector env, and infos the same values.

    Args:
        env_factory: makes one single env; it is called ``vec_env.num_envs`` times.
        vec_env: any vector env. It is reset, and left open.
        steps: of each lane.
        seed: of the reset and of the random actions.
        policy: observation -> actions, both batched, instead of random actions.

    Raises:
        AssertionError: names the first difference: the step, the lane, what it is, and both values.
    """
    found = first_difference(env_factory, vec_env, steps=steps, seed=seed, policy=policy)
    if found is not None:
        raise AssertionError(str(found))


def first_difference(
    env_factory: Callable[[], gymnasium.Env[Any, Any]],
    vec_env: AnyVectorEnv,
    *,
    steps: int,
    seed: int,
    policy: Callable[[Any], Any] | None = None,
) -> LaneDifference | None:
    """As :func:`check_same`, but returns what it raises; None if all is the same."""
    singles = [env_factory() for _ in range(vec_env.num_envs)]
    try:
        pair = _Pair(vec_env, singles)
        action_space = copy.deepcopy(vec_env.action_space)
        action_space.seed(seed)
        try:
            pair.reset(seed)
            for step in range(1, steps + 1):
                pair.step(f"step {step}", action_space.sample() if policy is None else policy(pair.observation))
        except _DifferentError as different:
            return different.difference
        return None
    finally:
        for single in singles:
            single.close()


class _DifferentError(Exception):
    def __init__(self, difference: LaneDifference) -> None:
        self.difference = difference


class _Pair:
    """A vector env and the single envs that get its lanes' actions."""

    def __init__(self, vec_env: AnyVectorEnv, singles: list[gymnasium.Env[Any, Any]]) -> None:
        self.vec_env, self.singles = vec_env, singles
        self.mode = AutoresetMode(vec_env.metadata["autoreset_mode"])
        self.pending = np.zeros(len(singles), np.bool_)
        self.observation: Any = None
        self._shown: list[Any] = [None] * len(singles)  # each single env's last observation

    def reset(self, seed: int) -> None:
        """Resets all, and compares."""
        self.observation, infos = self.vec_env.reset(seed=seed)
        rows = self._rows()
        for lane, single in enumerate(self.singles):
            self._shown[lane], info = single.reset(seed=seed + lane)
            self._compare_observation("reset", lane, rows[lane])
            self._compare_infos("reset", lane, infos, info)

    def step(self, when: str, actions: Any) -> None:
        """Steps all, and compares."""
        each = rows_of(self.vec_env.action_space, actions)
        self.observation, rewards, terminations, truncations, infos = self.vec_env.step(actions)
        rows = self._rows()
        ended = np.zeros(len(self.singles), np.bool_)
        for lane, single in enumerate(self.singles):
            if self.pending[lane]:  # NEXT_STEP: this row is the reset
                self._shown[lane], info = single.reset()
                reward: Any = 0.0
                terminated = truncated = False
            else:
                self._shown[lane], reward, terminated, truncated, info = single.step(each[lane])
            self._compare(when, lane, "reward", rewards[lane], np.asarray(reward, rewards.dtype)[()])
            self._compare(when, lane, "terminated", terminations[lane], np.bool_(terminated))
            self._compare(when, lane, "truncated", truncations[lane], np.bool_(truncated))
            ended[lane] = terminated or truncated
            if ended[lane] and self.mode == AutoresetMode.SAME_STEP:
                self._compare_final(when, lane, infos, info)
                self._shown[lane], info = single.reset()
            self._compare_observation(when, lane, rows[lane])
            self._compare_infos(when, lane, infos, info)
        self.pending = ended if self.mode == AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        if self.mode == AutoresetMode.DISABLED and ended.any():
            self._reset_ended(f"reset after {when}", ended)

    def _reset_ended(self, when: str, ended: Any) -> None:
        self.observation, infos = self.vec_env.reset(options={"reset_mask": ended.copy()})
        rows = self._rows()
        for lane, single in enumerate(self.singles):
            info: dict[str, Any] = {}
            if ended[lane]:
                self._shown[lane], info = single.reset()
            self._compare_observation(when, lane, rows[lane])
            self._compare_infos(when, lane, infos, info)

    def _rows(self) -> list[Any]:
        return rows_of(self.vec_env.observation_space, self.observation)

    def _compare_final(self, when: str, lane: int, infos: dict[str, Any], info: dict[str, Any]) -> None:
        for key in ("final_obs", "_final_obs"):
            if key not in infos:
                self._differ(when, lane, f"info {key!r}", "missing", "the end of an episode")
        self._compare(when, lane, "info '_final_obs'", np.bool_(infos["_final_obs"][lane]), np.bool_(True))
        expected = _in_space(self.vec_env.single_observation_space, self._shown[lane])
        final = _in_space(self.vec_env.single_observation_space, final_obs_rows(self.vec_env, infos)[lane])
        self._compare(when, lane, "info 'final_obs'", final, expected)
        final_info = info_of(infos, lane).get("final_info", {})
        if not same_values(final_info, info):
            self._differ(when, lane, "info 'final_info'", final_info, info)

    def _compare_observation(self, when: str, lane: int, row: Any) -> None:
        expected = _in_space(self.vec_env.single_observation_space, self._shown[lane])
        self._compare(when, lane, "observation", row, expected)

    def _compare_infos(self, when: str, lane: int, infos: dict[str, Any], info: dict[str, Any]) -> None:
        own = info_of(infos, lane)
        for key in ADDED_INFOS:
            if key not in info:
                own.pop(key, None)
        if own.keys() != info.keys():
            self._differ(when, lane, "info", own, info)
        for key, value in info.items():
            if not same_values(own[key], value):
                self._differ(when, lane, f"info {key!r}", own[key], value)

    def _compare(self, when: str, lane: int, what: str, vector: Any, single: Any) -> None:
        if not same_bits(vector, single):
            self._differ(when, lane, what, vector, single)

    def _differ(self, when: str, lane: int, what: str, vector: Any, single: Any) -> None:
        raise _DifferentError(LaneDifference(when, lane, what, vector, single))


def _in_space(space: Space[Any], value: Any) -> Any:
    """A single env's observation in the dtype of the space, as a batched one has it."""
    if isinstance(space, Dict):
        return {key: _in_space(part, value[key]) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_in_space(part, item) for part, item in zip(space.spaces, value, strict=True))
    return value if space.dtype is None or space.shape is None else np.asarray(value, space.dtype)
