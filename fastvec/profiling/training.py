"""--train: the same algorithm, steps and batch at every n: faster per step need not be learning as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fastvec
from fastvec.contenders import Source, is_native

# Rows of a rollout, n lanes times steps: what PPO's example is tuned for.
BATCH = 2048
STEPS, QUICK_STEPS = 50_000, 10 * BATCH
SEEDS, QUICK_SEEDS = 5, 2
EPISODES = 50


@dataclass(frozen=True)
class Training:
    """What training with n lanes came to.

    Attributes:
        n: number of lanes.
        rollout: steps of each between updates; n times this is the same for every n.
        steps: env-steps of a run.
        seconds: wall-clock of each seed's run.
        returns: mean return of each seed's greedy policy over EPISODES episodes.
    """

    n: int
    rollout: int
    steps: int
    seconds: tuple[float, ...]
    returns: tuple[float, ...]

    @property
    def return_variance(self) -> float:
        """The variance of the final returns over seeds (with Bessel's correction); 0 of one seed."""
        return float(np.var(self.returns, ddof=1)) if len(self.returns) > 1 else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "rollout": self.rollout,
            "steps": self.steps,
            "seconds": {"median": float(np.median(self.seconds)), "samples": list(self.seconds)},
            "final_return": {
                "mean": float(np.mean(self.returns)),
                "variance": self.return_variance,
                "samples": list(self.returns),
            },
        }


def compared(training: Sequence[Training]) -> str:
    """Which n was done first and which learned best, where seeds tell them apart (by two standard errors)."""
    fastest = min(training, key=lambda one: float(np.median(one.seconds)))
    best = max(training, key=lambda one: float(np.mean(one.returns)))
    first = f"Training: n = {fastest.n} was done first ({np.median(fastest.seconds):.2f} s)"
    if fastest == best:
        return f"{first} and had the highest final return ({np.mean(best.returns):.1f})."
    difference = float(np.mean(best.returns) - np.mean(fastest.returns))
    error = ((best.return_variance + fastest.return_variance) / len(best.returns)) ** 0.5
    if difference <= 2 * error:
        return (
            f"{first}; the final returns of {len(best.returns)} seeds do not tell it apart from n = {best.n}, which "
            f"had the highest ({np.mean(best.returns):.1f} against {np.mean(fastest.returns):.1f})."
        )
    return (
        f"{first}, with a final return of {np.mean(fastest.returns):.1f}; n = {best.n} learned best, with "
        f"{np.mean(best.returns):.1f}: faster per step is not learning as well."
    )


def require_training(source: Source) -> None:
    """Raises ValueError or ImportError, which say what to do, where the example cannot train on a source."""
    if not is_native(source):
        raise ValueError(
            "train needs an id that has a kernel (`fastvec envs` lists them): the PPO example trains on those"
        )
    try:
        from fastvec.examples import ppo  # noqa: F401
    except ImportError as error:
        raise ImportError(f'train needs PyTorch ({error}); run: pip install "fastvec[train]"') from None


def trainable_counts(counts: Sequence[int]) -> tuple[int, ...]:
    """Those numbers of lanes of which a whole number of steps makes a batch."""
    return tuple(n for n in counts if BATCH % n == 0)


def train(env_id: str, n: int, steps: int, seeds: Sequence[int], advance: Callable[[int], None]) -> Training:
    """Trains with PPO (examples/ppo.py), once with each seed.

    Args:
        env_id: a native id.
        n: number of lanes, by which BATCH can be divided.
        steps: env-steps of a run.
        seeds: of weights, actions and lanes.
        advance: called with 1 after each run.
    """
    from fastvec.examples import ppo

    seconds, returns = [], []
    for seed in seeds:
        run = ppo.Run(ppo.Settings(env_id=env_id, steps=steps, seed=seed, num_envs=n, rollout=BATCH // n))
        began = time.perf_counter()
        while not run.is_done:
            run.advance()
        seconds.append(time.perf_counter() - began)
        env = ppo.make_env(env_id, EPISODES)
        returns.append(fastvec.evaluate(run.agent.greedy, env, EPISODES, seed=seed + 10**6).mean)
        env.close()
        run.env.close()
        advance(1)
    return Training(n, BATCH // n, steps, tuple(seconds), tuple(returns))
