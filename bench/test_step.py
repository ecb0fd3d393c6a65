"""Time of `step`: many steps at several n, and the cost of a single call."""

from __future__ import annotations

import pytest
from entries import entries

from fastvec.measure import sample_actions, step_through

ENVS = ("CartPole-v1", "Counter-v0")
STEPS = {1: 100, 8: 100, 64: 100, 1024: 10}


@pytest.mark.parametrize(("contender", "env_id", "n"), entries(ENVS, STEPS))
def test_steps(benchmark, runner, env_id, n):
    actions = sample_actions(env_id, n)[: STEPS[n]]
    benchmark.group = f"{env_id}, n = {n}: {len(actions)} steps"
    benchmark(step_through, runner.env.step, actions)


@pytest.mark.parametrize(("contender", "env_id", "n"), entries(ENVS, [1]))
def test_call(benchmark, runner, env_id, n):
    action = sample_actions(env_id, n)[0]
    benchmark.group = f"{env_id}, n = {n}: one call of step"
    benchmark(runner.env.step, action)
