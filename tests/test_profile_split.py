"""Where the time of a batch step goes: stamps of known calls, in workers and not, and envs of known cost."""

from __future__ import annotations

import time

import gymnasium
import numpy as np
import pytest
from scripted_envs import FakeClock

import fastvec
from fastvec.contenders import CONTENDERS, Contender
from fastvec.measure import sample_actions
from fastvec.profiling.configurations import BackendContender, Configuration
from fastvec.profiling.runners import SplitRunner, split_over
from fastvec.profiling.split import PARTS, Split, TimedEnv, TimedSource, split_of, timed_loop

ENV_ID = "CartPole-v1"
OWN, FIRST, SECOND_WORKER = 1, 2, 3  # processes


def whole(split):
    return sum(getattr(split, part) for part in PARTS)


# A batch step from 10 to 74 of which inference is 10..14, and the vector env's step 16..72.
LOOP = np.array([[10.0, 14.0, 70.0]])
END = 74.0


def test_lanes_of_this_process():
    lanes = [(OWN, [(20.0, 28.0)]), (OWN, [(32.0, 48.0)])]
    split = split_of(LOOP, END, lanes, OWN)
    assert split == Split(env=24.0, ipc=0.0, wait=0.0, policy=4.0, python=56.0 - 24.0 + 4.0)
    assert whole(split) == 64.0


def test_workers_that_take_different_times():
    lanes = [
        (FIRST, [(20.0, 24.0)]),
        (FIRST, [(26.0, 34.0)]),  # its envs take 12 of 14
        (SECOND_WORKER, [(22.0, 30.0)]),
        (SECOND_WORKER, [(34.0, 62.0)]),  # and those of the slowest 36 of 40
    ]
    split = split_of(LOOP, END, lanes, OWN)
    assert split == Split(env=24.0, ipc=56.0 - 40.0, wait=12.0, policy=4.0, python=4.0 + 4.0)
    assert whole(split) == 64.0


def test_a_round_trip_of_known_length_is_ipc():
    # Of 56 in step the envs of one worker take 8 without a gap: whatever is left is on the way.
    split = split_of(LOOP, END, [(FIRST, [(30.0, 38.0)])], OWN)
    assert split == Split(env=8.0, ipc=48.0, wait=0.0, policy=4.0, python=4.0)


def test_who_is_slowest_may_change_from_step_to_step():
    loop = np.array([[0.0, 0.0, 16.0], [16.0, 16.0, 32.0]])
    lanes = [(FIRST, [(2.0, 4.0), (18.0, 30.0)]), (SECOND_WORKER, [(2.0, 14.0), (18.0, 20.0)])]
    assert split_of(loop, 32.0, lanes, OWN) == Split(env=7.0, ipc=4.0, wait=5.0, policy=0.0, python=0.0)


def test_a_step_and_a_reset_in_one_batch_step_both_count_and_the_first_reset_does_not():
    lanes = [(OWN, [(1.0, 9.0), (20.0, 24.0), (25.0, 27.0)])]
    assert split_of(LOOP, END, lanes, OWN).env == 6.0


def test_an_env_in_one_piece_is_env():
    split = split_of(LOOP, END, None)
    assert split == Split(env=56.0, ipc=0.0, wait=0.0, policy=4.0, python=4.0)


def test_the_loop_notes_policy_and_step():
    clock = FakeClock()

    def spend(seconds):
        clock.now += seconds

    def step(action):
        spend(8.0)
        return action + 1, None

    seen = []
    loop, end, observation = timed_loop(step, lambda obs: seen.append(obs) or spend(2.0), 0, [5, 7], clock)
    assert loop.tolist() == [[0.0, 2.0, 10.0], [10.0, 12.0, 20.0]]
    assert (end, observation, seen) == (20.0, 8, [0, 6])


class FakeWorkers(Contender):
    """Two workers by a fake clock: sending takes 4, their envs 8 and 16, and what comes back 2."""

    name = title = "fake"

    def __init__(self, clock):
        self._clock = clock
        self._stamps = []

    def make(self, source, n, **setting):
        return self

    def reset(self, env, seed):
        return np.zeros(2)

    def step(self, actions):
        self._clock.now += 4
        began = self._clock.now
        self._stamps.append([(began, began + 8), (began, began + 16)])
        self._clock.now += 16 + 2
        return np.zeros(2), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), {}

    def call(self, env, name):
        assert name == "take_stamps"
        stamps, self._stamps = self._stamps, []
        return [(FIRST, [one[0] for one in stamps]), (SECOND_WORKER, [one[1] for one in stamps])]

    def close(self):
        pass


def test_a_runner_splits_every_slice_and_adds_up():
    clock = FakeClock()

    def act(observation):
        clock.now += 1

    runner = SplitRunner(FakeWorkers(clock), ENV_ID, 2, sample_actions(ENV_ID, 2), act=act, clock=clock)
    runner.prepare(100.0)
    assert runner.burst == 4
    assert runner.slice_takes == 4 * 23.0
    assert [runner.step(3), runner.step(5)] == [69.0, 115.0]
    assert runner.splits == [Split(env=12.0, ipc=6.0, wait=4.0, policy=1.0, python=0.0)] * 2
    parts = {"env": 12e6, "ipc": 6e6, "wait": 4e6, "policy": 1e6, "python": 0.0}
    assert split_over(runner.splits, are_totals=False) == parts
    assert split_over([*runner.splits, Split(48.0, 6.0, 4.0, 1.0, 0.0)], are_totals=True) == {**parts, "env": 24e6}


class Sleeping(gymnasium.Env):
    """Sleeps 2 ms in every step; its episodes end after 3."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time.sleep(0.002)
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps == 3, False, {}


@pytest.mark.parametrize("backend", ["serial", "process", "sync", "async", "dummy", "subproc"])
def test_sleeping_envs_and_a_sleeping_policy_have_their_times(backend):
    """Of 4 steps of 2 lanes 1 or 0 is a reset, which takes no time."""
    workers = {"process": 2, "async": 2, "subproc": 2}.get(backend, 0)
    contender = CONTENDERS.get(backend) or BackendContender(Configuration(backend, 2, workers))
    if contender.package is not None:
        pytest.importorskip(contender.module, reason="needs stable-baselines3, which CI's tests-with-sb3 has")
    source = TimedSource(Sleeping)
    runner = SplitRunner(contender, source, 2, sample_actions(source, 2), act=lambda obs: time.sleep(0.001))
    try:
        took = runner.step(4)
        [split] = runner.splits
        slept = 0.002 if backend in ("dummy", "subproc") else 0.002 * 3 / 4  # those reset in the step itself
        assert split.policy >= 0.001
        assert split.env >= slept * (1 if workers else 2)
        assert split.env < took / 4
        assert (split.ipc > 0) == bool(workers)
        assert split.wait >= 0
        assert split.python > 0
    finally:
        runner.close()


def test_a_timed_env_notes_its_calls_once():
    env = TimedEnv(Sleeping())
    env.reset(seed=0)
    env.step(0)
    _, stamps = env.take_stamps()
    assert [end - begin >= least for (begin, end), least in zip(stamps, (0.0, 0.002), strict=True)] == [True, True]
    assert env.take_stamps()[1] == []


def test_a_timed_source_is_a_source():
    env = fastvec.make(TimedSource(ENV_ID), 2, backend="serial")
    plain = fastvec.make(ENV_ID, 2)
    assert env.reset(seed=3)[0].tolist() == plain.reset(seed=3)[0].tolist()
    assert [len(stamps) for _, stamps in env.call("take_stamps")] == [1, 1]
