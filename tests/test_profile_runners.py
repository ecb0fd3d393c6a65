"""What counts as an env-step in a profile, and CPU time: by scripted envs and a fake clock."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from ordinary_envs import LaneEnv
from scripted_envs import SECOND, FakeClock, ScriptedContender

from fastvec.measure import sample_actions
from fastvec.profiling.configurations import BackendContender, Configuration
from fastvec.profiling.processes import cpu_seconds, new_workers, peak_memory
from fastvec.profiling.runners import SpeedRunner

ENV_ID = "CartPole-v1"


def speed_runner(contender, clock, n=1, **kw):
    return SpeedRunner(contender, ENV_ID, n, sample_actions(ENV_ID, n), clock=clock, **kw)


def expected_rows(borders, n):
    """Lane 0 ends every 4 steps and resets in the fifth; lane 1 every 5, and resets in the sixth."""
    borders = np.array(borders)
    return (np.diff(borders) * n - np.diff(borders // 5 + borders // 6)).tolist()


@pytest.mark.parametrize("seconds", [SECOND, SECOND / 1024])
def test_reset_rows_do_not_count(seconds):
    """Whether flags are kept while the clock runs or, for steps that are too short for it, seen in a second pass."""
    clock = FakeClock()
    contender = ScriptedContender("a", clock, periods=(4, 5), seconds=seconds)
    runner = speed_runner(contender, clock, n=2)
    runner.prepare(10 * seconds)
    borders = [runner.env.made]
    for k in (10, 11, 12, 13, 7, 9):
        assert runner.step(k) == k * seconds
        borders.append(runner.env.made)
    runner.close()
    # Some slices begin with the reset of an episode that ended in the last step of the slice before.
    assert any(border % 5 == 4 for border in borders[:-1])
    assert runner.rows(6) == expected_rows(borders, 2)
    assert len(contender.envs) == (1 if seconds == SECOND else 2)


def test_a_policy_is_asked_before_every_step_and_its_time_counts():
    clock, seen = FakeClock(), []

    def act(observation):
        seen.append(observation)
        clock.now += 4 * SECOND

    runner = speed_runner(ScriptedContender("a", clock, same_step=True), clock, act=act)
    assert runner.step(3) == 15 * SECOND
    assert len(seen) == 3
    assert runner.rows(1) == [3]


def test_every_row_counts_where_envs_reset_in_the_step():
    clock = FakeClock()
    runner = speed_runner(ScriptedContender("a", clock, periods=(4,), same_step=True), clock)
    runner.step(10)
    assert runner.rows(1) == [10]


def test_rounds_that_are_not_whole_are_forgotten():
    clock = FakeClock()
    runner = speed_runner(ScriptedContender("a", clock, periods=(4, 5)), clock, n=2)
    runner.prepare(10 * SECOND)
    slices, borders = runner.slices, [runner.env.made]
    for k in (10, 11, 12):
        runner.step(k)
        borders.append(runner.env.made)
    runner.forget_slices_after(2, slices)
    assert runner.rows(2) == expected_rows(borders[:3], 2)


def test_slices_are_as_long_as_asked():
    clock = FakeClock()
    runner = speed_runner(ScriptedContender("a", clock), clock)
    runner.prepare(32 * SECOND)
    assert runner.burst == 32
    assert runner.slice_takes == 32 * SECOND


def test_cpu_is_a_share_of_each_slice():
    clock, spent = FakeClock(), iter([0.0, 5.0, 7.0, 7.0])
    runner = speed_runner(ScriptedContender("a", clock), clock, cpu=lambda workers: next(spent))
    runner.step(1)
    runner.step(1)
    assert runner.cpu[0] > 0.0
    assert runner.cpu[1] == 0.0


def test_cpu_that_cannot_be_read_is_left_out():
    def refuse(workers):
        raise OSError

    clock = FakeClock()
    runner = speed_runner(ScriptedContender("a", clock), clock, cpu=refuse)
    runner.step(1)
    assert runner.cpu == []


class Busy(LaneEnv):
    """Computes 20 ms in every step."""

    def step(self, action):
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return super().step(action)


def test_the_cpu_time_of_workers_counts():
    contender = BackendContender(Configuration("process", 2, 2))
    runner = SpeedRunner(contender, Busy, 2, sample_actions(Busy, 2))
    try:
        assert len(runner.workers) == 2
        assert os.getpid() not in runner.workers
        before = cpu_seconds(runner.workers)
        runner.step(3)
        assert cpu_seconds(runner.workers) - before >= 2 * 3 * 0.02
    finally:
        runner.close()
    with pytest.raises(OSError, match="rgument"):
        cpu_seconds(runner.workers)


def test_memory_is_added_up():
    contender = BackendContender(Configuration("process", 2, 2))
    with new_workers() as workers:
        env = contender.make(LaneEnv, 2)
    try:
        own = peak_memory([])
        assert own > 10**7
        assert peak_memory(workers) > own + 2 * 10**7
        assert peak_memory(workers[:1]) < peak_memory(workers)
    finally:
        env.close()
