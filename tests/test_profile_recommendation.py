"""What is recommended, as a function of what was measured."""

from __future__ import annotations

import json

import pytest

from fastvec.profiling.configurations import Configuration
from fastvec.profiling.recommendation import recommend
from fastvec.profiling.report import in_code, sentences
from fastvec.profiling.statistics import estimate

ONE, FOUR, MANY = Configuration("native", 1), Configuration("native", 4), Configuration("native", 64)
SERIAL = Configuration("serial", 4)
TWO_WORKERS, FOUR_WORKERS = Configuration("process", 4, 2), Configuration("process", 4, 4)
STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0]
NOISY = [1.0, 1.5, 0.6, 1.1, 1.6, 0.7, 0.9]


def at(sps, shape=STEADY):
    return estimate([sps * factor for factor in shape])


def test_the_fastest_is_chosen():
    found = recommend([(ONE, at(100)), (FOUR, at(300)), (SERIAL, at(150))], cores=2)
    assert (found.choice, found.runner_up) == (FOUR, SERIAL)
    assert found.reason == "it makes 300 env-steps a second, and none of the others is faster"
    assert (found.runner_up_ratio.median, found.runner_up_ratio.high) == (0.5, 0.5)


def test_fewer_lanes_are_chosen_where_they_are_nearly_as_fast():
    found = recommend([(FOUR, at(95)), (MANY, at(100))], cores=2)
    assert (found.choice, found.runner_up) == (FOUR, MANY)
    assert found.reason == "it makes 95 env-steps a second, 95% of what native, n = 64 does, with fewer lanes"
    assert recommend([(FOUR, at(85)), (MANY, at(100))], cores=2).choice == MANY


def test_fewer_lanes_are_chosen_where_noise_does_not_tell_them_apart():
    found = recommend([(FOUR, at(80, NOISY)), (MANY, at(100, NOISY[::-1]))], cores=2)
    assert found.choice == FOUR
    assert "is not told apart from the fastest, native, n = 64, and has fewer lanes" in found.reason


def test_fewer_workers_are_chosen_where_they_are_as_fast():
    found = recommend([(FOUR_WORKERS, at(100)), (TWO_WORKERS, at(99))], cores=2)
    assert found.choice == TWO_WORKERS
    assert "with fewer workers" in found.reason


def test_rivals_are_not_recommended():
    rival = Configuration("envpool", 4, 2)
    found = recommend([(FOUR, at(100)), (rival, at(900))], cores=2)
    assert (found.choice, found.runner_up, found.runner_up_ratio) == (FOUR, None, None)
    assert recommend([(rival, at(900))], cores=2) is None
    assert recommend([], cores=2) is None


@pytest.mark.parametrize(
    ("cores", "contradicts", "sentence"),
    [
        (32, False, 'It agrees with the rule of thumb "at most twice the cores" (n up to 64 here).'),
        (31, True, "native, n = 4, is slower by a factor of 10 (10 to 10)."),
        (1, True, "native, n = 1, is slower by a factor of 50 (50 to 50)."),
    ],
)
def test_the_rule_of_thumb(cores, contradicts, sentence):
    found = recommend([(ONE, at(20)), (FOUR, at(100)), (MANY, at(1000))], cores)
    assert found.contradicts is contradicts
    assert sentence in found.rule_of_thumb


def test_the_rule_of_thumb_where_nothing_within_it_was_measured_or_differs():
    assert "nothing within it" in recommend([(MANY, at(10))], cores=1).rule_of_thumb
    wide = [(Configuration("native", 2), at(70)), (MANY, at(100, NOISY)), (Configuration("native", 128), at(400))]
    assert recommend(wide, cores=1).choice.n == 128


def test_sentences_are_what_json_says():
    found = recommend([(FOUR_WORKERS, at(300)), (SERIAL, at(100))], cores=2)
    told = json.loads(json.dumps(found.to_json()))
    assert (told["backend"], told["n"], told["workers"]) == ("process", 4, 4)
    assert in_code(told) == "n=4, backend='process', num_workers=4"
    answer, why, runner_up, rule = sentences(told)
    assert answer == in_code(told)
    assert why == f"Why: {found.reason}."
    assert runner_up == "Runner-up: n=4, backend='serial', 0.333 times its speed (95 % interval 0.333 to 0.333)."
    assert rule == found.rule_of_thumb


def test_a_runner_up_may_be_as_fast():
    told = recommend([(FOUR, at(100, NOISY)), (MANY, at(100, NOISY[::-1]))], cores=2).to_json()
    assert "not told apart from it" in sentences(told)[2]
