"""Who can be raced: the ways of stepping n envs as one, fastvec's and others', and whether each can run here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import fastvec
from fastvec import registry
from fastvec._core import precisions

SEED = 0

# Whom every ratio is taken against.
REFERENCE = "fastvec"

# The one reason for being absent that the user can do something about.
NOT_INSTALLED = "not installed"

# A process for each env is a choice for a few slow envs; with more, a race only tells how badly a machine thrashes.
MOST_PROCESSES = 8


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Of what all contenders of a race make their envs: a native id, or for those that step ordinary envs what makes one.
EnvSource = str | Callable[[], gymnasium.Env[Any, Any]]


def ordinary_env(env_id: EnvSource) -> gymnasium.Env[Any, Any]:
    """One ordinary Gymnasium env, of a native id with nothing around it that only checks."""
    if not isinstance(env_id, str):
        return env_id()
    return gymnasium.make(registry.find(env_id).gymnasium_id, disable_env_checker=True)


class Contender:
    """A way of stepping n envs as one that can be raced against the others.

    Attributes:
        name: what ``--only`` takes.
        title: what a table shows.
        package: the distribution it comes with, None if fastvec itself requires it.
        module: what is imported from that distribution.
        same_step: whether a row that ends an episode already shows the next one's first observation. If not, the
            row after it is the reset: it took time, but is no env-step.
        process_per_env: whether every env has a process of its own.
        on_request: whether it takes part only if it is asked for.
    """

    name: str
    title: str
    package: str | None = None
    module: str | None = None
    same_step = False
    process_per_env = False
    on_request = False

    def absence(self, env_id: Any, n: int) -> str | None:
        """Why this one cannot step n envs of that id, in a few words; None if it can."""
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            return NOT_INSTALLED
        if self.process_per_env and n > MOST_PROCESSES:
            return f"up to n = {MOST_PROCESSES}"
        return None

    def settings(self, n: int) -> list[dict[str, Any]]:
        """Keywords of ``make`` that are worth a try each; the fastest becomes the result."""
        return [{}]

    def make(self, env_id: Any, n: int, **setting: Any) -> Any:
        """A new env of n lanes."""
        raise NotImplementedError

    def reset(self, env: Any) -> None:
        """Begins the episodes, with the same seed every time."""
        env.reset(seed=SEED)

    def ended(self, result: tuple[Any, ...]) -> int:
        """How many rows of what ``step`` returned ended an episode."""
        return int(np.count_nonzero(np.logical_or(result[2], result[3])))

    def abandon(self, env: Any) -> None:
        """Closes an env that may be in the middle of a call."""
        env.close()


class FastvecContender(Contender):
    name = REFERENCE
    title = "fastvec"

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        return fastvec.make(env_id, n)


class SyncContender(Contender):
    name = "sync"
    title = "Gymnasium Sync"

    def make(self, env_id: EnvSource, n: int, **setting: Any) -> Any:
        return gymnasium.vector.SyncVectorEnv([partial(ordinary_env, env_id)] * n)


class AsyncContender(Contender):
    name = "async"
    title = "Gymnasium Async"
    process_per_env = True

    def make(self, env_id: EnvSource, n: int, **setting: Any) -> Any:
        return gymnasium.vector.AsyncVectorEnv([partial(ordinary_env, env_id)] * n)

    def abandon(self, env: Any) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Calling `close` while waiting")
            env.close(terminate=True)


class NumpyContender(Contender):
    name = "numpy"
    title = "Gymnasium NumPy"

    def absence(self, env_id: str, n: int) -> str | None:
        entry_point = gymnasium.spec(registry.find(env_id).gymnasium_id).vector_entry_point
        # fastvec puts its own envs there: always for its own ids, on request for Gymnasium's.
        if entry_point is None or str(entry_point).startswith("fastvec."):
            return f"no {env_id}"
        return super().absence(env_id, n)

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        gymnasium_id = registry.find(env_id).gymnasium_id
        return gymnasium.make_vec(gymnasium_id, num_envs=n, vectorization_mode="vector_entry_point")


class DummyContender(Contender):
    name = "dummy"
    title = "SB3 Dummy"
    package = "stable-baselines3"
    module = "stable_baselines3"
    same_step = True

    def make(self, env_id: EnvSource, n: int, **setting: Any) -> Any:
        from stable_baselines3.common.vec_env import DummyVecEnv

        return DummyVecEnv([partial(ordinary_env, env_id)] * n)

    def reset(self, env: Any) -> None:
        env.seed(SEED)
        env.reset()

    def ended(self, result: tuple[Any, ...]) -> int:
        return int(np.count_nonzero(result[2]))


class SubprocContender(DummyContender):
    name = "subproc"
    title = "SB3 Subproc"
    process_per_env = True

    def make(self, env_id: EnvSource, n: int, **setting: Any) -> Any:
        from stable_baselines3.common.vec_env import SubprocVecEnv

        # Its default, forkserver, imports PyTorch once in every worker. The steps take the same time either way.
        start_method = "fork" if platform.system() == "Linux" else None
        return SubprocVecEnv([partial(ordinary_env, env_id)] * n, start_method=start_method)

    def abandon(self, env: Any) -> None:
        # Its own close waits for answers, which may have been read already when the call was interrupted.
        for process in env.processes:
            process.kill()  # one that was forked in a bad moment may not even hear of SIGTERM
        for process in env.processes:
            process.join()
        for remote in env.remotes:
            remote.close()
        env.closed = True


# EnvPool's copies of envs that Gymnasium has revised since.
ENVPOOL_IDS = {"Taxi-v4": "Taxi-v3"}


class EnvPoolContender(Contender):
    name = "envpool"
    title = "EnvPool"
    package = "envpool"
    module = "envpool"

    def absence(self, env_id: str, n: int) -> str | None:
        reason = super().absence(env_id, n)
        envpool_id = ENVPOOL_IDS.get(env_id, env_id)
        if reason is None and envpool_id not in importlib.import_module("envpool").list_all_envs():
            return f"no {env_id}"
        return reason

    def settings(self, n: int) -> list[dict[str, Any]]:
        return [{"num_threads": count} for count in sorted({1, 2, usable_cores()}) if count == 1 or count <= n]

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        envpool = importlib.import_module("envpool")
        env = envpool.make(ENVPOOL_IDS.get(env_id, env_id), env_type="gymnasium", num_envs=n, seed=SEED, **setting)
        with warnings.catch_warnings():
            # It makes its spaces from float64 bounds, on first use, and Gymnasium warns of every one of them.
            warnings.filterwarnings("ignore", message=".*precision lowered by casting")
            _ = env.observation_space, env.action_space
        return env

    def reset(self, env: Any) -> None:
        # The seed was given to make: it takes none here.
        env.reset()


class Float32Contender(FastvecContender):
    name = "float32"
    title = "fastvec float32"
    on_request = True

    def absence(self, env_id: str, n: int) -> str | None:
        return None if "float32" in precisions(registry.find(env_id).kernel) else f"no {env_id}"

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        return fastvec.make(env_id, n, precision="float32")


class ThreadsContender(FastvecContender):
    name = "threads"
    title = "fastvec, all cores"
    on_request = True

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        return fastvec.make(env_id, n, num_threads=usable_cores())


class FastVecEnvContender(DummyContender):
    name = "fastvecenv"
    title = "SB3 FastVecEnv"
    on_request = True

    def make(self, env_id: EnvSource, n: int, **setting: Any) -> Any:
        from fastvec.sb3 import make_vec_env

        return make_vec_env(env_id, n, env_kwargs={"render_mode": None})


# The order is that of the first round. Those that fork come before EnvPool, which starts threads.
CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        FastvecContender(),
        Float32Contender(),
        ThreadsContender(),
        SyncContender(),
        AsyncContender(),
        NumpyContender(),
        DummyContender(),
        FastVecEnvContender(),
        SubprocContender(),
        EnvPoolContender(),
    )
}
