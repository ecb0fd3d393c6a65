"""Time until the first step: construction and a seeded reset of 1,024 envs."""

from __future__ import annotations

import pytest

N = 1024
ENVS = ("CartPole-v1", "Counter-v0")


@pytest.mark.parametrize("env_id", ENVS)
def test_construction(benchmark, contender, require, env_id):
    require(env_id, N)
    setting = contender.settings(N)[0]
    benchmark.group = f"{env_id}, n = {N}: construction and close"
    benchmark(lambda: contender.make(env_id, N, **setting).close())


@pytest.mark.parametrize("env_id", ENVS)
def test_seeded_reset(benchmark, contender, run, env_id):
    if contender.name == "envpool":
        pytest.skip("EnvPool: its reset takes no seed")
    env = run(env_id, N).env
    benchmark.group = f"{env_id}, n = {N}: reset(seed)"
    benchmark(contender.reset, env)
