"""A lane depends on its own seed and actions alone: not on how many lanes there are, nor on where it stands."""

import numpy as np
import pytest
from bits import assert_same_bits
from rollout import lanes_of, make_single, play, sample_actions

import fastvec

MANY = 1000
STEPS = 120
SEED = 17


@pytest.fixture(scope="module")
def together():
    """(env_id, mode) -> the actions and the trajectory of MANY lanes, played once."""
    played = {}

    def get(env_id, mode):
        if (env_id, mode) not in played:
            space = make_single(env_id).action_space
            actions = sample_actions(space, (STEPS, MANY), np.random.default_rng(5))
            env = fastvec.make(env_id, n=MANY, autoreset_mode=mode, max_episode_steps=35)
            played[env_id, mode] = actions, play(env, actions, seed=SEED)
        return played[env_id, mode]

    return get


@pytest.mark.parametrize("lane", [0, 1, 7, 8, 63, 64, 500, 991, 992, 999])
def test_a_lane_alone_is_the_same_as_among_1000(env_id, mode, together, lane):
    actions, trajectory = together(env_id, mode)
    env = fastvec.make(env_id, n=1, autoreset_mode=mode, max_episode_steps=35)
    alone = play(env, actions[:, lane : lane + 1], seed=SEED + lane)
    assert_same_bits(alone, lanes_of(trajectory, [lane]), f"lane {lane}")


@pytest.mark.parametrize("n", [*range(2, 19), 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 511, 513])
def test_the_first_n_lanes_are_the_same_whatever_n(env_id, mode, together, n):
    actions, trajectory = together(env_id, mode)
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=35)
    assert_same_bits(play(env, actions[:, :n], seed=SEED), lanes_of(trajectory, slice(n)), f"n={n}")


def test_lanes_in_another_order_are_the_same(env_id, mode, together):
    actions, trajectory = together(env_id, mode)
    order = np.random.default_rng(0).permutation(MANY)
    env = fastvec.make(env_id, n=MANY, autoreset_mode=mode, max_episode_steps=35)
    shuffled = play(env, actions[:, order], seed=[SEED + int(lane) for lane in order])
    assert_same_bits(shuffled, lanes_of(trajectory, order), "shuffled lanes")
