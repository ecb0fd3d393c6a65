"""on_worker_error="restart": a worker that fails comes back with new episodes, and its lanes are truncated."""

import functools
import gc
import logging
import os
import signal

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from ordinary_envs import LaneEnv, OnceEnv
from processes import children, files, needs_proc, wait_until_gone

import fastvec


def make_lanes(tmp_path, trouble, **kwargs):
    """Four lanes in two workers, of which lane 3 has trouble."""
    path = tmp_path / "trouble"
    factories = [functools.partial(OnceEnv, lane, path if lane == 3 else None, trouble) for lane in range(4)]
    options = {"num_workers": 2, "on_worker_error": "restart", "episode_stats": True}
    return fastvec.make(factories, backend="process", **{**options, **kwargs})


def two_steps(env):
    env.reset(seed=0)
    for _ in range(2):
        env.step([0] * 4)


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("trouble", ["kill", "exit", "raise", "unpicklable", "sleep"])
def test_lanes_are_truncated_and_show_what_they_showed(tmp_path, trouble, shared_memory, caplog):
    env = make_lanes(tmp_path, trouble, step_timeout=1.0 if trouble == "sleep" else None, shared_memory=shared_memory)
    two_steps(env)
    with caplog.at_level(logging.WARNING, logger="fastvec"):
        obs, rewards, terminations, truncations, info = env.step([0] * 4)
    assert "worker 1 (lanes 2..3) is restarted" in caplog.text
    reason = {"kill": "SIGKILL", "exit": "code 3", "sleep": "not answered after 1 s"}.get(trouble, "boom")
    assert reason in caplog.text
    assert obs.tolist() == [[3], [3], [2], [2]]
    assert rewards.tolist() == [0, 1, 0, 0]
    assert terminations.tolist() == [False] * 4
    assert truncations.tolist() == [False, False, True, True]
    assert info["worker_restarted"].tolist() == [False, False, True, True]
    assert sorted(info) == ["_worker_restarted", "worker_restarted"]
    obs, rewards, *_, info = env.step([0] * 4)
    assert (obs.tolist(), rewards.tolist(), info) == ([[4], [4], [0], [0]], [0, 1, 0, 0], {})
    assert env.step([0] * 4)[0].tolist() == [[5], [5], [1], [1]]
    assert env.step([0] * 4)[1].tolist() == [0, 1, 2, 3]
    env.close()


@pytest.mark.parametrize("shared_memory", [True, False])
def test_same_step_shows_the_new_episode_and_no_final_obs(tmp_path, shared_memory):
    env = make_lanes(tmp_path, "kill", autoreset_mode="SameStep", shared_memory=shared_memory)
    two_steps(env)
    obs, *_, truncations, info = env.step([0] * 4)
    assert obs.tolist() == [[3], [3], [0], [0]]
    assert truncations.tolist() == [False, False, True, True]
    assert info["_final_obs"].tolist() == [False] * 4
    assert info["final_obs"].tolist() == [[0], [0], [2], [2]]
    assert "episode" not in info
    assert env.step([0] * 4)[0].tolist() == [[4], [4], [1], [1]]
    env.close()


def test_in_disabled_mode_the_caller_resets(tmp_path):
    env = make_lanes(tmp_path, "kill", autoreset_mode="Disabled")
    two_steps(env)
    truncations = env.step([0] * 4)[3]
    with pytest.raises(ResetNeeded, match="lane 2"):
        env.step([0] * 4)
    assert env.reset(options={"reset_mask": truncations})[0].tolist() == [[3], [3], [0], [0]]
    assert env.step([0] * 4)[0].tolist() == [[4], [4], [1], [1]]
    env.close()


def test_statistics_leave_cut_off_episodes_out(tmp_path):
    env = make_lanes(tmp_path, "kill")
    two_steps(env)
    assert "episode" not in env.step([0] * 4)[-1]
    env.step([0] * 4)
    env.set_attr("length", 3)
    infos = [env.step([0] * 4)[-1] for _ in range(3)]
    assert infos[0]["_episode"].tolist() == [True, True, False, False]
    assert infos[0]["episode"]["l"].tolist() == [5, 5, 0, 0]
    assert infos[2]["_episode"].tolist() == [False, False, True, True]
    assert infos[2]["episode"]["r"].tolist() == [0, 0, 6, 9]
    env.close()


