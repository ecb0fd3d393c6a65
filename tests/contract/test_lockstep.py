"""Every native env against Gymnasium's, in every mode: briefly, so that a new env is covered the day it is listed.

tests/oracle/ has the long runs, with each env's variants."""

import pytest
from lockstep import run_lockstep
from rollout import make_oracle

import fastvec


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_equals_sync_vector_env(any_env_id, mode, limit):
    counts = run_lockstep(
        lambda: fastvec.make(any_env_id, n=5, autoreset_mode=mode, max_episode_steps=limit),
        lambda: make_oracle(any_env_id, 5, mode, max_episode_steps=limit),
        seeds=(0, [11, 3, 2**40, 0, 2**130]),
    )
    if limit in (1, 3):
        assert counts["truncated"] > 0


@pytest.mark.parametrize("n", [1, 9])
def test_equals_sync_vector_env_whatever_n(any_env_id, mode, n):
    run_lockstep(
        lambda: fastvec.make(any_env_id, n=n, autoreset_mode=mode),
        lambda: make_oracle(any_env_id, n, mode),
        seeds=(5,),
    )
