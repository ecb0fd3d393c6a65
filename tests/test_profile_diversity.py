"""How different lanes are, and the warnings where more of them add nothing."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from fastvec.profiling.diversity import (
    EpisodeLengths,
    distinct_rows,
    diversity_of,
    mean_correlation,
    warning_of,
)
from fastvec.profiling.report import diversity_sentence


class Drawn(gymnasium.Env):
    """Begins somewhere, and rewards something, by the generator that it is told to use."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    common = False  # whether all lanes draw the same

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.common and seed is not None:
            self.np_random = np.random.default_rng(7)
        self.steps = 0
        return self.np_random.random(1), {}

    def step(self, action):
        self.steps += 1
        return self.np_random.random(1), float(self.np_random.random()), self.steps == 4, False, {}


class OneStart(Drawn):
    """Begins at the same place."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1), {}


class CommonSeed(Drawn):
    """Draws from a generator of its own, whatever the seed."""

    common = True


def test_lanes_that_differ():
    found = diversity_of(Drawn, 8, 0, 0.05)
    assert (found.lanes, found.distinct_starts, found.warning) == (8, 8, None)
    assert abs(found.reward_correlation) < 0.3
    assert found.episode_lengths.least == found.episode_lengths.most == 4


def test_lanes_of_one_start():
    found = diversity_of(OneStart, 8, 0, 0.05)
    assert found.distinct_starts == 1
    assert "differ by their actions alone" in found.warning


def test_lanes_that_share_a_seed():
    found = diversity_of(CommonSeed, 8, 0, 0.05)
    assert found.distinct_starts == 1
    assert found.reward_correlation > 0.99
    assert "does not draw from the seed" in found.warning


@pytest.mark.parametrize(
    ("env_id", "starts", "warns"), [("CartPole-v1", 64, False), ("FrozenLake-v1", 1, True), ("Counter-v0", 1, True)]
)
def test_native_ids(env_id, starts, warns):
    found = diversity_of(env_id, 1024, 0, 0.1, "native")
    assert (found.lanes, found.distinct_starts, found.warning is not None) == (64, starts, warns)


def test_the_same_seed_has_the_same_starts_and_lengths_on_every_backend():
    first, again, elsewhere = (
        diversity_of("CartPole-v1", 4, 5, 60.0, backend, 2) for backend in ("native", "serial", "process")
    )
    assert first == again == elsewhere
    assert first != diversity_of("CartPole-v1", 4, 6, 60.0, "native")


def test_one_lane_has_nothing_to_share():
    found = diversity_of(OneStart, 1, 0, 0.01)
    assert (found.distinct_starts, found.reward_correlation, found.warning) == (1, None, None)


def test_rows_are_compared_in_all_parts():
    assert distinct_rows([np.zeros((3, 2)), np.array([1, 2, 1])]) == 2
    assert distinct_rows([("a", "b", "a")]) == 2


def test_correlation_is_that_of_pairs():
    rising = np.arange(8.0)
    assert mean_correlation(np.stack([rising, 2 * rising + 1], axis=1)) == 1.0
    assert mean_correlation(np.stack([rising, -rising], axis=1)) == -1.0
    assert mean_correlation(np.stack([rising, np.ones(8)], axis=1)) is None
    assert mean_correlation(np.stack([rising[:7], rising[:7]], axis=1)) is None  # too few
    assert mean_correlation(rising[:, None]) is None


@pytest.mark.parametrize(
    ("lanes", "first", "second", "moved_on", "correlation", "said"),
    [
        (1, 1, 1, True, None, None),
        (8, 8, 8, True, 0.1, None),
        (8, 8, 8, True, None, None),
        (8, 1, 1, True, 0.1, "does not draw from the seed"),
        (8, 1, 1, False, 0.1, "same observation"),
        (8, 1, 8, True, 0.1, "same observation"),
        (8, 4, 8, True, 0.1, "in 4 different ways only"),
        (8, 8, 8, True, 0.99, "rise and fall together"),
    ],
)
def test_warnings(lanes, first, second, moved_on, correlation, said):
    warning = warning_of(lanes, first, second, moved_on, correlation)
    assert (warning is None) if said is None else (said in warning)


def test_lengths_are_quartiles():
    assert EpisodeLengths.of([1, 2, 3, 4, 10]) == EpisodeLengths(5, 1, 2.0, 3.0, 4.0, 10)
    assert EpisodeLengths.of([]) is None


def test_the_sentence_has_the_figures():
    told = diversity_of(Drawn, 3, 0, 0.01).to_json()
    assert diversity_sentence(told).startswith("Diversity: 3 lanes began in 3 different ways, with rewards")
    told = {**told, "reward_correlation": None, "episode_lengths": None}
    assert "rewards that vary too little to correlate; no episode ended" in diversity_sentence(told)
