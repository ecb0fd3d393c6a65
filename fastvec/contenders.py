"""Who can be raced: the ways of stepping n envs as one, fastvec's and others', and whether each can run here."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, TypeGuard

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

import fastvec
from fastvec import registry
from fastvec._core import precisions
from fastvec.backends.sources import EnvFactory, factories_of, registered_spec
from fastvec.machine import usable_cores

# What lanes can be made of.
Source: TypeAlias = str | EnvSpec | EnvFactory

SEED = 0

# Whom every ratio is taken against.
REFERENCE = "fastvec"

# The one reason for being absent that the user can do something about.
NOT_INSTALLED = "not installed"

# A process for each env is a choice for a few slow envs; with more, a race only tells how badly a machine thrashes.
MOST_PROCESSES = 8


def ordinary_env(source: Source) -> gymnasium.Env[Any, Any]:
    """One ordinary env of what ``fastvec.make`` takes, lists aside, with nothing around it that only checks."""
    if is_native(source):
        return gymnasium.make(registry.find(source).gymnasium_id, disable_env_checker=True)
    [factory], _ = factories_of(source, 1, None, (), {})
    return factory()


def is_native(source: Source) -> TypeGuard[str]:
    """Whether it is an id that has a kernel."""
    return isinstance(source, str) and source.removeprefix("fastvec/") in registry.NATIVE_ENVS


def name_of(source: Source) -> str:
    """What a message calls it."""
    return source if isinstance(source, str) else factories_of(source, 1, None, (), {})[1]


def _spec_of(source: Source) -> EnvSpec | None:
    """The spec of an id; None for what has none."""
    if is_native(source):
        return gymnasium.spec(registry.find(source).gymnasium_id)
    if isinstance(source, str):
        return registered_spec(source)
    return source if isinstance(source, EnvSpec) else None


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

    def absence(self, source: Source, n: int) -> str | None:
        """Why this one cannot step n envs of that source, in a few words; None if it can."""
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            return NOT_INSTALLED
        if self.process_per_env and n > MOST_PROCESSES:
            return f"up to n = {MOST_PROCESSES}"
        return None

    def settings(self, n: int) -> list[dict[str, Any]]:
        """Keywords of ``make`` that are worth a try each; the fastest becomes the result."""
        return [{}]

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        """A new env of n lanes."""
        raise NotImplementedError

    def reset(self, env: Any, seed: int = SEED) -> Any:
        """Begins the episodes, with the same seed every time. Returns the first observations."""
        return env.reset(seed=seed)[0]

    def call(self, env: Any, name: str) -> Sequence[Any]:
        """Calls a method of every lane's ordinary env or its wrappers."""
        values: Sequence[Any] = env.call(name)
        return values

    def ended(self, result: tuple[Any, ...]) -> int:
        """How many rows of what ``step`` returned ended an episode."""
        return int(np.count_nonzero(np.logical_or(result[2], result[3])))

    def abandon(self, env: Any) -> None:
        """Closes an env that may be in the middle of a call."""
        env.close()


class FastvecContender(Contender):
    name = REFERENCE
    title = "fastvec"

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return fastvec.make(source, n)


class SyncContender(Contender):
    name = "sync"
    title = "Gymnasium Sync"

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return gymnasium.vector.SyncVectorEnv([partial(ordinary_env, source)] * n)


class AsyncContender(Contender):
    name = "async"
    title = "Gymnasium Async"
    process_per_env = True

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return gymnasium.vector.AsyncVectorEnv([partial(ordinary_env, source)] * n)

    def abandon(self, env: Any) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Calling `close` while waiting")
            env.close(terminate=True)


class NumpyContender(Contender):
    name = "numpy"
    title = "Gymnasium NumPy"

    def absence(self, source: Source, n: int) -> str | None:
        spec = _spec_of(source)
        # fastvec puts its own envs there: always for its own ids, on request for Gymnasium's.
        if spec is None or spec.vector_entry_point is None or str(spec.vector_entry_point).startswith("fastvec."):
            return f"no {name_of(source)}"
        return super().absence(source, n)

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        spec = _spec_of(source)
        assert spec is not None
        return gymnasium.make_vec(spec, num_envs=n, vectorization_mode="vector_entry_point")


class DummyContender(Contender):
    name = "dummy"
    title = "SB3 Dummy"
    package = "stable-baselines3"
    module = "stable_baselines3"
    same_step = True

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        from stable_baselines3.common.vec_env import DummyVecEnv

        return DummyVecEnv([partial(ordinary_env, source)] * n)

    def reset(self, env: Any, seed: int = SEED) -> Any:
        env.seed(seed)
        return env.reset()

    def call(self, env: Any, name: str) -> Sequence[Any]:
        values: Sequence[Any] = env.env_method(name)
        return values

    def ended(self, result: tuple[Any, ...]) -> int:
        return int(np.count_nonzero(result[2]))


class SubprocContender(DummyContender):
    name = "subproc"
    title = "SB3 Subproc"
    process_per_env = True

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        from stable_baselines3.common.vec_env import SubprocVecEnv

        # Its default, forkserver, imports PyTorch once in every worker. The steps take the same time either way.
        start_method = "fork" if platform.system() == "Linux" else None
        return SubprocVecEnv([partial(ordinary_env, source)] * n, start_method=start_method)

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


def envpool_id(source: Source) -> str | None:
    """The id of EnvPool's copy, if it has one; None for what is no id."""
    return ENVPOOL_IDS.get(source, source) if isinstance(source, str) else None


class EnvPoolContender(Contender):
    name = "envpool"
    title = "EnvPool"
    package = "envpool"
    module = "envpool"

    def absence(self, source: Source, n: int) -> str | None:
        reason = super().absence(source, n)
        if reason is None and envpool_id(source) not in importlib.import_module("envpool").list_all_envs():
            return f"no {name_of(source)}"
        return reason

    def settings(self, n: int) -> list[dict[str, Any]]:
        return [{"num_threads": count} for count in sorted({1, 2, usable_cores()}) if count == 1 or count <= n]

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        envpool = importlib.import_module("envpool")
        env = envpool.make(envpool_id(source), env_type="gymnasium", num_envs=n, seed=SEED, **setting)
        with warnings.catch_warnings():
            # It makes its spaces from float64 bounds, on first use, and Gymnasium warns of every one of them.
            warnings.filterwarnings("ignore", message=".*precision lowered by casting")
            _ = env.observation_space, env.action_space
        return env

    def reset(self, env: Any, seed: int = SEED) -> Any:
        # The seed was given to make: it takes none here.
        return env.reset()[0]


class Float32Contender(FastvecContender):
    name = "float32"
    title = "fastvec float32"
    on_request = True

    def absence(self, source: Source, n: int) -> str | None:
        has_one = is_native(source) and "float32" in precisions(registry.find(source).kernel)
        return None if has_one else f"no {name_of(source)}"

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return fastvec.make(source, n, precision="float32")


class ThreadsContender(FastvecContender):
    name = "threads"
    title = "fastvec, all cores"
    on_request = True

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        return fastvec.make(source, n, num_threads=usable_cores())


class FastVecEnvContender(DummyContender):
    name = "fastvecenv"
    title = "SB3 FastVecEnv"
    on_request = True

    def make(self, source: Source, n: int, **setting: Any) -> Any:
        from fastvec.sb3 import make_vec_env

        assert isinstance(source, str)
        return make_vec_env(source, n, env_kwargs={"render_mode": None})


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
