"""from_tables: a user's own finite problem, against an ordinary env over the same table, and what it refuses."""

import copy
import doctest
import pickle

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.envs.toy_text.utils import categorical_sample
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from lockstep import run_lockstep
from rollout import play, proceed

import fastvec
from fastvec import mdp, tables

N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])


class TableEnv(gymnasium.Env):
    """An ordinary env that steps a toy-text ``P``: the reference."""

    def __init__(self, P, distribution):
        self.P, self.distribution = P, distribution
        self.observation_space = gymnasium.spaces.Discrete(len(P))
        self.action_space = gymnasium.spaces.Discrete(len(P[0]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = int(categorical_sample(self.distribution, self.np_random))
        return self.s, {"prob": 1.0}

    def step(self, action):
        transitions = self.P[self.s][int(action)]
        chosen = categorical_sample([transition[0] for transition in transitions], self.np_random)
        prob, self.s, reward, terminated = transitions[chosen]
        return self.s, reward, terminated, False, {"prob": prob}


def make_reference(P, distribution, mode, limit=None, n=N):
    def make_one():
        env = TableEnv(P, distribution)
        return env if limit is None else TimeLimit(env, limit)

    return SyncVectorEnv([make_one] * n, autoreset_mode=mode)


def random_table(num_states, num_actions, most, seed):
    """A table with 1 to ``most`` transitions a pair, some of probability 0; and a distribution with zeros."""
    rng = np.random.default_rng(seed)
    P = {}
    for state in range(num_states):
        P[state] = {}
        for action in range(num_actions):
            count = int(rng.integers(1, most + 1))
            probs = rng.dirichlet(np.ones(count)) * (rng.random(count) < 0.8)
            if probs.sum() == 0:
                probs[-1] = 1
            P[state][action] = [
                (float(prob), int(rng.integers(num_states)), float(rng.normal()), bool(rng.random() < 0.1))
                for prob in probs / probs.sum()
            ]
    distribution = rng.dirichlet(np.ones(num_states)) * (np.arange(num_states) % 3 != 0)
    if distribution.sum() == 0:
        distribution[-1] = 1
    return P, distribution / distribution.sum()


def random_dense(num_states, num_actions, seed):
    """(P, rewards, terminal, distribution) as arrays, P with zeros, the first state among them."""
    rng = np.random.default_rng(seed)
    P = rng.random((num_states, num_actions, num_states)) * (rng.random((num_states, num_actions, num_states)) < 0.6)
    P[..., -1] += 0.01
    P /= P.sum(axis=-1, keepdims=True)
    return P, rng.normal(size=P.shape), rng.random(num_states) < 0.2, rng.dirichlet(np.ones(num_states))


def as_lists(P, rewards, terminal):
    """The toy-text form of dense arrays: each pair has a transition to every state."""
    states = range(len(P))
    return [
        [
            [(P[s, a, t], t, rewards[s, a, t] if rewards.ndim == 3 else rewards[s, a], terminal[t]) for t in states]
            for a in range(P.shape[1])
        ]
        for s in states
    ]


@pytest.fixture(params=list(AutoresetMode), ids=lambda mode: mode.value)
def mode(request):
    return request.param


@pytest.mark.parametrize(
    ("num_states", "num_actions", "most"), [(1, 1, 1), (2, 1, 2), (3, 2, 3), (7, 4, 1), (20, 5, 9), (50, 3, 64)]
)
@pytest.mark.parametrize("limit", [None, 6])
def test_a_table_equals_the_ordinary_env(mode, num_states, num_actions, most, limit):
    P, distribution = random_table(num_states, num_actions, most, seed=num_states)
    run_lockstep(
        lambda: fastvec.from_tables(P, distribution, N, autoreset_mode=mode, max_episode_steps=limit),
        lambda: make_reference(P, distribution, mode, limit),
        seeds=SEEDS,
    )


@pytest.mark.parametrize("of_pairs", [False, True])
@pytest.mark.parametrize("num_states", [2, 11, 130])
def test_arrays_equal_the_ordinary_env(mode, of_pairs, num_states):
    P, rewards, terminal, distribution = random_dense(num_states, 3, seed=num_states)
    rewards = rewards[:, :, 0] if of_pairs else rewards
    counts = run_lockstep(
        lambda: fastvec.from_tables(
            P, distribution, N, rewards=rewards, terminal=terminal, autoreset_mode=mode, max_episode_steps=20
        ),
        lambda: make_reference(as_lists(P, rewards, terminal), distribution, mode, 20),
        seeds=SEEDS,
    )
    assert counts["terminated"] + counts["truncated"] > 0


def test_dicts_and_lists_are_the_same():
    P, distribution = random_table(6, 3, 4, seed=1)
    lists = [[[tuple(t) for t in P[s][a]] for a in range(3)] for s in range(6)]
    actions = np.random.default_rng(0).integers(0, 3, (80, N))
    expected = play(fastvec.from_tables(P, distribution, N), actions, seed=3)
    for form in (lists, tuple(map(tuple, lists)), dict(reversed(P.items())), dict(enumerate(lists))):
        assert_same_bits(play(fastvec.from_tables(form, distribution, N), actions, seed=3), expected, "another form")


def test_a_number_above_all_sums_draws_the_first_transition(mode):
    """Though its probability is 0. The sum is as short as one may be, and the stream's next number is above it."""
    short = 1 - 9e-7
    P = {0: {0: [(0.0, 1, 5.0, False), (short, 0, 0.0, False)]}, 1: {0: [(1.0, 1, 1.0, False)]}}
    env, reference = fastvec.from_tables(P, [1, 0], 1, autoreset_mode=mode), make_reference(P, [1, 0], mode, n=1)
    stream = np.random.PCG64(0)
    while np.random.Generator(copy.deepcopy(stream)).random() <= short:
        block = np.random.Generator(copy.deepcopy(stream)).random(1_000_000)
        above = np.flatnonzero(block > short)
        stream.advance(int(above[0]) if len(above) else len(block))
    for each in (env, reference):
        each.reset(seed=0)
        each.set_attr("np_random", [np.random.Generator(copy.deepcopy(stream))])
    ours, theirs = env.step(np.array([0])), reference.step(np.array([0]))
    assert_same_bits(ours, theirs, "the step")
    assert (ours[0].tolist(), ours[1].tolist(), ours[4]["prob"].tolist()) == ([1], [5.0], [0.0])


def test_tables_of_probabilities_that_are_none_can_be_halved():
    """Gymnasium's envs may hold negative ones, so that sums fall again; the first above a number is found still."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        probs = rng.normal(0.1, 0.3, 9)
        transitions = [(prob, state, 0.0, False) for state, prob in enumerate(probs)]
        *_, listed, _ = tables.build(tables.unpack([[transitions]] * 9), np.full(9, 1 / 9))
        below = listed["below"][:9]
        assert (np.diff(below) >= 0).all()
        for number in rng.random(50):
            at = int(np.searchsorted(below, number, side="right"))
            expected = np.argmax(np.cumsum(probs) > number)
            assert (at if at < 9 else 0) == expected


def test_a_frozen_lake_given_as_its_table_is_the_frozen_lake():
    lake = gymnasium.make("FrozenLake-v1").unwrapped
    ours = fastvec.from_tables(lake.P, lake.initial_state_distrib, N, max_episode_steps=100)
    actions = np.random.default_rng(0).integers(0, 4, (300, N))
    expected = play(fastvec.make("FrozenLake-v1", N), actions, seed=3)
    assert_same_bits(play(ours, actions, seed=3), expected, "FrozenLake")


def test_the_documented_example():
    assert doctest.testmod(mdp).failed == 0
    assert doctest.testmod(mdp).attempted > 5


def test_what_was_passed_may_change_afterwards():
    P, rewards, terminal, distribution = random_dense(5, 2, seed=0)
    actions = np.random.default_rng(0).integers(0, 2, (50, N))
    env, same = (fastvec.from_tables(P, distribution, N, rewards=rewards, terminal=terminal) for _ in range(2))
    expected = play(same, actions, seed=1)
    for array in (P, rewards, terminal, distribution):
        array[:] = 0
    assert_same_bits(play(env, actions, seed=1), expected, "after the arrays were cleared")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_and_states_go_on_alike(mode, duplicate):
    P, distribution = random_table(9, 3, 4, seed=2)
    env, other = (fastvec.from_tables(P, distribution, N, autoreset_mode=mode, max_episode_steps=7) for _ in range(2))
    actions = np.random.default_rng(0).integers(0, 3, (60, N))
    play(env, actions[:20], seed=1)
    twin = duplicate(env)
    other.set_state(env.get_state())
    expected = proceed(env, actions)
    assert_same_bits(proceed(twin, actions), expected, "the copy")
    assert_same_bits(proceed(other, actions), expected, "the state in another env")


def test_is_a_vector_env_of_states_and_actions():
    P, distribution = random_table(6, 3, 4, seed=1)
    env = fastvec.from_tables(P, distribution, 4, episode_stats=True, copy=False, max_episode_steps=3)
    assert isinstance(env, fastvec.VecEnv)
    assert env.single_observation_space == gymnasium.spaces.Discrete(6)
    assert env.single_action_space == gymnasium.spaces.Discrete(3)
    assert (env.num_envs, env.spec, env.metadata["autoreset_mode"]) == (4, None, AutoresetMode.NEXT_STEP)
    first, _ = env.reset(seed=0)
    for _ in range(3):
        obs, *_, info = env.step([0, 1, 2, 0])
    assert obs is first
    assert "episode" in info
    assert env.get_attr("s") == tuple(obs.tolist())
    env.set_attr("s", 5)
    assert env.get_attr("s") == (5, 5, 5, 5)
    with pytest.raises(ValueError, match=r"s of lane 1 is 6; .* from 0 to 5"):
        env.set_attr("s", [0, 6, 0, 0])
    with pytest.raises(ValueError, match=r"\[2\] = 3"):
        env.step([0, 0, 3, 0])


GOOD = {0: {0: [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}


def with_pair(state, transitions):
    return {**GOOD, state: {0: transitions}}


@pytest.mark.parametrize(
    ("P", "error", "named"),
    [
        (with_pair(1, [(0.9, 1, 0.0, True)]), ValueError, "state 1, action 0 sum to 0.9"),
        (with_pair(1, [(1.5, 1, 0.0, True), (-0.5, 0, 0.0, True)]), ValueError, "state 1, action 0 is -0.5"),
        (with_pair(1, [(float("nan"), 1, 0.0, True)]), ValueError, "state 1, action 0 is nan"),
        (with_pair(1, [(1.0, 2, 0.0, True)]), ValueError, "next state of state 1, action 0 is 2: expected 0 to 1"),
        (with_pair(1, [(1.0, -1, 0.0, True)]), ValueError, "next state of state 1, action 0 is -1"),
        (with_pair(0, [(1.0, 1, float("nan"), True)]), ValueError, "reward of state 0, action 0 is nan"),
        (with_pair(1, []), ValueError, r"P\[1\]\[0\] is empty"),
        (with_pair(1, [(1.0, 1, 0.0)]), TypeError, r"P\[1\]\[0\]\[0\]"),
        (with_pair(1, [(1.0, 1.5, 0.0, True)]), TypeError, r"P\[1\]\[0\]\[0\]"),
        (with_pair(1, [("all", 1, 0.0, True)]), TypeError, r"P\[1\]\[0\]\[0\]"),
        (with_pair(1, [(1.0, 1, 0.0, "no")]), TypeError, r"P\[1\]\[0\]\[0\].*a bool"),
        (with_pair(1, 1.0), TypeError, r"P\[1\]\[0\] is float"),
        ({0: GOOD[0], 2: GOOD[1]}, ValueError, "P has no state 1"),
        ({0: GOOD[0], 1: {1: GOOD[1][0]}}, ValueError, r"P\[1\] has no action 0"),
        ({0: GOOD[0], 1: {0: GOOD[1][0], 1: GOOD[1][0]}}, ValueError, r"P\[1\] has 2 actions and P\[0\] has 1"),
        ({}, ValueError, "P is empty"),
        ({0: {}}, ValueError, r"P\[0\] is empty"),
        (None, TypeError, "P is NoneType"),
        ("P", TypeError, "P is str"),
        (np.ones((2, 1, 2)) / 2, ValueError, "rewards"),
    ],
)
def test_a_bad_table_is_named(P, error, named):
    with pytest.raises(error, match=named):
        fastvec.from_tables(P, [1, 0])


@pytest.mark.parametrize(
    ("distribution", "error", "named"),
    [
        ([1, 0, 0], ValueError, r"shape \(3,\).* 2 states"),
        ([0.5, 0.4], ValueError, "sums to 0.9"),
        ([1.5, -0.5], ValueError, r"\[1\] is -0.5"),
        ([float("nan"), 1], ValueError, r"\[0\] is nan"),
        ("start", TypeError, "str"),
        (None, (TypeError, ValueError), "initial_state_distribution"),
    ],
)
def test_a_bad_distribution_is_named(distribution, error, named):
    with pytest.raises(error, match=named):
        fastvec.from_tables(GOOD, distribution)


HALVES = np.full((2, 3, 2), 0.5)


@pytest.mark.parametrize(
    ("P", "kwargs", "error", "named"),
    [
        (HALVES[:, :, :1], {"rewards": np.zeros((2, 3))}, ValueError, r"\(2, 3, 1\).*\(S, A, S\)"),
        (HALVES[0], {"rewards": np.zeros((2, 3))}, ValueError, r"\(3, 2\)"),
        (HALVES, {"rewards": np.zeros((3, 2))}, ValueError, r"rewards has shape \(3, 2\)"),
        (HALVES, {"rewards": np.zeros((2, 3)), "terminal": [True]}, ValueError, r"terminal has shape \(1,\)"),
        (HALVES, {"rewards": np.zeros((2, 3)), "terminal": [0, 1]}, TypeError, "terminal has dtype int64"),
        (HALVES * 0.9, {"rewards": np.zeros((2, 3))}, ValueError, "state 0, action 0 sum to 0.9"),
        (HALVES * -1, {"rewards": np.zeros((2, 3))}, ValueError, "state 0, action 0 is -0.5"),
        (HALVES, {"rewards": np.full((2, 3), np.nan)}, ValueError, "reward of state 0, action 0"),
        (GOOD, {"rewards": np.zeros((2, 1))}, TypeError, "P is dict"),
        (GOOD, {"terminal": [False, True]}, ValueError, "terminal"),
    ],
)
def test_bad_arrays_are_named(P, kwargs, error, named):
    with pytest.raises(error, match=named):
        fastvec.from_tables(P, [1, 0], **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "error", "named"),
    [
        ({"n": 0}, ValueError, "num_envs"),
        ({"n": True}, TypeError, "num_envs"),
        ({"autoreset_mode": "never"}, ValueError, "never"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps"),
        ({"num_threads": 0}, ValueError, "num_threads"),
    ],
)
def test_bad_keywords_are_those_of_make(kwargs, error, named):
    with pytest.raises(error, match=named):
        fastvec.from_tables(GOOD, [1, 0], **kwargs)
