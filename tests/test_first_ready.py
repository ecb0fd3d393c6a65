"""Batches of the lanes that are ready first: the trajectories of synchronous stepping, in whatever order they come."""

import functools
import os
import signal
import time

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from ordinary_envs import InfosEnv, LaneEnv, NestedEnv, WordsEnv
from processes import wait_until_gone

import fastvec


class SpellingEnv(WordsEnv):
    """Observations of which a part has no array, and actions that are numbers."""

    action_space = Discrete(3)

    def step(self, action):
        return super().step("abc"[: int(action)])


class DelayedEnv(LaneEnv):
    def __init__(self, lane=0, delay=0.0, **kwargs):
        super().__init__(lane, **kwargs)
        self.delay = delay

    def step(self, action):
        time.sleep(self.delay)
        return super().step(action)


def rows(space, value):
    return list(iterate(space, value))


def batch(single_space, items):
    return concatenate(single_space, items, create_empty_array(single_space, len(items)))


def lane_results(env, result, place):
    """What a call returned for the lane in this place, without what only one way of stepping tells."""
    obs, *numbers, info = result
    taken = [row_of(obs, place), *(array[place] for array in numbers)]
    own = {
        key: row_of(value, place)
        for key, value in info.items()
        if key not in ("env_id", "began", "policy_version", "episode")
        and not key.startswith("_")
        and info[f"_{key}"][place]
    }
    if "episode" in info and info["_episode"][place]:
        own["episode"] = [info["episode"][key][place] for key in "rl"]
    return [*taken, own]


def row_of(value, place):
    if isinstance(value, dict):
        return {
            key: row_of(part, place)
            for key, part in value.items()
            if not (key.startswith("_") and key[1:] in value) and (f"_{key}" not in value or value[f"_{key}"][place])
        }
    if isinstance(value, tuple) and all(isinstance(part, (np.ndarray, tuple, dict)) for part in value):
        return tuple(row_of(part, place) for part in value)
    return value[place]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("source", ["CartPole-v1", NestedEnv, InfosEnv, SpellingEnv])
def test_trajectories_are_those_of_synchronous_steps(source, mode):
    """D3, B3. Lanes have actions of their own, and get them in whatever order they come."""
    n, steps = 5, 60
    kwargs = {"autoreset_mode": mode, "episode_stats": True, "max_episode_steps": 15}
    sync = fastvec.make(source, n, backend="serial", **kwargs)
    env = fastvec.make(source, n, backend="process", num_workers=3, batch_size=2, **kwargs)
    sync.action_space.seed(3)
    actions = [rows(sync.action_space, sync.action_space.sample()) for _ in range(steps)]
    first = sync.reset(seed=7)[0]
    expected = [[row_of(first, lane)] for lane in range(n)]
    for row in actions:
        result = sync.step(batch(sync.single_action_space, row))
        for lane in range(n):
            expected[lane].append(lane_results(sync, result, lane))
    env.async_reset(seed=7)
    found = [[] for _ in range(n)]
    while min(map(len, found)) <= steps:
        result = env.recv(timeout=60)
        lanes = result[-1]["env_id"].tolist()
        assert len(set(lanes)) == 2
        for place, lane in enumerate(lanes):
            is_first = not found[lane]
            assert result[-1]["began"][place] or not is_first
            found[lane].append(row_of(result[0], place) if is_first else lane_results(env, result, place))
        chosen = [actions[min(len(found[lane]), steps) - 1][lane] for lane in lanes]
        env.send(batch(env.single_action_space, chosen), lanes)
    for lane in range(n):
        assert_same_bits(found[lane][: steps + 1], expected[lane], f"lane {lane}")
    env.close()


def test_no_lane_starves():
    env = fastvec.make(LaneEnv, 4, num_workers=1, batch_size=1)
    env.async_reset(seed=0)
    counts = np.zeros(4, int)
    for _ in range(400):
        lanes = env.recv(timeout=60)[-1]["env_id"]
        counts[lanes] += 1
        env.send(np.zeros(1, np.int64), lanes)
    assert counts.min() >= 50
    env.close()


def test_who_is_slow_is_not_waited_for():
    factories = [functools.partial(DelayedEnv, lane, delay) for lane, delay in enumerate((0.0, 1.0, 0.0))]
    env = fastvec.make(factories, num_workers=3, batch_size=2)
    env.async_reset(seed=0)
    env.recv(timeout=60)
    env.close()
    env = fastvec.make(factories, num_workers=3, batch_size=2)
    env.reset(seed=0)
    env.send([0, 0, 0], [0, 1, 2])
    obs, rewards, *_, info = env.recv(timeout=60)
    assert sorted(info["env_id"].tolist()) == [0, 2]
    assert rewards.tolist() == info["env_id"].tolist()
    assert obs.tolist() == [[1], [1]]
    env.send([0], [0])
    assert 1 in env.recv(timeout=60)[-1]["env_id"]
    env.close()


