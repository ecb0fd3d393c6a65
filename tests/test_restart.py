"""on_worker_error="restart": a worker that fails comes back with new episodes, and its lanes are truncated."""

import functools
import gc
import logging
import os

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


@pytest.mark.parametrize("trouble", ["kill", "exit", "raise", "unpicklable", "sleep"])
def test_lanes_are_truncated_and_show_what_they_showed(tmp_path, trouble, caplog):
    env = make_lanes(tmp_path, trouble, step_timeout=1.0 if trouble == "sleep" else None)
    two_steps(env)
    with caplog.at_level(logging.WARNING, logger="fastvec"):
        obs, rewards, terminations, truncations, info = env.step([0] * 4)
    assert "worker 1 (lanes 2..3) is restarted" in caplog.text
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


def test_same_step_shows_the_new_episode_and_no_final_obs(tmp_path):
    env = make_lanes(tmp_path, "kill", autoreset_mode="SameStep")
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
    assert "restarted 3 times" in caught.value.__notes__[0]
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
        ({"on_worker_error": "restart", "shared_memory": False}, "shared_memory"),
        ({"on_worker_error": "restart", "batch_size": 1}, "batch_size"),
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
