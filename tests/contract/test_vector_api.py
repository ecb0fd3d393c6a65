"""fastvec's own envs break none of the rules that fastvec.testing knows, and its lanes do what single envs do."""

import pytest
from gymnasium.vector import AutoresetMode
from rollout import make_single

import fastvec
from fastvec.testing import check_same, check_vector_env


def test_no_rule_is_broken(any_env_id, mode):
    def make():
        return fastvec.make(any_env_id, 4, autoreset_mode=mode, max_episode_steps=12)

    check_vector_env(make, single_env=lambda: make_single(any_env_id, max_episode_steps=12), steps=60, seed=3)


@pytest.mark.parametrize("arguments", [{"episode_stats": True}, {"num_threads": 2}], ids=str)
def test_no_rule_is_broken_with_other_keywords(any_env_id, mode, arguments):
    check_vector_env(fastvec.make(any_env_id, 3, autoreset_mode=mode, max_episode_steps=7, **arguments), steps=40)


def test_only_reused_arrays_are_found_without_copies(env_id):
    env = fastvec.make(env_id, 3, autoreset_mode=AutoresetMode.NEXT_STEP, max_episode_steps=7, copy=False)
    found = check_vector_env(env, steps=40, raise_on_failure=False)
    assert [violation.rule for violation in found] == ["fresh-data"]


def test_lanes_are_single_envs(any_env_id, mode):
    check_same(lambda: make_single(any_env_id), fastvec.make(any_env_id, 3, autoreset_mode=mode), steps=200, seed=8)
