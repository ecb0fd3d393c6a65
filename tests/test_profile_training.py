"""`fastvec profile --train`: runs of the same steps and batch at every n, and what their seeds tell apart."""

from __future__ import annotations

import json

import pytest
from ordinary_envs import LaneEnv

from fastvec.profiling.report import training_rows
from fastvec.profiling.training import BATCH, Training, compared, require_training, train, trainable_counts


def trained(n, seconds, returns):
    return Training(n, BATCH // n, 10_000, seconds, returns)


def test_runs_are_the_same_for_a_seed_and_have_the_same_steps_at_every_n():
    pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    done = []
    first, again, other = (train("CartPole-v1", n, 2 * BATCH, (0, 1), done.append) for n in (64, 64, 8))
    assert done == [1] * 6
    assert (first.n * first.rollout, other.n * other.rollout) == (BATCH, BATCH)
    assert first.returns == again.returns
    assert len(set(first.returns)) == 2
    assert len(first.seconds) == len(first.returns) == 2  # one for each seed


def test_batches_are_whole():
    assert trainable_counts((1, 3, 8, 1000, 1024, 4096)) == (1, 8, 1024)


def test_ordinary_envs_are_refused():
    with pytest.raises(ValueError, match="needs an id that has a kernel"):
        require_training(LaneEnv)


def test_variance_is_over_seeds():
    assert trained(8, (1.0, 1.0), (10.0, 14.0)).return_variance == 8.0
    assert trained(8, (1.0,), (10.0,)).return_variance == 0.0


def test_export_and_table():
    told = json.loads(json.dumps(trained(8, (1.0, 3.0), (10.0, 14.0)).to_json()))
    assert told == {
        "n": 8,
        "rollout": 256,
        "steps": 10_000,
        "seconds": {"median": 2.0, "samples": [1.0, 3.0]},
        "final_return": {"mean": 12.0, "variance": 8.0, "samples": [10.0, 14.0]},
    }
    assert training_rows([told]) == [("8", "256", "2.00", "12.0", "8.0")]


@pytest.mark.parametrize(
    ("few", "many", "said"),
    [
        ((400.0, 401.0), (200.0, 201.0), "faster per step is not learning as well"),
        ((400.0, 200.0), (200.0, 390.0), "do not tell it apart from n = 8"),
        ((400.0, 401.0), (402.0, 403.0), "n = 64 was done first (1.00 s) and had the highest final return (402.5)"),
    ],
)
def test_faster_is_not_taken_for_better(few, many, said):
    assert said in compared([trained(8, (2.0, 2.0), few), trained(64, (1.0, 1.0), many)])
