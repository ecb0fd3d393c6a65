"""fastvec.evaluate: whole episodes, a quota for each lane, the same in every mode and for every vector env."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import TransformReward

import fastvec

MODES = ("SameStep", "NextStep", "Disabled")


def upright(observation):
    """Pushes to where the pole leans: it falls all the same, after 30 to 60 steps."""
    return (observation[:, 2] > 0).astype(np.int64)


def by_hand(episodes, seed, limit=None):
    """Returns and lengths of an ordinary env's episodes, one after another."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=limit)
    observation, _ = env.reset(seed=seed)
    returns, lengths = [], []
    for _ in range(episodes):
        total, steps, ended = 0.0, 0, False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(int(upright(observation[np.newaxis])[0]))
            total, steps, ended = total + reward, steps + 1, terminated or truncated
        returns.append(total)
        lengths.append(steps)
        observation, _ = env.reset()
    return returns, lengths


@pytest.mark.parametrize("limit", [None, 40])
@pytest.mark.parametrize("kind", ["fastvec", "SyncVectorEnv"])
@pytest.mark.parametrize("mode", MODES)
def test_same_episodes_as_one_env_a_lane(mode, kind, limit):
    """11 episodes in 4 lanes: 3 each but for the last, in order of lanes, whoever is done first."""
    if kind == "fastvec":
        env = fastvec.make("CartPole-v1", n=4, autoreset_mode=mode, max_episode_steps=limit)
    else:
        one = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=limit)]
        env = SyncVectorEnv(one * 4, autoreset_mode=AutoresetMode(mode))
    result = fastvec.evaluate(upright, env, episodes=11, seed=7)
    lanes = [by_hand(3 if lane < 3 else 2, 7 + lane, limit) for lane in range(4)]
    assert result.returns.tolist() == [total for returns, _ in lanes for total in returns]
    assert result.lengths.tolist() == [steps for _, lengths in lanes for steps in lengths]
    assert result.returns.dtype == np.float64
    assert result.lengths.dtype == np.int64
    assert len(set(result.lengths.tolist())) > 2
    assert result.mean == np.mean(result.returns)
    assert result.std == np.std(result.returns)


@pytest.mark.parametrize("mode", MODES)
def test_rewards_of_reset_rows_do_not_count(mode):
    env = fastvec.make("MountainCar-v0", n=3, autoreset_mode=mode, max_episode_steps=9)
    env = TransformReward(env, lambda rewards: rewards + 3)
    result = fastvec.evaluate(lambda observation: np.zeros(3, np.int64), env, episodes=7, seed=0)
    assert result.returns.tolist() == [18.0] * 7
    assert result.lengths.tolist() == [9] * 7


def test_short_episodes_are_not_favoured():
    """One lane's episodes are ten times as long: it has its share all the same."""

    class Lengths(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, length):
            self.length, self.elapsed = length, 0

        def reset(self, *, seed=None, options=None):
            self.elapsed = 0
            return 0, {}

        def step(self, action):
            self.elapsed += 1
            return 0, float(self.length), self.elapsed == self.length, False, {}

    env = SyncVectorEnv([lambda: Lengths(2), lambda: Lengths(20)])
    result = fastvec.evaluate(lambda observation: observation, env, episodes=6)
    assert result.lengths.tolist() == [2, 2, 2, 20, 20, 20]
    assert result.returns.tolist() == [4.0] * 3 + [400.0] * 3


def test_fewer_episodes_than_lanes():
    env = fastvec.make("CartPole-v1", n=5)
    result = fastvec.evaluate(upright, env, episodes=2, seed=3)
    assert result.lengths.tolist() == [by_hand(1, 3)[1][0], by_hand(1, 4)[1][0]]


def test_the_policy_sees_every_observation_once():
    seen = []

    def policy(observation):
        seen.append(observation.copy())
        return np.ones(2, np.int64)

    env = fastvec.make("CartPole-v1", n=2, autoreset_mode="Disabled", copy=False)
    result = fastvec.evaluate(policy, env, episodes=2, seed=0)
    assert len(seen) == result.lengths.max()
    assert len(np.unique(np.stack(seen), axis=0)) == len(seen)


def test_the_result_does_not_change_and_prints_in_one_line():
    env = fastvec.make("CartPole-v1", n=2, max_episode_steps=5)
    result = fastvec.evaluate(upright, env, episodes=4, seed=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.returns = None
    assert str(result) == "return 5.00 +- 0.00 over 4 episodes"


def test_refusals():
    env = fastvec.make("CartPole-v1", n=2)
    with pytest.raises(ValueError, match="episodes is 0"):
        fastvec.evaluate(upright, env, episodes=0)
    with pytest.raises(TypeError, match="env is CartPoleEnv; expected a VectorEnv"):
        fastvec.evaluate(upright, gymnasium.make("CartPole-v1").unwrapped)
    env.metadata = {}
    with pytest.raises(ValueError, match=r"metadata\['autoreset_mode'\] is None"):
        fastvec.evaluate(upright, env)
