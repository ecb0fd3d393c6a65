"""Gymnasium's own vector wrappers around fastvec and around SyncVectorEnv give the same, in every mode they accept."""

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from lockstep import compare_infos
from rollout import make_oracle, make_single, reset_ended, sample_actions

import fastvec

N = 4
STEPS = 80
# Gymnasium's own, when its spaces are cast to another dtype.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:Conversion of an array")


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


def wrap_and_reset(wrapper, env):
    """The wrapped env and its first observation, or the kind of error that the wrapper raises for this env and mode."""
    try:
        wrapped = wrapper(env)
        return wrapped, wrapped.reset(seed=3)[0]
    except Exception as error:  # whichever it is, the same is expected of the other
        return type(error)


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_a_wrapper_gives_the_same(env_id, mode, wrapper):
    result = wrap_and_reset(wrapper, fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=13))
    expected = wrap_and_reset(wrapper, make_oracle(env_id, N, mode, max_episode_steps=13))
    if isinstance(expected, type):
        assert result is expected
        return
    (ours, first), (theirs, their_first) = result, expected
    assert_same_bits(first, their_first, "the first observation")
    assert ours.observation_space == theirs.observation_space
    rng = np.random.default_rng(0)
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
    if mode == AutoresetMode.SAME_STEP and isinstance(make_single(env_id).observation_space, spaces.Tuple):
        return  # docs/differences.md, D1
    env = wrappers.DictInfoToList(fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=3))
    env.reset(seed=0)
    for step in range(3):
        result = env.step(sample_actions(env.single_action_space, (N,), np.random.default_rng(0)))
        ended = result[2] | result[3]
        assert len(result[4]) == N
        for lane, info in enumerate(result[4]):
            assert ("final_obs" in info) == (mode == AutoresetMode.SAME_STEP and ended[lane])
        assert ended.any() or step < 2
        reset_ended(env, result)
