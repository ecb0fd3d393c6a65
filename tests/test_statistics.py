"""The profile's statistics: medians, bootstrap intervals, paired ratios, and when two configurations are told apart."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scripted_envs import SECOND, FakeClock, ScriptedContender

from fastvec.measure import Runner, interleave, sample_actions
from fastvec.profiling.planning import QUICK_ROUNDS, ROUNDS, Resets
from fastvec.profiling.statistics import FEWEST_SAMPLES, Estimate, differs, estimate, paired_ratio, require_scipy, total

ENV_ID = "CartPole-v1"


def test_an_estimate_has_the_median_and_an_interval_of_the_samples():
    samples = [5.0, 1.0, 2.0, 4.0, 3.0, 9.0, 7.0]
    found = estimate(samples)
    assert found.median == 4.0
    assert found.samples == tuple(samples)
    assert min(samples) <= found.low < found.median < found.high <= max(samples)
    assert found.low in samples
    assert found.high in samples


def test_the_same_samples_and_seed_have_the_same_interval():
    samples = np.random.default_rng(0).normal(size=15)
    assert estimate(samples, 3) == estimate(samples, 3)
    assert len({estimate(samples, seed).low for seed in range(20)}) > 1


@pytest.mark.parametrize("rounds", [QUICK_ROUNDS, ROUNDS])
def test_the_interval_has_the_true_median_in_19_of_20_cases(rounds):
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        found = estimate(rng.lognormal(size=rounds))
        inside += found.low <= 1.0 <= found.high
    assert 0.93 <= inside / 300 <= 0.98


def test_more_rounds_have_a_narrower_interval():
    rng = np.random.default_rng(2)
    few, many = estimate(rng.normal(10, 1, 8)), estimate(rng.normal(10, 1, 200))
    assert many.relative_width < few.relative_width / 2


@pytest.mark.parametrize("count", range(1, FEWEST_SAMPLES))
def test_the_interval_of_few_samples_is_their_range(count):
    samples = [float(one * one) for one in range(count)]
    found = estimate(samples)
    assert (found.low, found.high) == (0.0, samples[-1])


def test_equal_samples_have_no_width():
    assert estimate([3.0] * 10) == Estimate(3.0, 3.0, 3.0, (3.0,) * 10)
    assert estimate([3.0] * 10).relative_width == 0.0
    assert estimate([0.0] * 10).relative_width == 0.0


def test_ratios_are_taken_round_by_round():
    ours, theirs = estimate([2.0, 4.0, 8.0]), estimate([1.0, 4.0, 2.0])
    assert paired_ratio(ours, theirs).samples == (2.0, 1.0, 4.0)
    with pytest.raises(ValueError, match="argument 2"):
        paired_ratio(ours, estimate([1.0]))


@pytest.mark.parametrize(
    ("low", "high", "apart"),
    [(0.9, 1.1, False), (1.0, 1.2, False), (0.8, 1.0, False), (1.01, 1.2, True), (0.8, 0.9, True)],
)
def test_told_apart_is_who_has_an_interval_without_1(low, high, apart):
    assert differs(Estimate(1.0, low, high, ())) is apart


def test_a_machine_that_slows_down_hides_no_difference():
    # Every round takes longer than the one before; who takes a tenth longer does so in every round.
    clock, log = FakeClock(), []
    contenders = [
        ScriptedContender(name, clock, seconds=seconds, log=log, drift=lambda: 1.0 + (len(log) - 1) // 20)
        for name, seconds in (("a", SECOND), ("b", 1.125 * SECOND))
    ]
    runners = [Runner(one, ENV_ID, 1, sample_actions(ENV_ID, 1), clock=clock) for one in contenders]
    for runner in runners:
        runner.burst = 10
    fast, slow = (estimate([10 / took for took in times]) for times in interleave(runners, 20))
    assert slow.low < fast.low < slow.high < fast.high  # apart, they would not be told apart
    ratio = paired_ratio(fast, slow)
    assert ratio.median == 1.125
    assert differs(ratio)
    assert not differs(paired_ratio(fast, fast))


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r'pip install "fastvec\[profile\]"'):
        require_scipy()
    with pytest.raises(ImportError, match="SciPy"):
        estimate(range(10))
    assert estimate([1.0, 2.0]).high == 2.0  # which needs none


def test_json_has_all_of_it():
    found = estimate([1.0, 2.0, 4.0])
    assert found.to_json() == {"median": 2.0, "low": 1.0, "high": 4.0, "samples": [1.0, 2.0, 4.0]}


def test_a_total_counts_rounds_by_their_seconds():
    rates, seconds = [100.0] * 8 + [10.0], [1.0] * 8 + [9.0]
    found = total(rates, seconds, seed=1)
    assert found.median == (8 * 100 + 90) / 17
    assert found.low < found.median < found.high
    assert found == total(rates, seconds, seed=1)
    assert estimate(rates).median == 100.0


def test_the_ratio_of_totals_is_that_of_all_rounds():
    ours, theirs = total([4.0] * 9, [1.0] * 9), total([2.0] * 8 + [1.0], [1.0] * 8 + [8.0])
    assert paired_ratio(ours, theirs).median == 4.0 / 1.5
    assert differs(paired_ratio(ours, theirs))


def test_slices_have_enough_steps_for_resets_that_are_dear():
    assert Resets(0.3, 0.35 / 50, 50).steps_of_slice(9) == 12
    assert Resets(0.001, 0.0, 0).steps_of_slice(9) == 1
    assert Resets(0.003, 0.103 / 50, 50).steps_of_slice(9) == 1
