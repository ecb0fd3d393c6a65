"""Time of `step`: many steps at several n, and the cost of a single call."""

from __future__ import annotations

import pytest

from fastvec.measure import sample_actions, step_through

ENVS = ("CartPole-v1", "Counter-v0")


@pytest.mark.parametrize(("n", "steps"), [(1, 100), (8, 100), (64, 100), (1024, 10)])
@pytest.mark.parametrize("env_id", ENVS)
def test_steps(benchmark, run, env_id, n, steps):
    runner = run(env_id, n)
    actions = sample_actions(env_id, n)[:steps]
    benchmark.group = f"{env_id}, n = {n}: {steps} steps"
    benchmark(step_through, runner.env.step, actions)


@pytest.mark.parametrize("env_id", ENVS)
def test_call(benchmark, run, env_id):
    runner = run(env_id, 1)
    action = sample_actions(env_id, 1)[0]
    benchmark.group = f"{env_id}, n = 1: one call of step"
    benchmark(runner.env.step, action)