def test_a_worker_lost_between_calls_comes_back_in_the_next(tmp_path):
    env = make_lanes(tmp_path, None)
    two_steps(env)
    os.kill(env.call("process")[0], 9)
    assert env.step([0] * 4)[3].tolist() == [True, True, False, False]
    assert env.step([0] * 4)[0].tolist() == [[0], [0], [4], [4]]
    os.kill(env.call("process")[0], 9)
    with pytest.raises(fastvec.WorkerError, match="SIGKILL"):
        env.get_attr("lane")
    assert env.reset(seed=0)[0].tolist() == [[0]] * 4
    assert env.step([0] * 4)[0].tolist() == [[1]] * 4
    env.close()


def test_a_crash_loop_stops_with_its_cause():
    env = fastvec.make(LaneEnv, 2, backend="process", num_workers=1, trouble="raise", on_worker_error="restart")
    env.reset(seed=0)
    # Three steps from one trouble to the next, and one that is the reset.
    truncated = [env.step([0, 0])[3].all() for _ in range(14)]
    assert np.flatnonzero(truncated).tolist() == [2, 6, 10]
    with pytest.raises(fastvec.WorkerError, match="ValueError: boom") as caught:
        env.step([0, 0])
    assert "restarted 3 times" in str(caught.value)
    env.close()


def test_envs_that_cannot_be_made_again_are_the_error(tmp_path):
    env = fastvec.make(MadeOnceEnv, 1, backend="process", on_worker_error="restart", path=tmp_path / "made")
    processes = env.call("process")
    env.reset(seed=0)
    env.step([0])
    env.step([0])
    with pytest.raises(fastvec.WorkerError, match="OSError: only once"):
        env.step([0])
    env.close()
    wait_until_gone(processes)


class MadeOnceEnv(LaneEnv):
    def __init__(self, path):
        super().__init__(trouble="exit")
        if path.exists():
            raise OSError("only once")
        path.touch()


@needs_proc
def test_nothing_is_left(tmp_path):
    make_lanes(tmp_path, None).close()
    gc.collect()
    before = files(), children()
    for cycle in range(3):
        directory = tmp_path / str(cycle)
        directory.mkdir()
        env = make_lanes(directory, "kill")
        two_steps(env)
        env.step([0] * 4)
        processes = env.call("process")
        env.close()
        wait_until_gone(processes)
    del env  # its arrays stay as long as it does, and their memory with them
    gc.collect()
    assert (files(), children()) == before


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"on_worker_error": "ignore"}, "'restart'"),
        ({"on_worker_error": "restart", "backend": "serial"}, "process backend alone"),
    ],
)
def test_what_cannot_be_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        fastvec.make(LaneEnv, 2, **{"backend": "process", **kwargs})


def test_other_lanes_are_as_if_nothing_had_happened(tmp_path):
    env = make_lanes(tmp_path, "kill")
    calm = fastvec.make([functools.partial(LaneEnv, lane) for lane in range(4)], backend="serial")
    rng = np.random.default_rng(0)
    env.reset(seed=0), calm.reset(seed=0)
    for _ in range(20):
        actions = rng.integers(0, 3, 4)
        for one, other in zip(env.step(actions)[:4], calm.step(actions)[:4], strict=True):
            assert one[:2].tolist() == other[:2].tolist()
    env.close()


# Batches of who is ready first


def received(env, count):
    """The next rows of so many lanes: {lane: (observation, reward, terminated, truncated, restarted, began)}."""
    rows = {}
    while len(rows) < count:
        obs, rewards, terminations, truncations, info = env.recv(timeout=60)
        restarted = info.get("worker_restarted", np.zeros(len(obs), bool))
        columns = (obs[:, 0], rewards, terminations, truncations, restarted, info["began"])
        for lane, *row in zip(info["env_id"].tolist(), *(column.tolist() for column in columns), strict=True):
            assert lane not in rows
            rows[lane] = tuple(row)
    return rows


@pytest.mark.parametrize("trouble", ["kill", "exit", "raise", "sleep"])
@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_lanes_that_are_out_are_cut_off(tmp_path, trouble, mode):
    timeout = 1.0 if trouble == "sleep" else None
    env = make_lanes(tmp_path, trouble, batch_size=1, autoreset_mode=mode, step_timeout=timeout)
    env.async_reset(seed=0)
    assert received(env, 4) == dict.fromkeys(range(4), (0, 0, False, False, False, True))
    for count in (1, 2):
        env.send([0] * 4, range(4))
        assert received(env, 4) == {lane: (count, lane, False, False, False, False) for lane in range(4)}
    # Lane 2 is of the same worker: it may be done before lane 3 fails, and is then cut off in the step after.
    env.send([0] * 4, range(4))
    rows = received(env, 4)
    assert {lane: rows[lane] for lane in (0, 1)} == {lane: (3, lane, False, False, False, False) for lane in (0, 1)}
    assert rows[3] == (2, 0, False, True, True, False)
    if not rows[2][4]:
        assert rows[2] == (3, 2, False, False, False, False)
        env.send([0], [2])
        assert received(env, 1) == {2: (3, 0, False, True, True, False)}
    if mode == "Disabled":
        with pytest.raises(ResetNeeded, match="lane 2 has ended"):
            env.send([0], [2])
        env.async_reset(env_ids=[2, 3])
    else:
        env.send([0, 0], [2, 3])
    assert received(env, 2) == dict.fromkeys((2, 3), (0, 0, False, False, False, True))
    env.send([0] * 4, range(4))
    rows = received(env, 4)
    assert [rows[lane][0] for lane in range(4)] == [4, 4, 1, 1]
    env.close()


