"""Blackjack against Gymnasium's own, in lock-step: rules, naturals, long hands, and the 32-bit stream across resets."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5])
RULES = [{}, {"sab": False}, {"sab": False, "natural": True}, {"sab": True, "natural": True}]
STICK, HIT = 0, 1


def hit_below(total):
    return lambda obs: (obs[0] < total).astype(np.int64)


POLICIES = {
    "random": None,
    "stick": hit_below(0),
    "hit": hit_below(99),
    "hit below 17": hit_below(17),
}


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_rules(mode, lane_steps, rules, policy):
    counts = run_lockstep(
        lambda: fastvec.make("Blackjack-v1", n=N, autoreset_mode=mode, **rules),
        lambda: make_oracle("Blackjack-v1", N, mode, **rules),
        seeds=SEEDS,
        lane_steps=lane_steps // 4,
        policy=policy,
    )
    assert counts["terminated"] > lane_steps / 40


def test_a_limit(mode, lane_steps):
    counts = run_lockstep(
        lambda: fastvec.make("Blackjack-v1", n=N, autoreset_mode=mode, max_episode_steps=2),
        lambda: make_oracle("Blackjack-v1", N, mode, max_episode_steps=2),
        seeds=SEEDS,
        lane_steps=lane_steps // 2,
    )
    assert counts["both"] > 0
    assert counts["truncated"] > counts["both"]


class Table:
    """One hand of Gymnasium's, beside ours, with the cards that are drawn in it."""

    def __init__(self, **rules):
        self.pair = Lockstep(fastvec.make("Blackjack-v1", n=1, **rules), make_oracle("Blackjack-v1", 1, **rules))
        self.env = self.pair.oracle.envs[0].unwrapped

    def deal(self, seed, wanted, most=20_000):
        """Resets with one seed after another until the hands are as wanted; says with how many."""
        for tried in range(seed, seed + most):
            self.env.reset(seed=tried)
            if wanted(self.env.player, self.env.dealer):
                self.pair.reset(seed=tried)
                return tried
        raise AssertionError("no such hands")

    def stick(self):
        """The reward of sticking now, the same in both."""
        before = self.pair.counts["terminated"]
        rewards = []
        step = self.pair.ours.step
        self.pair.ours.step = lambda actions: rewards.append(step(actions)) or rewards[-1]
        self.pair.step(np.array([STICK]))
        del self.pair.ours.step
        assert self.pair.counts["terminated"] == before + 1
        return rewards[0][1][0]


def natural(hand):
    return sorted(hand) == [1, 10]


def dealer_natural(player, dealer):
    return natural(dealer) and not natural(player)


def player_natural(player, dealer):
    return natural(player) and not natural(dealer)


def both_natural(player, dealer):
    return natural(player) and natural(dealer)


@pytest.mark.parametrize(
    ("rules", "rewards"),
    [
        ({"sab": True}, {1.0}),
        ({"sab": True, "natural": True}, {1.0}),
        ({"sab": False, "natural": True}, {1.5, 0.0}),
        ({"sab": False, "natural": False}, {1.0, 0.0}),
    ],
    ids=str,
)
def test_a_natural_of_the_player(rules, rewards):
    """A dealer who comes to 21 with more cards draws, unless the rules are Sutton and Barto's."""
    table, seed, seen = Table(**rules), 0, set()
    for _ in range(40):
        seed = table.deal(seed, player_natural) + 1
        seen.add(table.stick())
    assert seen == rewards


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_natural_of_both_is_a_draw(rules):
    table = Table(**rules)
    table.deal(0, both_natural)
    assert table.stick() == 0.0


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_natural_of_the_dealer_beats_less_and_draws_with_21(rules):
    table, seed, seen = Table(**rules), 0, set()
    for _ in range(3):
        seed = table.deal(seed, dealer_natural) + 1
        seen.add(table.stick())
    assert seen == {-1.0}


def test_21_of_three_cards_is_no_natural():
    table, seed, seen = Table(sab=False, natural=True), 0, set()
    for _ in range(400):
        seed = table.deal(seed, lambda player, dealer: sum(player) < 12) + 1
        table.pair.step(np.array([HIT]))
        if table.pair.obs[0][0] == 21 and len(table.env.player) == 3:
            seen.add(table.stick())
    assert 1.0 in seen
    assert 1.5 not in seen


def test_long_hands_with_aces():
    """Hands of seven cards and more: aces stop being usable, and the sum goes on."""
    table, longest, lost_aces = Table(), 0, 0
    for seed in range(3000):
        table.env.reset(seed=seed)
        if table.env.player[0] + table.env.player[1] > 4:
            continue
        table.pair.reset(seed=seed)
        usable = 0
        while not table.pair.ended[0]:
            table.pair.step(np.array([HIT]))
            lost_aces += usable and not table.pair.obs[2][0]
            usable = table.pair.obs[2][0]
        longest = max(longest, len(table.env.player))
    assert longest >= 7
    assert lost_aces > 10


def test_rules_may_be_set_later(mode):
    def build(env):
        env.set_attr("sab", [False, False, True, True, 0])
        env.set_attr("natural", [True, False, True, False, 1])
        return env

    run_lockstep(
        lambda: build(fastvec.make("Blackjack-v1", n=N, autoreset_mode=mode)),
        lambda: build(make_oracle("Blackjack-v1", N, mode)),
        lane_steps=4_000,
        policy=hit_below(15),
    )


def test_what_is_left_of_a_word_outlasts_a_reset():
    """A reset takes five 32-bit draws, or six: the next begins in the middle of a word as often as not."""
    pair = Lockstep(fastvec.make("Blackjack-v1", n=N), make_oracle("Blackjack-v1", N))
    pair.reset(seed=8)
    halves = set()
    for _ in range(20):
        pair.reset()
        for ours, theirs in zip(pair.ours.np_random, pair.oracle.np_random, strict=True):
            assert ours.bit_generator.state == theirs.bit_generator.state
            halves.add(ours.bit_generator.state["has_uint32"])
    assert halves == {0, 1}
