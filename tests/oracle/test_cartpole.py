"""CartPole against Gymnasium's own."""

import gymnasium as gym
import numpy as np

import fastvec


def test_equals_sync_vector_env():
    env = fastvec.make("CartPole-v1", n=5)
    oracle = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 5)
    rng = np.random.default_rng(0)
    assert np.array_equal(env.reset(seed=0)[0], oracle.reset(seed=0)[0])
    for _ in range(1000):
        actions = rng.integers(0, 2, 5)
        for ours, theirs in zip(env.step(actions), oracle.step(actions), strict=True):
            if isinstance(ours, dict):
                assert ours == theirs
            else:
                assert ours.dtype == theirs.dtype
                assert np.array_equal(ours, theirs)
