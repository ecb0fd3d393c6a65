"""RolloutBuffer: a rollout's arrays, which the env writes to itself.
Training reads them through flat views, NumPy's or torch's, without a copy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from fastvec.factory import checked_count
from fastvec.gae import gae, reset_rows
from fastvec.vec_env import VecEnv


@dataclass(frozen=True)
class Rollout:
    """A rollout with one axis for steps and lanes, (T * n, ...): row t * n + lane is step t of a lane.

    Views of a :class:`RolloutBuffer`, NumPy arrays or torch tensors; those of the same names there say what they are.
    """

    observations: Any
    actions: Any
    rewards: Any
    terminations: Any
    truncations: Any
    values: Any
    log_probs: Any
    advantages: Any
    returns: Any


class RolloutBuffer:
    """T steps of n lanes, filled in place: a native env writes its results to the rows themselves.

    The order of calls is ``reset`` once, then again and again ``step`` T times, ``finish``, ``minibatches`` and
    ``restart``. The arrays stay the same from one rollout to the next. A buffer is for one thread at a time.

    Attributes:
        env: the env.
        steps: T.
        observations: (T, n, ...), what the actions were chosen for, of the space's dtype; a tuple of such arrays if the
            space is a Tuple.
        actions: (T, n, ...), of the space's dtype.
        rewards: float64 (T, n).
        terminations, truncations: bool (T, n).
        values, log_probs: (T, n), what ``step`` was given: the policy's value of the observation and the logarithm of
            the action's probability. 0 if it was not given.
        advantages, returns: (T, n), what ``finish`` computes.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], steps: int, *, dtype: npt.DTypeLike = np.float32) -> None:
        """Makes the arrays; the env is not touched.

        Args:
            env: a fastvec env. Any other ``gymnasium.vector.VectorEnv`` will do, such as a wrapped one, but it makes
                arrays of its own that are then copied. Observations are Box, Discrete, MultiDiscrete or MultiBinary,
                or a Tuple of these; actions are any but a Tuple.
            steps: T, the rows of the buffer.
            dtype: of values, log_probs, advantages and returns: float32 or float64.

        Raises:
            TypeError: for something that is no vector env, for other spaces, and for another dtype.
            ValueError: for steps below 1, and for an env whose metadata do not tell its autoreset mode.
        """
        if not isinstance(env, VectorEnv):
            raise TypeError(f"RolloutBuffer: env is {type(env).__name__}; expected a VectorEnv, such as fastvec.make's")
        self.env = env
        self.steps = checked_count("steps", steps)
        self._mode = _autoreset_mode(env)
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"RolloutBuffer: dtype is {kind}; expected float32 or float64")
        n = env.num_envs
        space = env.single_observation_space
        self._is_tuple = isinstance(space, spaces.Tuple)
        parts = tuple(space) if isinstance(space, spaces.Tuple) else (space,)
        # A row more than there are steps: the observation that the last one returns.
        self._seen = [_empty("observations", part, self.steps + 1, n) for part in parts]
        self.actions = _empty("actions", env.single_action_space, self.steps, n)
        self.rewards = np.zeros((self.steps, n))
        self.terminations, self.truncations = np.zeros((2, self.steps, n), bool)
        self.values, self.log_probs, self.advantages, self.returns = (np.zeros((self.steps, n), kind) for _ in range(4))
        self._rows = self._views_of_rows()
        self._pending = np.zeros(n, bool)
        self._filled: int | None = None
        self._final: list[tuple[int, npt.NDArray[np.intp], list[npt.NDArray[Any]]]] = []

    def _views_of_rows(self) -> list[tuple[Any, ...]]:
        """What each step writes to."""
        return [
            (
                self._joined([part[t + 1] for part in self._seen]),
                self.rewards[t],
                self.terminations[t],
                self.truncations[t],
            )
            for t in range(self.steps)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Without the views: copies of them would be arrays of their own."""
        return {name: value for name, value in self.__dict__.items() if name != "_rows"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rows = self._views_of_rows()

    @property
    def observations(self) -> Any:
        """What the actions were chosen for, (T, n, ...), or a tuple of such arrays."""
        return self._joined([part[:-1] for part in self._seen])

    @property
    def observation(self) -> Any:
        """What the next action is to be chosen for, (n, ...): the row after the last that is filled, not a copy."""
        filled = self._require_begun("observation")
        return self._joined([part[filled] for part in self._seen])

    @property
    def full(self) -> bool:
        """Whether all T steps are there."""
        return self._filled == self.steps

    @property
    def final_observations(self) -> Any:
        """The last observations of episodes that were truncated and did not terminate, (k, ...), the oldest first.

        ``finish`` needs their values. Only these are kept: an episode that terminates is worth nothing after its end.
        In NextStep mode there are none (k = 0), since such an observation is the next row of `observations`.
        """
        return self._joined(
            [
                np.concatenate([part[:0, 0], *(rows[i] for _, _, rows in self._final)])
                for i, part in enumerate(self._seen)
            ]
        )

    @property
    def transitions(self) -> npt.NDArray[np.bool_]:
        """Which rows are transitions, bool (T, n): in NextStep mode all but the resets, else all."""
        self._require_full("transitions")
        if self._mode is AutoresetMode.NEXT_STEP:
            return ~reset_rows(self.terminations, self.truncations, self._pending)
        return np.ones_like(self.terminations)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the env and begins a rollout with its observation.

        Args:
            seed, options: as the env's ``reset`` has them.

        Returns:
            (observation, info), the observation not a copy but the first row.
        """
        mask = None if options is None else options.get("reset_mask")  # which Gymnasium's envs take out
        observation, info = self.env.reset(seed=seed, options=options)
        self._write(0, observation)
        self._pending[slice(None) if mask is None else mask] = False
        self._final.clear()
        self._filled = 0
        return self.observation, info

    def restart(self) -> None:
        """Begins the next rollout where this one ended.

        Raises:
            RuntimeError: if it has not ended.
        """
        self._require_full("restart")
        for part in self._seen:
            part[0] = part[-1]
        if self._mode is AutoresetMode.NEXT_STEP:
            np.logical_or(self.terminations[-1], self.truncations[-1], out=self._pending)
        self._final.clear()
        self._filled = 0

    def step(
        self, actions: npt.ArrayLike, values: npt.ArrayLike | None = None, log_probs: npt.ArrayLike | None = None
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Steps the env and keeps what there is to keep. In Disabled mode, lanes that ended are then reset.

        Args:
            actions: (n, ...), one action a lane: an array, a list, or a CPU tensor without gradient. The env gets them
                in the dtype of its space.
            values: (n,), the policy's values of the observation that the actions are for.
            log_probs: (n,), the logarithms of the actions' probabilities.

        Returns:
            What the env's ``step`` returns; the arrays are rows of the buffer, not copies, and in Disabled mode the
            observation is that after the resets.

        Raises:
            RuntimeError: before ``reset``, and if the buffer is full.
            ValueError, TypeError: for shapes and dtypes that do not fit, and whatever the env says of the actions. The
                env has not moved.
        """
        t = self._require_begun("step")
        if t == self.steps:
            raise RuntimeError(f"step: all {self.steps} rows are full; restart() begins the next rollout")
        _copy("actions", actions, self.actions[t])
        for name, given, row in (("values", values, self.values[t]), ("log_probs", log_probs, self.log_probs[t])):
            if given is None:
                row[:] = 0
            else:
                _copy(name, given, row)
        if isinstance(self.env, VecEnv):
            *_, info = self.env.step(self.actions[t], out=self._rows[t])
        else:
            observation, self.rewards[t], self.terminations[t], self.truncations[t], info = self.env.step(
                self.actions[t]
            )
            self._write(t + 1, observation)
        self._filled = t + 1
        if self._mode is not AutoresetMode.NEXT_STEP:
            self._end_episodes(t, info)
        return *self._rows[t], info

    def finish(
        self,
        last_values: npt.ArrayLike,
        final_values: npt.ArrayLike | None = None,
        *,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
    ) -> None:
        """Computes `advantages` and `returns`, by :func:`fastvec.gae`, from a full buffer.

        Args:
            last_values: (n,), the values of `observation`, which follows the last row.
            final_values: (k,), the values of `final_observations`; may be left out if there are none.
            gamma, gae_lambda: as in :func:`fastvec.gae`.

        Raises:
            RuntimeError: if the buffer is not full.
            ValueError: for shapes that do not fit, and if there are final observations but no values of them.
        """
        self._require_full("finish")
        count = sum(len(lanes) for _, lanes, _ in self._final)
        dense = None
        if count or final_values is not None:
            given = None if final_values is None else np.asarray(final_values)
            if given is None or given.shape != (count,):
                found = "there are no final_values" if given is None else f"final_values have shape {given.shape}"
                raise ValueError(f"finish: {found}; expected {(count,)}, the values of final_observations")
            if self._mode is not AutoresetMode.NEXT_STEP:
                dense = np.zeros_like(self.values)
                begin = 0
                for t, lanes, _ in self._final:
                    dense[t, lanes] = given[begin : begin + len(lanes)]
                    begin += len(lanes)
        gae(
            self.rewards,
            self.values,
            self.terminations,
            self.truncations,
            last_values,
            gamma=gamma,
            gae_lambda=gae_lambda,
            final_values=dense,
            autoreset_mode=self._mode,
            pending=self._pending if self._mode is AutoresetMode.NEXT_STEP else None,
            out=(self.advantages, self.returns),
        )

    def minibatches(
        self, batch_size: int, rng: np.random.Generator | int | None = None
    ) -> Iterator[npt.NDArray[np.intp]]:
        """Shares all transitions out at random: index arrays into the rows of :meth:`flat` and :meth:`tensors`.

        Args:
            batch_size: the most indices in one. All have as many, give or take one.
            rng: a NumPy generator, or what ``numpy.random.default_rng`` makes one of.

        Returns:
            An iterator over int64 arrays. Together they have every transition once; reset rows are in none.

        Raises:
            RuntimeError: if the buffer is not full.
            ValueError: for a batch_size below 1.
        """
        size = checked_count("batch_size", batch_size)
        indices = np.random.default_rng(rng).permutation(np.flatnonzero(self.transitions))
        # Not a generator, which would not say what is wrong before the first batch.
        return iter(np.array_split(indices, math.ceil(len(indices) / size)) if len(indices) else [])

    def flat(self) -> Rollout:
        """The arrays with steps and lanes as one axis, (T * n, ...): views, to be indexed by :meth:`minibatches`."""

        def merged(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return array.reshape(-1, *array.shape[2:])

        return Rollout(
            observations=self._joined([merged(part[:-1]) for part in self._seen]),
            actions=merged(self.actions),
            rewards=merged(self.rewards),
            terminations=merged(self.terminations),
            truncations=merged(self.truncations),
            values=merged(self.values),
            log_probs=merged(self.log_probs),
            advantages=merged(self.advantages),
            returns=merged(self.returns),
        )

    def tensors(self) -> Rollout:
        """What :meth:`flat` gives, as torch tensors in the same memory: call it once, they show every later rollout."""
        import torch  # which nothing else here needs

        def shared(array: Any) -> Any:
            return tuple(map(shared, array)) if isinstance(array, tuple) else torch.from_numpy(array)

        return Rollout(**{name: shared(array) for name, array in vars(self.flat()).items()})

    def _joined(self, parts: list[npt.NDArray[Any]]) -> Any:
        return tuple(parts) if self._is_tuple else parts[0]

    def _parts(self, observation: Any) -> tuple[Any, ...]:
        return observation if self._is_tuple else (observation,)

    def _write(self, row: int, observation: Any) -> None:
        for part, given in zip(self._seen, self._parts(observation), strict=True):
            part[row] = given

    def _end_episodes(self, t: int, info: dict[str, Any]) -> None:
        """Keeps the final observations that will be needed; in Disabled mode, resets the lanes that ended."""
        if self._mode is AutoresetMode.SAME_STEP and "final_obs" not in info:
            return  # no episode ended: most steps are such, and this is the quickest way to tell
        terminated, truncated = self.terminations[t], self.truncations[t]
        lanes = np.flatnonzero(truncated & ~terminated)
        if self._mode is AutoresetMode.SAME_STEP:
            if len(lanes):
                self._final.append((t, lanes, self._rows_of(info["final_obs"], lanes)))
            return
        if len(lanes):
            self._final.append((t, lanes, [part[t + 1, lanes] for part in self._seen]))
        ended = terminated | truncated
        if ended.any():
            observation, _ = self.env.reset(options={"reset_mask": ended})
            for part, given in zip(self._seen, self._parts(observation), strict=True):
                part[t + 1, ended] = given[ended]

    def _rows_of(self, final_obs: Any, lanes: npt.NDArray[np.intp]) -> list[npt.NDArray[Any]]:
        """Lanes' rows of ``info["final_obs"]``: dense arrays as fastvec has them, or Gymnasium's array of objects."""
        if isinstance(final_obs, tuple):
            return [part[lanes] for part in final_obs]
        if final_obs.dtype != object:
            return [final_obs[lanes]]
        rows = [self._parts(each) for each in final_obs[lanes]]
        return [np.stack(part) for part in zip(*rows, strict=True)]

    def _require_begun(self, call: str) -> int:
        if self._filled is None:
            raise RuntimeError(f"{call}: the rollout has not begun; call the buffer's reset() first")
        return self._filled

    def _require_full(self, call: str) -> None:
        filled = self._require_begun(call)
        if filled < self.steps:
            raise RuntimeError(f"{call}: {filled} of {self.steps} rows are filled; step() fills the others")


def _autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        raise ValueError(f"RolloutBuffer: the env's metadata['autoreset_mode'] is {mode!r}; expected an AutoresetMode")
    return mode


def _empty(name: str, space: Space[Any], rows: int, n: int) -> npt.NDArray[Any]:
    known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    if not isinstance(space, known):
        raise TypeError(
            f"RolloutBuffer: the space of {name} is {space}; expected "
            f"{', '.join(each.__name__ for each in known)}{', or a Tuple of these' if name == 'observations' else ''}"
        )
    assert space.shape is not None  # as it is of all of these
    return np.zeros((rows, n, *space.shape), space.dtype)


def _copy(name: str, given: npt.ArrayLike, row: npt.NDArray[Any]) -> None:
    array = np.asarray(given)
    if array.shape != row.shape:
        raise ValueError(f"step: {name} have shape {array.shape}; expected {row.shape}, a row for each lane")
    if array.dtype != row.dtype and not np.can_cast(array.dtype, row.dtype, "same_kind"):
        raise TypeError(f"step: {name} are {array.dtype}; expected {row.dtype}, or what converts to it")
    row[...] = array
