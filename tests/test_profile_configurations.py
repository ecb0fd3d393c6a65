"""What is tried: numbers of lanes, backends and workers, and what there is no time for."""

from __future__ import annotations

import pytest
from ordinary_envs import LaneEnv

from fastvec.backends.choosing import StepCost
from fastvec.contenders import CONTENDERS
from fastvec.profiling.configurations import (
    BackendContender,
    Configuration,
    Participant,
    checked_backends,
    configurations_of,
    default_counts,
    powers_of_two,
    rivals_of,
    within_budget,
)

COMPUTES, WAITS = StepCost(1e-5, 1e-5, 0.0), StepCost(1e-3, 1e-5, 0.0)


def tried(source=LaneEnv, counts=None, backends=None, workers=None, cost=COMPUTES, cores=2, quick=False):
    found = configurations_of(source, counts, backends, workers, cost, cores, quick)
    return [(one.backend, one.n, one.workers) for one in found]


def test_powers_of_two():
    assert powers_of_two(1) == (1,)
    assert powers_of_two(20) == (1, 2, 4, 8, 16)


def test_ordinary_envs_that_compute_have_as_many_workers_as_cores():
    assert tried(counts=(1, 2, 8)) == [
        ("serial", 1, 0),
        ("serial", 2, 0),
        ("process", 2, 2),
        ("serial", 8, 0),
        ("process", 8, 2),
    ]
    assert ("process", 4, 3) in tried(counts=(4,), cores=3)


def test_ordinary_envs_that_wait_may_have_a_worker_a_lane():
    assert tried(counts=(8,), cost=WAITS) == [("serial", 8, 0), ("process", 8, 2), ("process", 8, 8)]


def test_native_ids_are_tried_on_all_backends_but_others_on_few_lanes():
    found = tried("CartPole-v1")
    assert {n for backend, n, _ in found if backend == "native"} == set(powers_of_two(1024))
    assert {n for backend, n, _ in found if backend != "native"} == {1, 2, 4, 8}


def test_what_is_asked_for_is_tried():
    assert tried(counts=(4, 1), backends=("process",), workers=(1, 3, 9)) == [
        ("process", 4, 1),
        ("process", 4, 3),
        ("process", 4, 4),
        ("process", 1, 1),
    ]
    assert tried("CartPole-v1", counts=(64,), backends=("serial",)) == [("serial", 64, 0)]


def test_quick_tries_less():
    for source in ("CartPole-v1", LaneEnv):
        assert set(default_counts(source, True)) < set(default_counts(source, False))
        assert len(tried(source, quick=True)) < len(tried(source))


def test_backends_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="'native', which needs an id that has a kernel"):
        checked_backends(LaneEnv, ("serial", "native"))
    with pytest.raises(ValueError, match="'gpu': expected some of native, serial, process"):
        checked_backends("CartPole-v1", ("gpu",))
    assert checked_backends("CartPole-v1", ("serial", "serial")) == ("serial",)
    assert checked_backends(LaneEnv, None) == ("serial", "process")


def test_rivals_are_those_that_are_installed(monkeypatch):
    monkeypatch.setattr(CONTENDERS["envpool"], "module", "a_module_that_is_not_there", raising=False)
    found, left_out = rivals_of(LaneEnv, (2, 64), quick=False)
    names = {(one.configuration.backend, one.configuration.n) for one in found}
    assert {("sync", 2), ("sync", 64), ("async", 2)} <= names
    reasons = {(one.configuration.backend, one.configuration.n): one.reason for one in left_out}
    assert reasons["async", 64] == "up to n = 8"
    assert reasons["envpool", 2] == "not installed"
    assert reasons["numpy", 2] == "no LaneEnv"


def test_quick_compares_at_one_n():
    found, _ = rivals_of("CartPole-v1", (1, 4, 64), quick=True)
    assert {one.configuration.n for one in found} == {4}


def test_titles():
    assert str(Configuration("process", 8, 2)) == "process (2 workers), n = 8"
    assert Configuration("process", 8, 1).short_title == "process (1w)"
    assert Configuration("envpool", 8, 2).title == "EnvPool (2 threads)"
    assert Configuration("sync", 8).title == "Gymnasium Sync"


def participants(*configurations):
    return [Participant(one, BackendContender(one)) for one in configurations]


def test_what_takes_too_long_is_left_out_and_named():
    few, many = Configuration("serial", 1), Configuration("serial", 1000)
    staying, left_out, seconds = within_budget(participants(few, many), WAITS, 1e-4, 2, 7, 5.0, 0.1)
    assert [one.configuration for one in staying] == [few]
    [gone] = left_out
    assert gone.configuration == many
    assert gone.reason == "too long: a start of about 100 ms, steps of 1.00 s"
    assert seconds == 0.1


def test_slices_are_shorter_where_there_are_many():
    plenty = participants(*(Configuration("native", n) for n in range(1, 51)))
    staying, left_out, seconds = within_budget(plenty, COMPUTES, 0.0, 2, 7, 9.0, 0.1)
    assert (len(staying), left_out) == (50, [])
    assert seconds == 9.0 / (2 * 9 * 50)


def test_one_stays_however_slow_it_is():
    slow = participants(Configuration("serial", 1))
    assert len(within_budget(slow, StepCost(60.0, 60.0, 0.0), 60.0, 2, 7, 5.0, 0.1)[0]) == 1


def test_what_takes_long_to_make_is_left_out():
    few, many = Configuration("serial", 1), Configuration("process", 8, 2)
    staying, [gone], _ = within_budget(participants(few, many), COMPUTES, 1.0, 2, 7, 5.0, 0.1)
    assert [one.configuration for one in staying] == [few]
    assert gone.reason.startswith("too long: a start of about 4.08 s")
