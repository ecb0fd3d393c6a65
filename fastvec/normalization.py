"""NormalizeObservation and NormalizeReward: Gymnasium's vector wrappers of these names, for every autoreset mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space


class RunningMoments:
    """Mean and variance of all rows seen so far (Chan, Golub and LeVeque, 1983: how two samples' add up).

    Attributes:
        mean, var: of a row's shape. They begin as 0 and 1.
        count: how many rows, and a little for how they began.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        """Begins without rows."""
        self.mean: Any = np.zeros(shape, dtype)
        self.var: Any = np.ones(shape, dtype)
        self.count = 1e-4

    def update(self, rows: npt.NDArray[Any]) -> None:
        """Adds rows, (k, ...). The order of operations is Gymnasium's, and so are the bits."""
        k = len(rows)
        total = self.count + k
        shift = rows.mean(axis=0) - self.mean
        squares = self.var * self.count + rows.var(axis=0) * k + np.square(shift) * self.count * k / total
        self.mean = self.mean + shift * k / total
        self.var = squares / total
        self.count = total

    def get_state(self) -> dict[str, Any]:
        """A copy of mean, var and count."""
        return {"mean": np.array(self.mean), "var": np.array(self.var), "count": self.count}

    def checked(self, state: Any) -> RunningMoments:
        """The moments of a state, if it is one of moments of this shape; else raises ValueError."""
        if not isinstance(state, dict) or state.keys() != {"mean", "var", "count"}:
            found = f"a dict of {', '.join(map(str, state))}" if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"set_state takes what get_state() returned, with mean, var and count; got {found}")
        moments = RunningMoments(np.shape(self.mean), np.float64)
        for name in ("mean", "var"):
            value = np.array(state[name])
            if value.shape != np.shape(self.mean) or value.dtype.kind != "f":
                raise ValueError(
                    f"set_state: {name} is {value.dtype} of shape {value.shape}; expected floats of shape "
                    f"{np.shape(self.mean)}: use it on an env with the spaces of the one it came from"
                )
            setattr(moments, name, value)
        count = state["count"]
        if not isinstance(count, (int, float)) or not count > 0 or not (moments.var >= 0).all():
            raise ValueError(f"set_state: count is {count!r} and var {moments.var!r}; expected above 0, and from 0 on")
        moments.count = float(count)
        return moments


class NormalizeObservation(VectorWrapper):
    """Observations with mean 0 and variance 1: less the running mean, over the root of the running variance.

    In NextStep mode, the bits are those of ``gymnasium.wrappers.vector.NormalizeObservation``, which refuses the other
    modes. Each call adds its observations to the statistics first: a step those of all lanes, a ``reset`` with a
    mask those of the lanes it resets. In SameStep mode ``info["final_obs"]`` is normalised as the observation is, with
    the statistics as they then are, to which it is not added.

    Attributes:
        obs_rms: ``mean``, ``var`` and ``count`` of the observations.
        update_running_mean: False holds the statistics as they are, for example in evaluation.
        epsilon: is added to the variance.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], epsilon: float = 1e-8) -> None:
        """Wraps an env.

        Args:
            env: any vector env with Box observations. The wrapped ones are float32 without bounds.
            epsilon: is added to the variance, so that nothing is divided by 0.

        Raises:
            TypeError: for another observation space.
            ValueError: for an epsilon that is not above 0.
        """
        super().__init__(env)
        space = env.single_observation_space
        if not isinstance(space, Box):
            raise TypeError(f"NormalizeObservation: the observation space is {space}; expected a Box")
        self.epsilon = _checked_epsilon("NormalizeObservation", epsilon)
        self.update_running_mean = True
        self.single_observation_space = Box(-np.inf, np.inf, space.shape, np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.obs_rms = RunningMoments(space.shape, np.float32)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the env, or the lanes of ``options["reset_mask"]``, whose observations alone are then added."""
        mask = _reset_mask(options)
        observation, info = self.env.reset(seed=seed, options=options)
        self._add(observation if mask is None else observation[mask])
        return self._normalized(observation), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env and normalises what it shows."""
        observation, rewards, terminations, truncations, info = self.env.step(actions)
        self._add(observation)
        if "final_obs" in info:
            info = {**info, "final_obs": self._normalized_final(info["final_obs"], info["_final_obs"])}
        return self._normalized(observation), rewards, terminations, truncations, info

    def get_state(self) -> dict[str, Any]:
        """A copy of the statistics, a dict for :meth:`set_state`; the env's own state is not in it."""
        return self.obs_rms.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues with the statistics that :meth:`get_state` returned.

        Raises:
            ValueError: for anything else; nothing has changed.
        """
        self.obs_rms = self.obs_rms.checked(state)

    def _add(self, rows: Any) -> None:
        if self.update_running_mean:
            self.obs_rms.update(rows)

    def _normalized(self, observation: Any) -> npt.NDArray[np.float32]:
        centered = observation - self.obs_rms.mean
        scaled: npt.NDArray[Any] = centered / np.sqrt(self.obs_rms.var + self.epsilon)
        return scaled.astype(np.float32)

    def _normalized_final(self, final_obs: npt.NDArray[Any], ended: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Of the kind it was: dense with rows of 0 for lanes that did not end, or objects, None for them."""
        if final_obs.dtype == object:
            rows = np.full(self.num_envs, None)
            for lane in np.flatnonzero(ended):
                rows[lane] = self._normalized(final_obs[lane])
            return rows
        dense = np.zeros(final_obs.shape, np.float32)
        dense[ended] = self._normalized(final_obs[ended])
        return dense