def test_all_lanes_together_are_a_step():
    env = fastvec.make(LaneEnv, 3, batch_size=3)
    assert env.backend == "process"
    env.reset(seed=0)
    env.send([0, 1, 2], [0, 1, 2])
    obs, *_, info = env.recv(timeout=60)
    assert obs[np.argsort(info["env_id"]), 0].tolist() == [1, 2, 3]
    assert env.step([0, 0, 0])[0][:, 0].tolist() == [2, 3, 4]
    env.send([2], [1])
    with pytest.raises(RuntimeError, match="lanes 1 are out"):
        env.step([0, 0, 0])
    with pytest.raises(RuntimeError, match="lanes 1 are out"):
        env.get_attr("lane")
    env.send([2, 2], [0, 2])
    env.recv(timeout=60)
    assert env.step([0, 0, 0])[0][:, 0].tolist() == [6, 7, 8]
    env.close()


def test_what_is_wrong_is_told_and_changes_nothing():
    """D1."""
    env = fastvec.make(LaneEnv, 4, batch_size=2)
    with pytest.raises(ResetNeeded, match="async_reset"):
        env.send([0], [0])
    with pytest.raises(ResetNeeded, match="all lanes"):
        env.async_reset(env_ids=[1])
    with pytest.raises(RuntimeError, match="0 lanes are out"):
        env.recv()
    env.async_reset(seed=0)
    with pytest.raises(ValueError, match="lane 0 is out"):
        env.async_reset()
    env.recv(timeout=60), env.recv(timeout=60)
    with pytest.raises(RuntimeError, match="0 lanes are out"):
        env.recv()
    env.send([1], [3])
    for actions, ids, error, message in (
        ([0], [3], ValueError, "lane 3 is out"),
        ([0], [4], ValueError, "0 to 3"),
        ([0], [-1], ValueError, "0 to 3"),
        ([0, 0], [1, 1], ValueError, "twice"),
        ([0], [1.0], TypeError, "env_ids"),
        ([0], 1, TypeError, "env_ids"),
        ([0, 0], [1], ValueError, r"\(2,\)"),
        ([0.5], [1], TypeError, "integers"),
    ):
        with pytest.raises(error, match=message):
            env.send(actions, ids)
    for version in (-1, 2**70, "x", [1], True, 1.5):
        with pytest.raises(TypeError, match="policy_version"):
            env.send([0], [1], policy_version=version)
    for timeout in ("1", float("nan"), True):
        with pytest.raises(TypeError, match="timeout"):
            env.recv(timeout=timeout)
    with pytest.raises(RuntimeError, match="1 lanes are out"):
        env.recv()
    nobody = np.zeros(0, np.int64)
    env.send(nobody, nobody)  # as a filter may leave
    env.send([0], [0])
    obs, *_, info = env.recv(timeout=60)
    assert obs[np.argsort(info["env_id"]), 0].tolist() == [1, 2]
    env.close()


def test_a_timeout_loses_nothing():
    factories = [functools.partial(DelayedEnv, lane, delay) for lane, delay in enumerate((0.0, 1.0))]
    env = fastvec.make(factories, num_workers=2, batch_size=2)
    env.reset(seed=0)
    env.send([0, 1], [0, 1])
    with pytest.raises(TimeoutError, match="of 2 lanes"):
        env.recv(timeout=0.2)
    obs, *_, info = env.recv(timeout=60)
    assert info["env_id"].tolist() == [0, 1]
    assert obs.tolist() == [[1], [2]]
    env.close()


def test_policy_versions_come_back():
    env = fastvec.make(LaneEnv, 3, batch_size=1, num_workers=1)
    env.async_reset(seed=0)
    for _ in range(3):
        assert env.recv(timeout=60)[-1]["policy_version"].tolist() == [-1]
    assert env.staleness.steps == 0
    env.send([0], [2], policy_version=5)
    assert env.recv(timeout=60)[-1]["policy_version"].tolist() == [5]
    env.send([0], [0], policy_version=6)
    env.send([0], [1], policy_version=9)
    seen = [env.recv(timeout=60)[-1] for _ in range(2)]
    assert {info["env_id"].item(): info["policy_version"].item() for info in seen} == {0: 6, 1: 9}
    assert (env.staleness.mean, env.staleness.largest, env.staleness.steps) == (1.0, 3, 3)
    with pytest.raises(TypeError, match="policy_version"):
        env.send([0], [0], policy_version=1.5)
    env.close()