def test_in_same_step_mode_cut_off_lanes_show_the_new_episode(tmp_path):
    path = tmp_path / "trouble"
    factories = [functools.partial(OnceEnv, lane, path if lane else None, "kill") for lane in range(2)]
    env = fastvec.make(
        factories,
        num_workers=2,
        batch_size=1,
        autoreset_mode="SameStep",
        on_worker_error="restart",
        episode_stats=True,
    )
    env.async_reset(seed=0)
    received(env, 2)
    for _ in range(2):
        env.send([0, 0], [0, 1])
        received(env, 2)
    env.send([0], [1])
    obs, rewards, _, truncations, info = env.recv(timeout=60)
    assert (obs.tolist(), rewards.tolist(), truncations.tolist()) == ([[0]], [0], [True])
    assert info["worker_restarted"].tolist() == [True]
    assert info["final_obs"].tolist() == [[2]]
    assert info["_final_obs"].tolist() == info["_final_info"].tolist() == [False]
    assert "episode" not in info or not info["_episode"].any()
    env.send([0, 0], [0, 1])
    assert {lane: row[0] for lane, row in received(env, 2).items()} == {0: 3, 1: 1}
    env.close()


def test_lanes_that_nobody_had_sent_to_are_cut_off_at_the_next_send(tmp_path):
    path = tmp_path / "trouble"
    factories = [functools.partial(OnceEnv, lane, path if lane else None, "kill") for lane in range(2)]
    env = fastvec.make(factories, num_workers=1, batch_size=1, on_worker_error="restart")
    env.async_reset(seed=0)
    received(env, 2)
    for _ in range(2):
        env.send([0], [1])
        received(env, 1)
    env.send([0], [0])
    received(env, 1)
    env.send([0], [1])
    assert received(env, 1) == {1: (2, 0, False, True, True, False)}
    # All lanes together need to know of it first.
    env.send([0], [1])
    received(env, 1)
    assert env.failed.tolist() == [True, False]
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step([0, 0])
    env.send([0], [0])
    assert received(env, 1) == {0: (1, 0, False, True, True, False)}
    env.step([0, 0])
    env.close()


def test_a_worker_that_is_lost_while_no_lane_is_out_comes_back_with_the_next_send():
    env = fastvec.make(LaneEnv, 2, num_workers=2, batch_size=1, on_worker_error="restart")
    env.reset(seed=0)
    (_, process) = env.call("process")
    os.kill(process, signal.SIGKILL)
    env.send([0, 0], [0, 1])
    assert received(env, 2) == {0: (1, 0, False, False, False, False), 1: (0, 0, False, True, True, False)}
    env.close()


def test_a_crash_loop_of_batches_stops_with_its_cause():
    factories = [functools.partial(LaneEnv, lane, trouble="kill" if lane else None, at=1) for lane in range(2)]
    env = fastvec.make(factories, num_workers=2, batch_size=1, on_worker_error="restart")
    env.reset(seed=0)
    for _ in range(6):  # each second step is a reset
        env.send([0], [1])
        env.recv(timeout=60)
    env.send([0], [1])
    with pytest.raises(fastvec.WorkerError, match="killed by SIGKILL"):
        env.recv(timeout=60)
    env.send([0], [0])
    assert received(env, 1)[0][0] == 1
    env.close()


def test_every_lane_arrives_once_however_often_its_worker_fails():
    """A new worker must not find what the old one was asked for."""
    factories = [functools.partial(LaneEnv, lane, trouble=None if lane else "raise", at=4) for lane in range(64)]
    options = {"autoreset_mode": "SameStep", "on_worker_error": "restart"}
    for _ in range(4):
        env = fastvec.make(factories, num_workers=1, batch_size=64, **options)
        env.async_reset(seed=0)
        for _ in range(12):  # after which it has failed three times
            lanes = env.recv(timeout=60)[-1]["env_id"]
            env.send([0] * 64, lanes)  # refuses a lane that is there twice, or out
        env.close()
