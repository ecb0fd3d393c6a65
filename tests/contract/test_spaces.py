"""Spaces, metadata and spec are those of Gymnasium's env, and what the env returns is in them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from rollout import make_single, parts_of, sample_actions

import fastvec


@pytest.mark.parametrize("n", [1, 5])
def test_spaces_are_gymnasiums(any_env_id, n):
    env, single = fastvec.make(any_env_id, n=n), make_single(any_env_id)
    assert env.num_envs == n
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    assert env.observation_space == batch_space(single.observation_space, n)
    assert env.action_space == batch_space(single.action_space, n)
    for ours, theirs in (
        (env.observation_space, batch_space(single.observation_space, n)),
        (env.action_space, batch_space(single.action_space, n)),
    ):
        assert type(ours) is type(theirs)
        assert ours.dtype == theirs.dtype


def test_metadata_is_gymnasiums_with_the_mode_added_and_without_windows(any_env_id, mode):
    metadata = make_single(any_env_id).unwrapped.metadata
    before = dict(metadata)
    env = fastvec.make(any_env_id, n=2, autoreset_mode=mode)
    render_modes = [each for each in before["render_modes"] if each != "human"]
    assert env.metadata == {**before, "autoreset_mode": mode, "render_modes": render_modes}
    assert metadata == before, "the class's own"


def test_the_mode_may_be_given_by_name(env_id, mode):
    assert fastvec.make(env_id, autoreset_mode=mode.value).metadata["autoreset_mode"] is mode


def test_the_mode_is_next_step_by_default(env_id):
    assert fastvec.make(env_id).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("bad", ["next_step", "", None, 0, "NEXTSTEP"])
def test_any_other_mode_is_refused(env_id, bad):
    with pytest.raises((ValueError, TypeError)) as caught:
        fastvec.make(env_id, autoreset_mode=bad)
    assert repr(bad) in str(caught.value)


def test_is_a_vector_env_with_a_settable_spec(any_env_id):
    env = fastvec.make(any_env_id, n=3)
    assert isinstance(env, VectorEnv)
    assert env.unwrapped is env
    assert env.spec.id
    assert "num_envs=3" in repr(env)
    spec = gymnasium.spec("CartPole-v1")
    env.spec = spec
    assert env.spec is spec


def test_returns_arrays_of_the_declared_dtype_and_shape(env_id, mode):
    n = 7
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=6)
    rng = np.random.default_rng(0)
    obs, info = env.reset(seed=3)
    assert obs in env.observation_space
    assert type(info) is dict
    for _ in range(60):
        obs, rewards, terminations, truncations, info = env.step(sample_actions(env.single_action_space, (n,), rng))
        assert rewards.dtype == np.float64
        assert terminations.dtype == truncations.dtype == np.bool_
        assert rewards.shape == terminations.shape == truncations.shape == (n,)
        for array in (*(obs if isinstance(obs, tuple) else (obs,)), rewards, terminations, truncations):
            assert type(array) is np.ndarray
            assert array.flags.c_contiguous
            assert array.flags.aligned
            assert array.flags.writeable
        ended = terminations | truncations
        if mode == AutoresetMode.DISABLED and ended.any():
            obs, _ = env.reset(options={"reset_mask": ended})
        assert type(info) is dict


def test_every_observation_is_in_the_space(any_env_id, mode):
    """Also the last ones of an episode: only a lane that is stepped on past its end could leave the space."""
    n = 16
    env = fastvec.make(any_env_id, n=n, autoreset_mode=mode)
    rng = np.random.default_rng(1)
    env.reset(seed=4)
    for _ in range(200):
        obs, _, terminations, truncations, info = env.step(sample_actions(env.single_action_space, (n,), rng))
        assert obs in env.observation_space
        if "final_obs" in info:
            for lane in np.flatnonzero(info["_final_obs"]):
                final = tuple(part[lane] for part in parts_of(info["final_obs"]))
                assert (final if isinstance(obs, tuple) else final[0]) in env.single_observation_space
        ended = terminations | truncations
        if mode == AutoresetMode.DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})
