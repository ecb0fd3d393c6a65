"""Seeds: the same seed gives the same bits, lane i of seed s is Gymnasium's env with seed s + i, and a bad seed changes
nothing."""

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from rollout import lanes_of, make_single, parts_of, play, proceed, sample_actions

import fastvec

N = 4
STEPS = 60


@pytest.fixture
def actions(request):
    """Actions for STEPS steps of N lanes of the env under test."""
    env_id = request.getfixturevalue("env_id" if "env_id" in request.fixturenames else "seeded_env_id")
    return sample_actions(make_single(env_id).action_space, (STEPS, N), np.random.default_rng(7))


def make(env_id, mode):
    return fastvec.make(env_id, n=N, autoreset_mode=mode)


def differs(trajectory, other):
    return any(trajectory[name].tobytes() != other[name].tobytes() for name in trajectory)


def test_same_seed_same_bits(env_id, mode, actions):
    env = make(env_id, mode)
    first = play(env, actions, seed=3)
    assert_same_bits(play(env, actions, seed=3), first, "the same env again")
    assert_same_bits(play(make(env_id, mode), actions, seed=3), first, "another env")


def test_another_seed_gives_other_bits(seeded_env_id, mode, actions):
    env = make(seeded_env_id, mode)
    assert differs(play(env, actions, seed=3), play(env, actions, seed=4))


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**32 - 2, 2**63 - 2, 2**64 - 2, 2**64, 2**128 - 2, 2**200])
def test_an_int_seeds_lane_i_with_seed_plus_i(env_id, mode, actions, seed):
    env = make(env_id, mode)
    from_int = play(env, actions, seed=seed)
    assert_same_bits(play(env, actions, seed=[seed + i for i in range(N)]), from_int, "a list of seeds")
    assert_same_bits(play(env, actions, seed=tuple(seed + i for i in range(N))), from_int, "a tuple of seeds")


@pytest.mark.parametrize("seed", [0, 2**32 - 1, 2**64 - 1, 2**64, 2**127, 2**128, 2**200, True])
def test_lanes_begin_as_gymnasiums_env_of_that_seed(any_env_id, seed):
    obs, _ = fastvec.make(any_env_id, n=N).reset(seed=seed)
    for lane in range(N):
        expected, _ = make_single(any_env_id).reset(seed=seed + lane)
        for part, expected_part in zip(parts_of(obs), parts_of(expected), strict=True):
            assert_same_bits(np.asarray(part[lane]), np.asarray(expected_part), f"lane {lane}")


def test_a_list_seeds_each_lane_on_its_own(env_id, mode, actions):
    seeds = [9, 9, 0, 2**130]
    together = play(make(env_id, mode), actions, seed=seeds)
    for lane, seed in enumerate(seeds):
        alone = fastvec.make(env_id, n=1, autoreset_mode=mode)
        expected = play(alone, actions[:, lane : lane + 1], seed=seed)
        assert_same_bits(lanes_of(together, slice(lane, lane + 1)), expected, f"lane {lane}")


def test_reset_without_a_seed_goes_on_with_the_streams(seeded_env_id, mode, actions):
    one, other = make(seeded_env_id, mode), make(seeded_env_id, mode)
    first = [play(env, actions, seed=1) for env in (one, other)]
    again = [play(env, actions) for env in (one, other)]
    assert_same_bits(again[0], again[1], "without a seed")
    assert differs(again[0], first[0])


def test_none_in_a_list_leaves_that_stream_running(env_id, mode, actions):
    env, whole = make(env_id, mode), make(env_id, mode)
    play(env, actions, seed=1)
    play(whole, actions, seed=1)
    mixed = play(env, actions, seed=[None, 50, None, 51])
    running = play(whole, actions)
    seeded = play(whole, actions, seed=[0, 50, 0, 51])
    assert_same_bits(lanes_of(mixed, [0, 2]), lanes_of(running, [0, 2]), "lanes with None")
    assert_same_bits(lanes_of(mixed, [1, 3]), lanes_of(seeded, [1, 3]), "lanes with a seed")


def test_a_masked_reset_seeds_the_masked_lanes_alone(env_id, mode, actions):
    mask = np.array([True, False, False, True])
    env, undisturbed, seeded = (make(env_id, mode) for _ in range(3))
    for each in (env, undisturbed):
        each.reset(seed=1)
    env.reset(seed=60, options={"reset_mask": mask})
    seeded.reset(seed=60)
    trajectory = proceed(env, actions)
    assert_same_bits(lanes_of(trajectory, ~mask), lanes_of(proceed(undisturbed, actions), ~mask), "other lanes")
    assert_same_bits(lanes_of(trajectory, mask), lanes_of(proceed(seeded, actions), mask), "masked lanes")


def test_without_any_seed_two_envs_and_all_lanes_differ(seeded_env_id, mode, actions):
    same_actions = np.repeat(actions[:, :1], N, axis=1)
    one, other = play(make(seeded_env_id, mode), same_actions), play(make(seeded_env_id, mode), same_actions)
    assert differs(one, other)
    for lane in range(1, N):
        assert differs(lanes_of(one, [0]), lanes_of(one, [lane]))


def test_none_in_the_first_list_draws_a_seed(seeded_env_id, mode, actions):
    seeds = [5, None, 5, None]
    same_actions = np.repeat(actions[:, :1], N, axis=1)
    trajectory = play(make(seeded_env_id, mode), same_actions, seed=seeds)
    assert_same_bits(lanes_of(trajectory, [0]), lanes_of(trajectory, [2]), "lanes of one seed")
    assert differs(lanes_of(trajectory, [1]), lanes_of(trajectory, [3]))


BAD_SEEDS = [
    (-1, "-1", gymnasium.error.Error),
    ("0123", "0123", (TypeError, gymnasium.error.Error)),
    (1.0, "1.0", (TypeError, gymnasium.error.Error)),
    (np.float32(1), "1.0", (TypeError, gymnasium.error.Error)),
    ([0, 1, 2], "3", ValueError),
    ([0, 1, 2, 3, 4], "5", ValueError),
    ([], "0", ValueError),
    ([0, 1, -7, 3], "-7", gymnasium.error.Error),
    ([0, 1, 2, "x"], "x", (TypeError, gymnasium.error.Error)),
    ([0, 1.5, 2, 3], "1.5", (TypeError, gymnasium.error.Error)),
]


@pytest.mark.parametrize(("seed", "named", "error"), BAD_SEEDS, ids=[repr(bad[0]) for bad in BAD_SEEDS])
def test_a_bad_seed_is_named_and_changes_nothing(env_id, mode, actions, seed, named, error):
    env, undisturbed = make(env_id, mode), make(env_id, mode)
    for each in (env, undisturbed):
        play(each, actions[:11], seed=1)
    with pytest.raises(error) as caught:
        env.reset(seed=seed)
    assert named in str(caught.value)
    assert_same_bits(proceed(env, actions), proceed(undisturbed, actions), "after the bad seed")
    assert_same_bits(play(env, actions), play(undisturbed, actions), "after the next reset")


@pytest.mark.parametrize("place", range(N))
def test_a_bad_seed_in_a_list_names_its_lane(env_id, place):
    seeds = [100, 101, 102, 103]
    seeds[place] = -5
    with pytest.raises(gymnasium.error.Error, match=rf"\b{place}\b.*-5"):
        fastvec.make(env_id, n=N).reset(seed=seeds)
