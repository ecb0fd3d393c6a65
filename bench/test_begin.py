"""Time until the first step: construction, and a seeded reset, of 1,024 envs."""

from __future__ import annotations

import pytest
from entries import entries

ENVS = ("CartPole-v1", "Counter-v0")


@pytest.mark.parametrize(("contender", "env_id", "n"), entries(ENVS, [1024]))
def test_construction(benchmark, contender, env_id, n):
    setting = contender.settings(n)[0]
    benchmark.group = f"{env_id}, n = {n}: construction and close"
    benchmark(lambda: contender.make(env_id, n, **setting).close())


# EnvPool takes its seed when it is made.
@pytest.mark.parametrize(("contender", "env_id", "n"), entries(ENVS, [1024], without=("envpool",)))
def test_seeded_reset(benchmark, contender, runner, env_id, n):
    benchmark.group = f"{env_id}, n = {n}: reset(seed)"
    benchmark(contender.reset, runner.env)
