"""fastvec: batched reinforcement-learning environments at the speed of the machine, with Gymnasium's bits."""

from typing import TYPE_CHECKING, Any

from fastvec.backends.worker_error import WorkerError
from fastvec.counter import CounterEnv
from fastvec.evaluation import evaluate
from fastvec.factory import make
from fastvec.gae import gae, reset_rows
from fastvec.gymnasium_registry import (
    register_envs,
    register_vector_entry_points,
    unregister_vector_entry_points,
)
from fastvec.headers import get_include
from fastvec.machine import show_config
from fastvec.mdp import from_tables
from fastvec.normalization import NormalizeObservation, NormalizeReward
from fastvec.rollout_buffer import RolloutBuffer
from fastvec.vec_env import VecEnv

if TYPE_CHECKING:
    from fastvec.profiling.profile import profile

__version__ = "0.1.0"

__all__ = [
    "CounterEnv",
    "NormalizeObservation",
    "NormalizeReward",
    "RolloutBuffer",
    "VecEnv",
    "WorkerError",
    "evaluate",
    "from_tables",
    "gae",
    "get_include",
    "make",
    "profile",
    "register_vector_entry_points",
    "reset_rows",
    "show_config",
    "unregister_vector_entry_points",
]


def __getattr__(name: str) -> Any:
    # All that measures is imported when it is used: most programs never do.
    if name == "profile":
        from fastvec.profiling.profile import profile

        return profile
    raise AttributeError(f"module 'fastvec' has no attribute {name!r}")


register_envs()
del register_envs
