"""backend="auto": what is measured of an env, and what is chosen for it."""

import logging
import threading
import time

import pytest
from ordinary_envs import LaneEnv

import fastvec
from fastvec.backends.choosing import StepCost, choose, counts_of_workers, measure, measure_round_trip

US, MS = 1e-6, 1e-3


def choose_for(cost, n, cores, num_workers=None, base=40 * US, per_worker=5 * US):
    """What is chosen where waking workers takes so long."""
    trips = {count: base + per_worker * count for count in counts_of_workers(n, cores, num_workers)}
    return choose(cost, n, cores, trips, num_workers)


@pytest.mark.parametrize(
    ("wall", "cpu", "info", "n", "cores", "backend", "workers"),
    [
        (1 * US, 1 * US, 0, 8, 2, "serial", None),  # waking workers takes longer
        (1 * MS, 1 * MS, 0, 8, 2, "process", 2),
        (1 * MS, 1 * MS, 0, 8, 1, "serial", None),  # one core computes as much either way
        (1 * MS, 1 * MS, 0, 3, 8, "process", 3),
        (1 * MS, 2 * MS, 0, 8, 2, "process", 2),  # threads of its own; workers are not slower than that
        (5 * MS, 10 * US, 0, 16, 2, "process", 16),  # waits
        (5 * MS, 10 * US, 0, 16, 1, "process", 16),
        (100 * US, 100 * US, 90 * US, 8, 2, "serial", None),  # sending infos takes as long as the steps
        (30 * US, 30 * US, 0, 2, 2, "serial", None),
    ],
)
def test_what_is_chosen(wall, cpu, info, n, cores, backend, workers):
    choice = choose_for(StepCost(wall, cpu, info), n, cores)
    assert (choice.backend, choice.num_workers) == (backend, workers)


@pytest.mark.parametrize(("trip", "backend"), [(2 * US, "process"), (10 * US, "process"), (60 * US, "serial")])
def test_it_depends_on_what_waking_takes(trip, backend):
    # 80 us one after the other, or 40 us and the way to two workers and back
    assert choose_for(StepCost(10 * US, 10 * US, 0), 8, 2, base=trip, per_worker=0).backend == backend


def test_workers_have_to_be_faster_by_a_tenth():
    cost = StepCost(100 * US, 100 * US, 0)
    half = 400 * US
    assert choose_for(cost, 8, 2, base=800 * US / 1.05 - half, per_worker=0).backend == "serial"
    assert choose_for(cost, 8, 2, base=800 * US / 1.20 - half, per_worker=0).backend == "process"


def test_the_round_trip_is_measured():
    before = threading.active_count()
    assert 0 < measure_round_trip(2, 2) < 1
    assert 0 < measure_round_trip(1, 2) < 1  # which looks before it sleeps
    assert measure_round_trip(64, 2) > 0  # more than are tried
    assert threading.active_count() == before


def test_slow_steps_are_measured_twice_and_cheap_ones_often():
    made = []

    class Counted(LaneEnv):
        def __init__(self, seconds):
            super().__init__(length=10**9)
            self.seconds, self.steps = seconds, 0
            made.append(self)

        def step(self, action):
            self.steps += 1
            time.sleep(self.seconds)
            return super().step(action)

    measure(lambda: Counted(0.03))
    measure(lambda: Counted(0.0))
    assert made[0].steps == 2
    assert made[1].steps > 15  # in twenty milliseconds


def test_a_given_number_of_workers_is_kept():
    assert choose_for(StepCost(5 * MS, 0, 0), 16, 2, num_workers=4).num_workers == 4
    assert choose_for(StepCost(1 * MS, 1 * MS, 0), 16, 2, num_workers=1).backend == "serial"


def test_the_reason_has_the_figures():
    reason = choose_for(StepCost(2 * MS, 30 * US, 0), 8, 2).reason
    for part in ("2.0 ms", "30.0 us", "16.0 ms", "8 lanes", "8 workers", "80.0 us", "2 cores"):
        assert part in reason


class WaitingEnv(LaneEnv):
    def step(self, action):
        time.sleep(0.004)
        return super().step(action)


class ComputingEnv(LaneEnv):
    def step(self, action):
        end = time.thread_time() + 0.004
        while time.thread_time() < end:
            pass
        return super().step(action)


def test_waiting_is_told_from_computing():
    waiting, computing = measure(WaitingEnv), measure(ComputingEnv)
    assert waiting.wall >= 0.004
    assert waiting.cpu < 0.002
    assert computing.cpu >= 0.004
    assert computing.wall <= computing.cpu  # what other processes take of the core is not the env's


def test_resets_count():
    class Ending(LaneEnv):
        def reset(self, *, seed=None, options=None):
            time.sleep(0.004)
            return super().reset(seed=seed)

    assert measure(lambda: Ending(length=1)).wall > 0.001


def test_the_measured_env_is_closed():
    made = []
    measure(lambda: made.append(LaneEnv()) or made[0])
    assert made[0].was_closed


def test_auto_goes_where_it_is_faster(caplog):
    with caplog.at_level(logging.INFO, logger="fastvec"):
        waiting = fastvec.make(WaitingEnv, 4)
        cheap = fastvec.make(LaneEnv, 2)
    assert (waiting.backend, waiting.num_workers, cheap.backend) == ("process", 4, "serial")
    assert "WaitingEnv: backend process" in caplog.text
    assert "LaneEnv: backend serial" in caplog.text
    assert waiting.backend_reason in caplog.text
    waiting.close()


def test_options_of_workers_may_be_given_to_auto():
    env = fastvec.make(WaitingEnv, 4, num_workers=2, context="fork", step_timeout=60)
    assert (env.backend, env.num_workers) == ("process", 2)
    env.close()
    assert fastvec.make(LaneEnv, 2, num_workers=2).backend == "serial"


def test_an_env_that_cannot_be_measured_shows_its_error_later():
    env = fastvec.make(LaneEnv, 2, trouble="reset")
    assert (env.backend, "OSError: no reset" in env.backend_reason) == ("serial", True)
    with pytest.raises(OSError, match="no reset"):
        env.reset(seed=0)


def test_native_ids_are_not_measured():
    env = fastvec.make("CartPole-v1", 2)
    assert (env.backend, env.backend_reason) == ("native", "it has a kernel")
    assert fastvec.make(LaneEnv, 1).backend == "serial"
