"""What may be called when: nothing before the first reset, nothing after close, no step of a lane that has ended."""

import copy

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from rollout import make_single, play, proceed, sample_actions

import fastvec

N = 5


@pytest.fixture
def actions(env_id):
    return sample_actions(make_single(env_id).action_space, (30, N), np.random.default_rng(7))


def make(env_id, mode):
    return fastvec.make(env_id, n=N, autoreset_mode=mode, max_episode_steps=6)


def test_a_step_before_the_first_reset_is_refused(env_id, mode, actions):
    env = make(env_id, mode)
    with pytest.raises(ResetNeeded, match="step"):
        env.step(actions[0])
    assert_same_bits(play(env, actions, seed=1), play(make(env_id, mode), actions, seed=1), "after the refusal")


def test_the_first_reset_must_be_of_all_lanes(env_id, mode):
    with pytest.raises(ResetNeeded, match="reset"):
        make(env_id, mode).reset(seed=0, options={"reset_mask": np.arange(N) < 2})


def test_after_close_every_call_is_refused(env_id, mode, actions):
    env = make(env_id, mode)
    env.reset(seed=0)
    assert not env.closed
    env.close()
    assert env.closed
    with pytest.raises(ClosedEnvironmentError, match="step"):
        env.step(actions[0])
    with pytest.raises(ClosedEnvironmentError, match="reset"):
        env.reset()
    with pytest.raises(ClosedEnvironmentError, match="reset"):
        env.reset(seed=0, options={"reset_mask": np.ones(N, bool)})


def test_closing_twice_is_closing_once(env_id, mode):
    env = make(env_id, mode)
    env.close()
    env.close()
    assert env.closed


def test_an_env_may_be_closed_before_it_was_reset(env_id, mode):
    env = make(env_id, mode)
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.reset()


@pytest.mark.parametrize("copy_outputs", [True, False])
def test_what_was_returned_outlives_the_env(env_id, mode, actions, copy_outputs):
    env = fastvec.make(env_id, n=N, autoreset_mode=mode, copy=copy_outputs)
    env.reset(seed=0)
    returned = env.step(actions[0])
    before = copy.deepcopy(returned)
    env.close()
    del env
    assert_same_bits(returned, before, "after close")


def test_spaces_and_spec_stay_readable_after_close(env_id):
    env = make(env_id, AutoresetMode.NEXT_STEP)
    env.close()
    assert env.num_envs == N
    assert env.spec.id
    assert env.action_space.contains(env.action_space.sample())


def test_in_disabled_mode_a_lane_that_ended_must_be_reset_first(env_id, actions):
    env, obedient = (make(env_id, AutoresetMode.DISABLED) for _ in range(2))
    for each in (env, obedient):
        each.reset(seed=1)
    ended = np.zeros(N, bool)
    for step in range(6):
        _, _, terminations, truncations, _ = env.step(actions[step])
        obedient.step(actions[step])
        ended = terminations | truncations
        if ended.any():
            break
    assert ended.any()
    with pytest.raises(ResetNeeded, match=rf"\b{np.flatnonzero(ended)[0]}\b"):
        env.step(actions[6])
    others = ~ended
    if others.any():
        env.reset(options={"reset_mask": others})
        obedient.reset(options={"reset_mask": others})
        with pytest.raises(ResetNeeded):
            env.step(actions[6])
    for each in (env, obedient):
        each.reset(options={"reset_mask": ended})
    assert_same_bits(proceed(env, actions), proceed(obedient, actions), "after the refused steps")
