"""Gymnasium's registry: ``gym.make_vec`` of ``fastvec/...`` ids, specs that rebuild, and unchanged code made native."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rollout import make_single, play, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS

GYMNASIUMS = [env_id for env_id in NATIVE_ENVS if env_id in gym.registry]


def actions_of(env_id):
    return sample_actions(make_single(env_id).action_space, (60, 3), np.random.default_rng(0))


@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_make_vec_gives_the_native_env_and_make_the_ordinary_one(env_id):
    actions = actions_of(env_id)
    env = gym.make_vec(f"fastvec/{env_id}", num_envs=3)
    assert isinstance(env, fastvec.VecEnv)
    assert env.num_envs == 3
    assert_same_bits(play(env, actions, seed=1), play(fastvec.make(env_id, n=3), actions, seed=1), "through make_vec")
    ordinary = gym.make(f"fastvec/{env_id}")
    assert isinstance(ordinary, gym.Env)
    limit = gym.spec(NATIVE_ENVS[env_id].gymnasium_id).max_episode_steps
    assert ordinary.spec.max_episode_steps == env.spec.max_episode_steps == limit


def test_the_module_prefix_imports_fastvec():
    source = (
        "import sys, gymnasium as gym\n"
        "assert 'fastvec' not in sys.modules\n"
        "env = gym.make_vec('fastvec:fastvec/CartPole-v1', num_envs=3)\n"
        "assert type(env).__module__.startswith('fastvec') and env.num_envs == 3\n"
        "assert gym.make('fastvec:fastvec/Counter-v0').reset()[0].shape == (1,)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("env_id", NATIVE_ENVS)
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"n": 1},
        {"autoreset_mode": "SameStep"},
        {"autoreset_mode": AutoresetMode.DISABLED, "max_episode_steps": 7},
        {"max_episode_steps": -1, "copy": False, "episode_stats": True},
    ],
    ids=str,
)
def test_the_spec_rebuilds_the_env(env_id, kwargs):
    actions = actions_of(env_id)
    env = fastvec.make(env_id, **{"n": 3, **kwargs})
    again = gym.make_vec(env.spec)
    assert isinstance(again, fastvec.VecEnv)
    assert again.num_envs == env.num_envs
    assert again.metadata == env.metadata
    rows = actions[:, : env.num_envs]
    assert_same_bits(play(again, rows, seed=1), play(env, rows, seed=1), "rebuilt")
    twice = gym.make_vec(again.spec)
    assert_same_bits(play(twice, rows, seed=1), play(env, rows, seed=1), "rebuilt twice")


def test_the_spec_keeps_the_envs_own_keywords():
    actions = actions_of("CartPole-v1")
    env = fastvec.make("CartPole-v1", n=3, sutton_barto_reward=True)
    trajectory = play(gym.make_vec(env.spec), actions, seed=1)
    assert_same_bits(trajectory, play(env, actions, seed=1), "rebuilt")
    assert set(trajectory["rewards"].flat) == {0.0, -1.0}


def test_keywords_reach_the_env_through_make_vec():
    env = gym.make_vec(
        "fastvec/CartPole-v1",
        num_envs=2,
        autoreset_mode="SameStep",
        max_episode_steps=4,
        sutton_barto_reward=True,
        episode_stats=True,
    )
    env.reset(seed=0)
    for _ in range(4):
        _, rewards, _, truncations, info = env.step(np.zeros(2, np.int64))
    assert rewards.tolist() == [0.0, 0.0]
    assert truncations.all()
    assert {"final_obs", "episode"} <= set(info)


@pytest.fixture
def entry_points():
    """Undoes what a test does to the registry."""
    before = {env_id: gym.registry[env_id].vector_entry_point for env_id in GYMNASIUMS}
    yield before
    fastvec.unregister_vector_entry_points()
    assert {env_id: gym.registry[env_id].vector_entry_point for env_id in GYMNASIUMS} == before


@pytest.mark.parametrize("env_id", GYMNASIUMS)
def test_unchanged_code_becomes_native_and_back(entry_points, env_id):
    before = type(gym.make_vec(env_id, num_envs=2))
    assert before is not fastvec.VecEnv
    for _ in range(2):  # twice is safe
        fastvec.register_vector_entry_points()
        env = gym.make_vec(env_id, num_envs=2)
        assert isinstance(env, fastvec.VecEnv)
        assert isinstance(gym.make_vec(env.spec), fastvec.VecEnv)
        assert isinstance(gym.make_vec(env_id, num_envs=2, vectorization_mode="sync"), SyncVectorEnv)
    fastvec.unregister_vector_entry_points()
    assert {each: gym.registry[each].vector_entry_point for each in GYMNASIUMS} == entry_points
    assert type(gym.make_vec(env_id, num_envs=2)) is before
    fastvec.unregister_vector_entry_points()