class NormalizeReward(VectorWrapper):
    """Rewards over the root of the running variance of discounted returns. They are not centred.

    The bits are those of ``gymnasium.wrappers.vector.NormalizeReward`` of Gymnasium 1.4, also in its peculiarities: a
    step that terminates an episode counts with its own reward alone, and outside of SameStep mode a truncated episode's
    return goes on in the lane's next. One thing differs: a ``reset`` with a mask forgets the returns of the lanes it
    resets, and not those of all.

    Attributes:
        return_rms: ``mean``, ``var`` and ``count`` of the returns.
        update_running_mean: False holds the statistics as they are, for example in evaluation.
        gamma: the discount.
        epsilon: is added to the variance.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], gamma: float = 0.99, epsilon: float = 1e-8) -> None:
        """Wraps an env.

        Args:
            env: any vector env whose metadata tell its autoreset mode.
            gamma: discount of a step, 0 to 1.
            epsilon: is added to the variance, so that nothing is divided by 0.

        Raises:
            ValueError: for a gamma or epsilon out of range, and for metadata without an autoreset mode.
        """
        super().__init__(env)
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise ValueError(
                f"NormalizeReward: the env's metadata['autoreset_mode'] is {mode!r}; expected an AutoresetMode"
            )
        if not 0 <= gamma <= 1:
            raise ValueError(f"NormalizeReward: gamma is {gamma!r}; expected a number from 0 to 1")
        self.gamma = gamma
        self.epsilon = _checked_epsilon("NormalizeReward", epsilon)
        self.update_running_mean = True
        self.return_rms = RunningMoments((), np.float64)
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._returns = np.zeros(self.num_envs, np.float32)
        self._ended = np.zeros(self.num_envs, bool)  # lanes whose next row is no step, but in SameStep mode

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the env, or the lanes of ``options["reset_mask"]``, and forgets the returns so far of those."""
        mask = _reset_mask(options)
        observation, info = self.env.reset(seed=seed, options=options)
        lanes = slice(None) if mask is None else mask
        self._returns[lanes] = 0
        self._ended[lanes] = False
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env and scales its rewards, float64."""
        observation, rewards, terminations, truncations, info = self.env.step(actions)
        real = ~self._ended
        before = np.where(terminations, 0.0, self._returns * self.gamma)
        self._returns[real] = (before + rewards)[real]
        if self.update_running_mean and real.any():
            self.return_rms.update(self._returns[real])
        ended = terminations | truncations
        if self._same_step:
            self._returns[ended] = 0
        else:
            self._ended = ended
        scaled = rewards / np.sqrt(self.return_rms.var + self.epsilon)
        return observation, scaled, terminations, truncations, info

    def get_state(self) -> dict[str, Any]:
        """A copy of the statistics and of each lane's return so far; the env's own state is not in it."""
        return {**self.return_rms.get_state(), "returns": self._returns.copy(), "ended": self._ended.copy()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues from what :meth:`get_state` returned.

        Raises:
            ValueError: for anything else, and for another number of lanes; nothing has changed.
        """
        if not isinstance(state, dict) or not {"returns", "ended"} <= state.keys():
            raise ValueError(f"set_state takes what get_state() returned; got {type(state).__name__} without 'returns'")
        lanes = {}
        for name, own in (("returns", self._returns), ("ended", self._ended)):
            value = np.array(state[name])
            if value.shape != own.shape or value.dtype != own.dtype:
                raise ValueError(
                    f"set_state: {name} is {value.dtype} of shape {value.shape}; "
                    f"expected {own.dtype} of shape {own.shape}"
                )
            lanes[name] = value
        statistics = {name: value for name, value in state.items() if name not in lanes}
        self.return_rms = self.return_rms.checked(statistics)
        self._returns, self._ended = lanes["returns"], lanes["ended"]


def _reset_mask(options: dict[str, Any] | None) -> npt.NDArray[np.bool_] | None:
    """The mask, read before the env is reset: Gymnasium's envs take it out of the dict."""
    return None if options is None else options.get("reset_mask")


def _checked_epsilon(wrapper: str, epsilon: float) -> float:
    if not epsilon > 0:
        raise ValueError(f"{wrapper}: epsilon is {epsilon!r}; expected a number above 0")
    return epsilon
