"""`fastvec doctor` and `fastvec envs`: what they print, in both forms, and the exit code when bits differ."""

import json

import gymnasium as gym
import pytest

from fastvec import cli, doctor, parity
from fastvec.registry import NATIVE_ENVS


def test_doctor_finds_the_same_bits(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gymnasium"] == gym.__version__
    assert "-ffp-contract=off" in found["flags"]
    assert found["differences"] == dict.fromkeys(NATIVE_ENVS)


def test_doctor_prints_every_id(capsys):
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert all(env_id in printed for env_id in NATIVE_ENVS)
    assert printed.count("same bits as Gymnasium") == len(NATIVE_ENVS)


def test_doctor_fails_where_an_env_differs(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "first_difference", lambda env_id: "step 3, lane 0: observation is ...")
    assert cli.main(["doctor"]) == 1
    assert "step 3, lane 0" in capsys.readouterr().out


@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_a_difference_of_one_bit_is_found(monkeypatch, env_id):
    real_make = parity.make

    def off_by_a_bit(*args, **kwargs):
        env = real_make(*args, **kwargs)
        step = env.step

        def step_with_a_bit_more(actions):
            results = step(actions)
            results[1].view("int64")[1] += 1
            return results

        env.step = step_with_a_bit_more
        return env

    monkeypatch.setattr(parity, "make", off_by_a_bit)
    assert parity.first_difference(env_id).startswith("step 1, lane 1: reward is ")


def test_envs_lists_what_gymnasium_says(capsys):
    assert cli.main(["envs", "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(NATIVE_ENVS)
    for env_id, native in NATIVE_ENVS.items():
        assert rows[env_id]["max_episode_steps"] == gym.spec(native.gymnasium_id).max_episode_steps
        assert rows[env_id]["observation_space"] == str(gym.make(native.gymnasium_id).observation_space)
    assert cli.main(["envs"]) == 0
    printed = capsys.readouterr().out
    assert all(env_id in printed for env_id in NATIVE_ENVS)
