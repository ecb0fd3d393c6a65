"""How fastvec measures: what counts as an env-step, whose turn it is, ratios, clean-up. A fake clock makes it exact."""

from __future__ import annotations

import itertools
import json
import signal
import threading

import numpy as np
import pytest
from scripted_envs import SECOND, FakeClock, ScriptedContender

from fastvec import bench
from fastvec.contenders import CONTENDERS, Contender
from fastvec.measure import Runner, Spread, interleave, planned_slices, race, running, sample_actions

ENV_ID = "CartPole-v1"


def runners_of(contenders, n=1):
    return [Runner(contender, ENV_ID, n, sample_actions(ENV_ID, n)) for contender in contenders]


def test_reset_rows_are_counted_in_the_step_after_the_end():
    runner = runners_of([ScriptedContender("a", FakeClock(), periods=(4, 6))], n=2)[0]
    # Lane 0 ends in steps 4, 9, 14, ... and resets in 5, 10, 15, ...; lane 1 ends in 6, 13 and resets in 7, 14.
    assert runner.count_resets(4) == (0, 1)
    assert runner.count_resets(1, pending=1) == (1, 0)
    assert runner.count_resets(9) == (3, 1)
    assert runner.count_resets(1, pending=1) == (1, 0)


def test_rate_leaves_out_exactly_the_reset_rows_of_each_round():
    clock = FakeClock()
    contender = ScriptedContender("a", clock, periods=(4, 5))
    [result] = race(ENV_ID, 2, seconds=60 * SECOND, rounds=6, contenders=[contender], clock=clock)
    measured, counted = contender.envs
    # Each slice fills ten steps; the warm-up comes before.
    borders = np.arange(measured.made - 60, measured.made + 1, 10)
    assert borders[0] > 0
    assert counted.made == measured.made
    # Some slices begin with the reset of an episode that ended in the last step of the slice before.
    assert any(borders[:-1] % 6 == 5)
    resets = np.diff(borders // 5 + borders // 6)
    assert result.sps.samples == tuple((20 - resets) / (10 * SECOND))
    assert result.sps.median == np.median(result.sps.samples)


def test_every_row_of_a_same_step_env_counts_and_nothing_is_stepped_again():
    clock = FakeClock()
    contender = ScriptedContender("a", clock, periods=(4, 6), same_step=True)
    [result] = race(ENV_ID, 2, seconds=30 * SECOND, rounds=3, contenders=[contender], clock=clock)
    assert result.sps.samples == (2 / SECOND,) * 3
    assert len(contender.envs) == 1


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Counter-v0"])
def test_native_and_ordinary_envs_have_the_same_resets(env_id):
    actions = sample_actions(env_id, 3)
    counts = []
    for name in ("fastvec", "sync"):
        with running(CONTENDERS[name], env_id, 3, actions) as runner:
            counts.append([runner.count_resets(k) for k in (100, 57, 200)])
    assert counts[0] == counts[1]
    assert counts[0][0][0] > 0


def test_a_second_env_makes_the_same_steps():
    actions = sample_actions(ENV_ID, 3)
    for name, contender in CONTENDERS.items():
        if contender.absence(ENV_ID, 3) is not None or contender.same_step:
            continue
        for setting in contender.settings(3):
            counts = []
            for _ in range(2):
                with running(contender, ENV_ID, 3, actions, setting) as runner:
                    counts.append([runner.count_resets(k) for k in (100, 57)])
            assert counts[0] == counts[1], name


def test_rounds_are_interleaved_and_another_one_begins_each():
    clock, log = FakeClock(), []
    runners = runners_of([ScriptedContender(name, clock, log=log) for name in "abc"])
    for runner, burst in zip(runners, (1, 2, 1), strict=True):
        runner.burst = burst
    reported = []
    times = interleave(runners, 4, reported.append)
    assert "".join(log) == "abbcbbcacabbabbc"
    assert [len(rounds) for rounds in times] == [4, 4, 4]
    assert reported == [1] * 12


def test_warm_up_finds_how_many_steps_fill_a_slice():
    clock = FakeClock()
    fast, slow = (
        Runner(ScriptedContender("a", clock, seconds=seconds), ENV_ID, 1, sample_actions(ENV_ID, 1), clock=clock)
        for seconds in (SECOND, 64 * SECOND)
    )
    assert fast.warm_up(32 * SECOND) == fast.env.made >= 32
    assert fast.burst == 32
    assert slow.warm_up(32 * SECOND) == slow.env.made == 1
    assert slow.burst == 1


def test_ratio_is_taken_within_rounds():
    # The machine slows down all the time; who is four times as fast stays so in every round.
    clock, log = FakeClock(), []
    contenders = [
        ScriptedContender(name, clock, seconds=seconds, same_step=True, log=log, drift=lambda: 1.0 + len(log) // 200)
        for name, seconds in (("fastvec", SECOND), ("slow", 4 * SECOND))
    ]
    ours, theirs = race(ENV_ID, 1, seconds=2000 * SECOND, rounds=5, contenders=contenders, clock=clock)
    assert len(set(ours.sps.samples)) == 5
    assert theirs.ratio.samples == tuple(a / b for a, b in zip(ours.sps.samples, theirs.sps.samples, strict=True))
    assert theirs.ratio.median == np.median(theirs.ratio.samples)
    assert ours.ratio == Spread.of([1.0] * 5)


def test_without_fastvec_there_is_no_ratio():
    clock = FakeClock()
    [result] = race(ENV_ID, 1, seconds=SECOND, rounds=1, contenders=[ScriptedContender("a", clock)], clock=clock)
    assert result.ratio is None
    assert result.to_json()["ratio"] is None


def test_spread_is_median_and_quartiles():
    spread = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert spread == Spread(3.0, 2.0, 4.0, (5.0, 1.0, 2.0, 4.0, 3.0))


def test_fastest_setting_is_the_result():
    class WithSettings(ScriptedContender):
        def settings(self, n):
            return [{"slower": 3.0}, {"slower": 1.0}, {"slower": 2.0}]

    clock = FakeClock()
    contender = WithSettings("a", clock, same_step=True)
    slices = []
    [result] = race(ENV_ID, 1, seconds=SECOND, rounds=2, contenders=[contender], advance=slices.append, clock=clock)
    assert result.setting == {"slower": 1.0}
    assert result.sps.median == 1 / SECOND
    assert sum(slices) == planned_slices(ENV_ID, 1, 2, [contender])


class BrokenContender(Contender):
    def __init__(self, name):
        self.name = self.title = name

    def make(self, env_id, n, **setting):
        raise OSError("no such library")


def test_a_broken_rival_is_listed_and_a_broken_fastvec_is_an_error():
    clock = FakeClock()
    fine, broken = race(
        ENV_ID,
        1,
        seconds=SECOND,
        rounds=1,
        contenders=[ScriptedContender("a", clock), BrokenContender("b")],
        clock=clock,
    )
    assert fine.sps is not None
    assert broken.absent == "failed: OSError: no such library"
    with pytest.raises(OSError, match="no such library"):
        race(ENV_ID, 1, seconds=SECOND, rounds=1, contenders=[BrokenContender("fastvec")], clock=clock)


def test_all_envs_are_closed():
    clock = FakeClock()
    contenders = [ScriptedContender(name, clock) for name in "ab"]
    race(ENV_ID, 1, seconds=SECOND, rounds=2, contenders=contenders, clock=clock)
    assert [env.closed for contender in contenders for env in contender.envs] == [True] * 4


@pytest.mark.parametrize("after", [0, 3, 60])
def test_ctrl_c_closes_all_envs(after):
    """Whether it comes in the warm-up, in a round, or while resets are counted."""
    clock, calls = FakeClock(), itertools.count()

    def strike():
        if next(calls) == after:
            raise KeyboardInterrupt
        return 1.0

    contenders = [ScriptedContender("a", clock), ScriptedContender("b", clock, drift=strike)]
    with pytest.raises(KeyboardInterrupt):
        race(ENV_ID, 1, seconds=40 * SECOND, rounds=4, contenders=contenders, clock=clock)
    envs = [env for contender in contenders for env in contender.envs]
    assert len(envs) == (4 if after == 60 else 2)
    assert all(env.closed for env in envs)


def test_an_env_that_cannot_be_reset_is_closed():
    class Unresettable(ScriptedContender):
        def reset(self, env, seed):
            raise OSError("no level file")

    contender = Unresettable("a", FakeClock())
    [result] = race(ENV_ID, 1, seconds=SECOND, rounds=1, contenders=[contender])
    assert result.absent == "failed: OSError: no level file"
    assert [env.closed for env in contender.envs] == [True]


def test_ctrl_c_waits_until_an_env_is_made():
    class Struck(ScriptedContender):
        def make(self, env_id, n, **setting):
            env = super().make(env_id, n, **setting)
            signal.raise_signal(signal.SIGINT)
            return env

    clock = FakeClock()
    contenders = [Struck("a", clock), ScriptedContender("b", clock)]
    with pytest.raises(KeyboardInterrupt):
        race(ENV_ID, 1, seconds=SECOND, rounds=1, contenders=contenders, clock=clock)
    assert [env.closed for env in contenders[0].envs] == [True]
    assert contenders[1].envs == []


def test_workers_whose_answers_are_half_read_are_abandoned_without_waiting():
    for contender in CONTENDERS.values():
        if not contender.process_per_env or contender.absence(ENV_ID, 2) is not None:
            continue
        env = contender.make(ENV_ID, 2)
        try:
            contender.reset(env)
            env.step_async(np.zeros(2, np.int64))
            (env.parent_pipes if hasattr(env, "parent_pipes") else env.remotes)[0].recv()
            # In a thread: what went wrong would hang.
            closing = threading.Thread(target=contender.abandon, args=(env,), daemon=True)
            closing.start()
            closing.join(60)
            assert not closing.is_alive(), contender.name
            assert not any(process.is_alive() for process in env.processes)
        finally:
            for process in env.processes:
                process.kill()


def test_process_per_env_contenders_are_for_a_few_envs():
    assert CONTENDERS["async"].absence(ENV_ID, 8) is None
    assert CONTENDERS["async"].absence(ENV_ID, 9) == "up to n = 8"


def test_gymnasiums_numpy_env_is_not_fastvec_under_another_name():
    import fastvec

    assert CONTENDERS["numpy"].absence("Counter-v0", 1) == "no Counter-v0"
    assert CONTENDERS["numpy"].absence("CartPole-v1", 1) is None
    fastvec.register_vector_entry_points()
    try:
        assert CONTENDERS["numpy"].absence("CartPole-v1", 1) == "no CartPole-v1"
    finally:
        fastvec.unregister_vector_entry_points()


def test_what_is_not_installed_says_so():
    class Missing(Contender):
        module = "a_module_that_is_not_there"

    assert Missing().absence(ENV_ID, 1) == "not installed"


@pytest.mark.parametrize("n", [1, 5, 3000])
def test_actions_are_the_same_every_time(n):
    first, second = sample_actions(ENV_ID, n), sample_actions(ENV_ID, n)
    assert len(first) >= 16
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    values = np.concatenate(first)
    assert values.dtype == np.int64
    assert set(np.unique(values)) == {0, 1}


def test_json_is_read_back():
    clock = FakeClock()
    contenders = [ScriptedContender("fastvec", clock), ScriptedContender("a", clock), BrokenContender("b")]
    results = race(ENV_ID, 1, seconds=10 * SECOND, rounds=3, contenders=contenders, clock=clock)
    settings = bench.Settings(ENV_ID, (1,), 0.5, 3, ("fastvec", "a", "b"))
    read = json.loads(json.dumps(bench.as_json(settings, {"cpu": "some"}, results)))
    assert read["machine"] == {"cpu": "some"}
    assert read["settings"] == {
        "env": ENV_ID,
        "n": [1],
        "seconds": 0.5,
        "rounds": 3,
        "only": ["fastvec", "a", "b"],
        "seed": 0,
    }
    ran, absent = read["results"][:2], read["results"][2]
    for result, entry in zip(results, ran, strict=False):
        assert (entry["n"], entry["contender"]) == (1, result.contender.name)
        for key, spread in (("sps", result.sps), ("ratio", result.ratio)):
            assert Spread(**{**entry[key], "samples": tuple(entry[key]["samples"])}) == spread
    assert absent == {"n": 1, "contender": "b", "title": "b", "absent": "failed: OSError: no such library"}
