"""evaluate: returns and lengths of whole episodes under a policy, without favour to short ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

from fastvec.factory import checked_count


@dataclass(frozen=True, eq=False)  # of arrays, == is no bool
class Evaluation:
    """What :func:`evaluate` found.

    Attributes:
        returns: float64 (episodes,), each episode's sum of rewards: those of lane 0 in the order they were played, then
            those of lane 1, and so on.
        lengths: int64 (episodes,), each episode's steps.
    """

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean of the returns."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """The standard deviation of the returns, of these episodes as all there are (no Bessel correction)."""
        return float(self.returns.std())

    def __str__(self) -> str:
        """In one line, as logs want it."""
        return f"return {self.mean:.2f} +- {self.std:.2f} over {len(self.returns)} episodes"


def evaluate(
    policy: Callable[[Any], Any], env: VectorEnv[Any, Any, Any], episodes: int = 100, *, seed: Any = None
) -> Evaluation:
    """Plays whole episodes with a policy.

    Each lane has its quota: episodes // n, and one more in each of the first episodes % n lanes. The first episodes to
    end anywhere would be the short ones, and bad or good for it.

    Args:
        policy: a function from the observations of all lanes, (n, ...), to their actions, as ``env.step`` takes them.
        env: any ``gymnasium.vector.VectorEnv``, in any autoreset mode. It is reset first, and left where the last
            episode ends. An env without a step limit may never end: give it one (``max_episode_steps``).
        episodes: how many, in all lanes together.
        seed: for ``env.reset``: the same seed and policy give the same result.

    Returns:
        Their returns and lengths, and ``mean`` and ``std`` of the returns.

    Raises:
        TypeError: for something that is no vector env.
        ValueError: for episodes below 1, and for an env whose metadata do not tell its autoreset mode.

    >>> import fastvec
    >>> import numpy as np
    >>> env = fastvec.make("CartPole-v1", n=8, autoreset_mode="SameStep")
    >>> result = fastvec.evaluate(lambda obs: (obs[:, 2] + obs[:, 3] > 0).astype(int), env, episodes=20, seed=0)
    >>> len(result.returns), result.returns.max() <= 500
    (20, np.True_)
    """
    if not isinstance(env, VectorEnv):
        raise TypeError(f"evaluate: env is {type(env).__name__}; expected a VectorEnv, such as fastvec.make's")
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        raise ValueError(f"evaluate: the env's metadata['autoreset_mode'] is {mode!r}; expected an AutoresetMode")
    episodes = checked_count("episodes", episodes)
    n = env.num_envs
    quota = np.full(n, episodes // n)
    quota[: episodes % n] += 1
    place = np.cumsum(quota) - quota  # of each lane's next episode in the results
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    so_far, steps = np.zeros(n), np.zeros(n, np.int64)
    pending = np.zeros(n, bool)  # lanes whose next row is a reset
    observation, _ = env.reset(seed=seed)
    while quota.any():
        observation, rewards, terminations, truncations, _ = env.step(policy(observation))
        so_far += np.where(pending, 0, rewards)
        steps += ~pending
        ended = terminations | truncations
        if mode is AutoresetMode.NEXT_STEP:
            pending = ended
        if not ended.any():
            continue
        counted = ended & (quota > 0)
        returns[place[counted]], lengths[place[counted]] = so_far[counted], steps[counted]
        place[counted] += 1
        quota[counted] -= 1
        so_far[ended], steps[ended] = 0, 0
        if mode is AutoresetMode.DISABLED:
            observation, _ = env.reset(options={"reset_mask": ended})
    return Evaluation(returns, lengths)
