"""Gymnasium's own vector wrappers around fastvec and around SyncVectorEnv give the same, in every mode they accept."""

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from lockstep import compare_infos
from rollout import make_oracle, sample_actions

import fastvec

N = 4
STEPS = 80


def float64_observations(env):
    single = spaces.Box(-np.inf, np.inf, env.single_observation_space.shape, np.float64)
    return wrappers.TransformObservation(env, lambda obs: obs.astype(np.float64) * 2, single_observation_space=single)


WRAPPERS = {
    "ClipReward": lambda env: wrappers.ClipReward(env, 0.05, 0.5),
    "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.float64),
    "FlattenObservation": wrappers.FlattenObservation,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "TransformAction": lambda env: wrappers.TransformAction(env, lambda actions: actions),
    "TransformObservation": float64_observations,
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda rewards: rewards * 3),
    "VectorizeTransformObservation": lambda env: wrappers.VectorizeTransformObservation(
        env, lambda single: gymnasium.wrappers.DtypeObservation(single, np.float64)
    ),
}


def wrap(wrapper, env):
    """The wrapped env, or the kind of error that the wrapper raises for this mode."""
    try:
        return wrapper(env)
    except Exception as error:  # whichever it is, the same is expected of the other
        return type(error)


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_a_wrapper_gives_the_same(env_id, mode, wrapper):
    ours = wrap(wrapper, fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=13))
    theirs = wrap(wrapper, make_oracle(env_id, N, mode, max_episode_steps=13))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert ours.observation_space == theirs.observation_space
    rng = np.random.default_rng(0)
    results = [env.reset(seed=3) for env in (ours, theirs)]
    assert_same_bits(results[0][0], results[1][0], "the first observation")
    for step in range(STEPS):
        actions = sample_actions(ours.single_action_space, (N,), rng)
        result, expected = (env.step(actions) for env in (ours, theirs))
        assert_same_bits(result[:4], expected[:4], f"step {step}")
        compare_infos(result[4], expected[4], f"step {step}: info")
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            after = [env.reset(options={"reset_mask": ended.copy()})[0] for env in (ours, theirs)]
            assert_same_bits(after[0], after[1], f"the reset after step {step}")


def test_dict_info_to_list(env_id, mode):
    env = wrappers.DictInfoToList(fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=3))
    env.reset(seed=0)
    for step in range(3):
        *_, infos = env.step(sample_actions(env.single_action_space, (N,), np.random.default_rng(0)))
        assert len(infos) == N
        for info in infos:
            assert ("final_obs" in info) == (mode == AutoresetMode.SAME_STEP and step == 2)
