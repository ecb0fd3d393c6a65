"""make: from an id to a VecEnv."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Discrete, Tuple
from gymnasium.vector import AutoresetMode

from fastvec import _core, registry
from fastvec.vec_env import VecEnv


def make(
    id: str,
    n: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = "NextStep",
    max_episode_steps: int | None = None,
    copy: bool = True,
    **env_kwargs: Any,
) -> VecEnv:
    """Makes n native lanes of an environment."""
    native = registry.find(id)
    mode = AutoresetMode(autoreset_mode)
    env = gymnasium.make(native.gymnasium_id, max_episode_steps=max_episode_steps, disable_env_checker=True, **env_kwargs)
    limit = env.spec.max_episode_steps
    if limit == -1:
        limit = None
    spaces = env.observation_space.spaces if isinstance(env.observation_space, Tuple) else (env.observation_space,)
    discrete = isinstance(env.action_space, Discrete)
    batch = _core.Batch(
        native.kernel,
        n,
        native.read_parameters(env, _core.parameter_names(native.kernel)),
        tuple(space.shape for space in spaces),
        int(env.action_space.start) if discrete else 0,
        int(env.action_space.n) if discrete else 0,
        env.action_space.shape,
        limit,
        mode.value,
        copy,
        id,
    )
    return VecEnv(batch, env, n, mode)