@pytest.mark.parametrize(("trouble", "message"), [("raise", "ValueError: boom"), ("kill", "killed by SIGKILL")])
def test_a_lane_that_fails_leaves_the_others(trouble, message):
    factories = [functools.partial(LaneEnv, lane, trouble=trouble if lane == 2 else None, at=1) for lane in range(3)]
    env = fastvec.make(factories, num_workers=3, batch_size=1)
    processes = set(env.call("process"))
    env.reset(seed=0)
    env.send([0, 1, 2], [0, 1, 2])
    seen = {}
    errors = []
    for _ in range(3):
        try:
            obs, *_, info = env.recv(timeout=60)
            seen[info["env_id"].item()] = obs.item()
        except fastvec.WorkerError as error:
            errors.append(error)
    assert seen == {0: 1, 1: 2}
    assert [error.lanes for error in errors] == [(2,)]
    assert message in str(errors[0])
    if trouble == "raise":
        with pytest.raises(ResetNeeded, match="lane 2"):
            env.send([0], [2])
        env.async_reset(env_ids=[2])
        assert env.recv(timeout=60)[0].tolist() == [[0]]
    else:
        with pytest.raises(fastvec.WorkerError, match=message):
            env.send([0], [2])
    env.send([0, 0], [0, 1])
    assert {env.recv(timeout=60)[0].item() for _ in range(2)} == {2, 3}
    env.close()
    wait_until_gone(processes)


def test_a_worker_that_is_killed_while_it_reports_holds_nobody_up():
    """It has taken a place for its report then, which stays empty."""
    env = fastvec.make(LaneEnv, 3, num_workers=3, batch_size=1)
    (_, _, process) = env.call("process")
    env.reset(seed=0)
    env._pool.words[0, 2] += 1
    os.kill(process, signal.SIGKILL)
    env.send([0, 0, 0], [0, 1, 2])
    with pytest.raises(fastvec.WorkerError, match="SIGKILL"):
        env.recv(timeout=60)
    assert {env.recv(timeout=60)[-1]["env_id"].item() for _ in range(2)} == {0, 1}
    for _ in range(5):
        env.send([0, 0], [0, 1])
        assert {env.recv(timeout=60)[-1]["env_id"].item() for _ in range(2)} == {0, 1}
    env.close()


def test_a_lane_that_hangs_ends_with_the_timeout_of_steps():
    factories = [functools.partial(LaneEnv, lane, trouble="sleep" if lane else None, at=1) for lane in range(2)]
    env = fastvec.make(factories, num_workers=2, batch_size=1, step_timeout=0.5)
    env.reset(seed=0)
    env.send([0, 0], [0, 1])
    assert env.recv(timeout=60)[-1]["env_id"].tolist() == [0]
    with pytest.raises(fastvec.WorkerError, match="had not answered"):
        env.recv(timeout=60)
    env.close()


def test_ended_lanes_are_reset_by_the_caller_in_disabled_mode():
    env = fastvec.make(LaneEnv, 2, batch_size=2, autoreset_mode="Disabled", length=1)
    env.reset(seed=0)
    env.send([0, 0], [0, 1])
    assert env.recv(timeout=60)[3].tolist() == [True, True]
    with pytest.raises(ResetNeeded, match="lane 1"):
        env.send([0], [1])
    env.async_reset(env_ids=[1, 0])
    obs, rewards, _, truncations, info = env.recv(timeout=60)
    assert (obs.tolist(), rewards.tolist(), truncations.tolist()) == ([[0], [0]], [0, 0], [False, False])
    assert info["began"].tolist() == [True, True]
    env.close()


def test_resets_take_seeds_and_options():
    env = fastvec.make(InfosEnv, 3, batch_size=1, num_workers=1)
    env.async_reset(seed=5, options={"low": 2})
    infos = [env.recv(timeout=60)[-1] for _ in range(3)]
    assert [info["options"]["low"].tolist() for info in infos] == [[2]] * 3
    assert env.np_random_seed == (5, 6, 7)
    env.async_reset(seed=[10, 11, 12], env_ids=[1])
    env.recv(timeout=60)
    assert env.np_random_seed == (5, 11, 7)
    env.close()


@pytest.mark.parametrize("delay", [0.0, 60.0])
def test_close_returns_while_lanes_are_out(delay):
    env = fastvec.make(DelayedEnv, 3, num_workers=1, batch_size=1, delay=delay)
    processes = set(env.call("process"))
    env.reset(seed=0)
    env.send([0, 0, 0], [0, 1, 2])
    began = time.monotonic()
    env.close(timeout=0.5)
    assert time.monotonic() - began < 30
    wait_until_gone(processes)


@pytest.mark.parametrize(
    ("source", "kwargs", "error", "message"),
    [
        (LaneEnv, {"batch_size": 4}, ValueError, "1 to 3"),
        (LaneEnv, {"batch_size": 0}, ValueError, "batch_size"),
        (LaneEnv, {"batch_size": 1, "shared_memory": False}, ValueError, "shared_memory"),
        (LaneEnv, {"batch_size": 1, "backend": "serial"}, ValueError, "process backend alone"),
        (WordsEnv, {"batch_size": 1}, ValueError, "action space"),
        ("CartPole-v1", {"batch_size": 1}, ValueError, "process backend alone"),
    ],
)
def test_what_cannot_be_is_refused(source, kwargs, error, message):
    with pytest.raises(error, match=message):
        fastvec.make(source, 3, **kwargs)
