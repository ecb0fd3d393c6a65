"""Runs the contract tests for every native env, and for every autoreset mode where a test takes one.

A test that takes ``any_env_id`` walks fastvec's registry, and one that takes ``env_id`` the first id of every kernel:
two ids of one kernel differ in parameters, tables and limits alone, which are the same code to most of the contract. Of
those, ``seeded_env_id`` walks the envs that draw random numbers, ``discrete_env_id`` those with Discrete actions and
``box_env_id`` the others, ``terminating_env_id`` those whose episodes may end by themselves. ``mode`` walks Gymnasium's
three modes."""

import warnings

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode
from rollout import make_single, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS


def depends_on_seed(env_id):
    """Whether Gymnasium's env shows anything else under another seed and the same actions."""
    shown = set()
    for seed in (1, 2):
        env = make_single(env_id, max_episode_steps=-1)
        actions = sample_actions(env.action_space, (20,), np.random.default_rng(0))
        seen = [env.reset(seed=seed)[0]]
        for action in actions:
            obs, _, terminated, _, _ = env.step(action)
            seen.append(obs)
            if terminated:
                break
        shown.add(tuple(np.asarray(obs).tobytes() for obs in seen))
    return len(shown) > 1


def terminates(env_id):
    """Whether random play terminates an episode: 2,000 steps of 32 lanes, as test_limit.py plays them."""
    env = fastvec.make(env_id, n=32, max_episode_steps=-1)
    env.reset(seed=8)
    rows = sample_actions(env.single_action_space, (2000, 32), np.random.default_rng(3))
    return any(env.step(row)[2].any() for row in rows)


FIRST_OF_KERNEL = list({env.kernel: env_id for env_id, env in reversed(NATIVE_ENVS.items())}.values())[::-1]


def with_actions(space):
    return [env_id for env_id in FIRST_OF_KERNEL if isinstance(make_single(env_id).action_space, space)]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Gymnasium's about old versions of envs: pytest's filters do not hold here yet
    WALKS = {
        "any_env_id": list(NATIVE_ENVS),
        "env_id": FIRST_OF_KERNEL,
        "seeded_env_id": [env_id for env_id in FIRST_OF_KERNEL if depends_on_seed(env_id)],
        "discrete_env_id": with_actions(Discrete),
        "box_env_id": with_actions(Box),
        "terminating_env_id": [env_id for env_id in FIRST_OF_KERNEL if terminates(env_id)],
        "mode": list(AutoresetMode),
    }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, values in WALKS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values, ids=lambda value: getattr(value, "value", value))
