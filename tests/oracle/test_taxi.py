"""Taxi against Gymnasium's own, in lock-step: rain, fickle passengers, illegal pick-ups and drops, action masks."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle, make_single

import fastvec
from fastvec.registry import NATIVE_ENVS

N = 5
SEEDS = (0, 99, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])
(TAXI,) = (env_id for env_id in NATIVE_ENVS if env_id.startswith("Taxi"))
SOUTH, NORTH, EAST, WEST, PICK_UP, DROP = range(6)
PLACES = [(0, 0), (0, 4), (4, 0), (4, 3)]
KEYWORDS = [
    {},
    {"is_rainy": True},
    {"fickle_passenger": True},
    {"is_rainy": True, "fickle_passenger": True},
]
if TAXI != "Taxi-v3":
    KEYWORDS += [
        {"is_rainy": True, "rainy_probability": 0.5},
        {"is_rainy": True, "rainy_probability": 1.0},
        {"is_rainy": True, "rainy_probability": 0.2, "fickle_passenger": True},
        {"fickle_passenger": True, "fickle_probability": 1.0},
        {"fickle_passenger": True, "fickle_probability": 0.0},
        {"fickle_passenger": 1, "fickle_probability": 0.8},
    ]


def compare(mode, lane_steps, policy=None, interruptions=0.01, **kwargs):
    return run_lockstep(
        lambda: fastvec.make(TAXI, n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle(TAXI, N, mode, **kwargs),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=interruptions,
    )


def parts(obs):
    """(row, column, passenger, destination) of a state."""
    return obs // 100, obs // 20 % 5, obs // 4 % 5, obs % 4


def ways():
    """ways()[goal][square] is a move that leads nearer to a place, walls considered; -1 at the place itself."""
    moves = {}
    P = make_single(TAXI).unwrapped.P
    for goal, (goal_row, goal_column) in enumerate(PLACES):
        way = {goal_row * 5 + goal_column: -1}
        while len(way) < 25:
            for square in range(25):
                for move in (SOUTH, NORTH, EAST, WEST):
                    there = P[square * 20 + 16][move][0][1] // 20
                    if square not in way and there in way and there != square:
                        way[square] = move
        moves[goal] = way
    return moves


class Driver:
    """Fetches the passenger and brings them to their destination, but for a share of random actions."""

    def __init__(self, random_share):
        self.ways = ways()
        self.rng = np.random.default_rng(0)
        self.random_share = random_share

    def __call__(self, obs):
        actions = np.empty(len(obs), np.int64)
        for lane, state in enumerate(obs.tolist()):
            row, column, passenger, destination = parts(state)
            aboard = passenger == 4
            move = self.ways[destination if aboard else passenger][row * 5 + column]
            actions[lane] = move if move >= 0 else DROP if aboard else PICK_UP
        random = self.rng.random(len(obs)) < self.random_share
        actions[random] = self.rng.integers(0, 6, random.sum())
        return actions


@pytest.mark.parametrize("kwargs", KEYWORDS, ids=str)
def test_random_play(mode, lane_steps, kwargs):
    assert compare(mode, lane_steps // 4, interruptions=0.001, **kwargs)["truncated"] > 0


@pytest.mark.parametrize("kwargs", KEYWORDS, ids=str)
def test_a_driver_who_delivers(mode, lane_steps, kwargs):
    """The moves are those of the dry town: with rain they often fail, and the driver finds the way again."""
    counts = compare(mode, lane_steps // 4, policy=Driver(0.1), **kwargs)
    assert counts["terminated"] > 10


def test_a_limit_in_the_middle_of_a_ride(mode):
    counts = compare(mode, 5_000, policy=Driver(0.0), max_episode_steps=12, fickle_passenger=True)
    assert counts["truncated"] > 0
    assert counts["terminated"] > 0


def make_pair(mode="NextStep", **kwargs):
    return Lockstep(fastvec.make(TAXI, n=N, autoreset_mode=mode, **kwargs), make_oracle(TAXI, N, mode, **kwargs))


def place_at(pair, row, column, passenger, destination):
    for env in (pair.ours, pair.oracle):
        env.set_attr("s", ((row * 5 + column) * 5 + passenger) * 4 + destination)


def test_illegal_pick_ups_and_drops_cost_10_and_change_nothing():
    pair = make_pair()
    pair.reset(seed=0)
    for square, passenger, action, reward in (
        ((2, 2), 0, PICK_UP, -10),
        ((2, 2), 0, DROP, -10),
        ((2, 2), 4, DROP, -10),
        ((0, 0), 1, PICK_UP, -10),
        ((0, 0), 4, PICK_UP, -10),
        ((0, 0), 0, DROP, -10),
    ):
        place_at(pair, *square, passenger, 3)
        before = pair.ours.get_attr("s")
        pair.step(np.full(N, action))
        assert pair.obs.tolist() == list(before)
        assert pair.ours.step(np.full(N, action))[1].tolist() == [reward] * N
        pair.oracle.step(np.full(N, action))


def test_a_drop_at_another_place_leaves_the_passenger_there():
    pair = make_pair()
    pair.reset(seed=0)
    place_at(pair, 0, 4, 4, 3)
    pair.step(np.full(N, DROP))
    assert parts(pair.obs)[2].tolist() == [1] * N
    assert pair.counts["terminated"] == 0
    pair.step(np.full(N, PICK_UP))
    assert parts(pair.obs)[2].tolist() == [4] * N


def test_a_fickle_passenger_changes_once_and_only_as_the_taxi_moves():
    """Of lanes with the mark some change to each other destination; a wall, a pick-up or a drop is no move."""
    pair = make_pair(fickle_passenger=True, max_episode_steps=-1)
    pair.reset(seed=0)
    seen = set()
    for _ in range(30):
        place_at(pair, 0, 0, 0, 3)
        for env in (pair.ours, pair.oracle):
            env.set_attr("fickle_step", [True, True, False, True, True])
        for action in (WEST, NORTH, PICK_UP, PICK_UP, WEST):
            pair.step(np.full(N, action))
            assert parts(pair.obs)[3].tolist() == [3] * N
        assert pair.ours.get_attr("fickle_step") == (True, True, False, True, True)
        pair.step(np.full(N, SOUTH))
        assert pair.ours.get_attr("fickle_step") == (False,) * N == pair.oracle.get_attr("fickle_step")
        changed = parts(pair.obs)[3]
        assert changed[2] == 3
        assert (np.delete(changed, 2) != 3).all()
        seen.update(changed.tolist())
        pair.step(np.full(N, SOUTH))
        assert parts(pair.obs)[3].tolist() == changed.tolist()
    assert seen == {0, 1, 2, 3}


def test_streams_after_odd_numbers_of_32_bit_draws():
    """A change of mind takes half of a word; the other half waits for the next, past resets."""
    pair = make_pair(fickle_passenger=True)
    pair.reset(seed=3)
    for lanes in range(1, N + 1):
        place_at(pair, 2, 2, 4, 1)
        for env in (pair.ours, pair.oracle):
            env.set_attr("fickle_step", [lane < lanes for lane in range(N)])
        pair.step(np.full(N, SOUTH))
        pair.reset()
        for ours, theirs in zip(pair.ours.np_random, pair.oracle.np_random, strict=True):
            assert ours.bit_generator.state == theirs.bit_generator.state
    halves = {generator.bit_generator.state["has_uint32"] for generator in pair.ours.np_random}
    assert halves == {0, 1}


@pytest.mark.parametrize("value", [False, True, 0, 1])
def test_fickleness_may_be_set_later(mode, value):
    def build(env):
        env.set_attr("fickle_passenger", [value, True, False, value, True])
        return env

    run_lockstep(
        lambda: build(fastvec.make(TAXI, n=N, autoreset_mode=mode)),
        lambda: build(make_oracle(TAXI, N, mode)),
        lane_steps=2_000,
        policy=Driver(0.0),
    )


def test_every_mask_is_gymnasiums():
    env, single = fastvec.make(TAXI, n=500), make_single(TAXI).unwrapped
    env.reset(seed=0)
    P = single.P
    # A pick-up away from any passenger leaves the state as it is, and so shows its mask.
    env.set_attr("s", list(range(500)))
    obs, _, _, _, info = env.step(np.full(500, PICK_UP))
    expected = [P[state][PICK_UP][0][1] for state in range(500)]
    assert obs.tolist() == expected
    assert info["action_mask"].dtype == np.int8
    assert np.array_equal(info["action_mask"], np.stack([single.action_mask(state) for state in expected]))
