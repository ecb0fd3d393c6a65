"""The comparer that the suite rests on can fail: one wrong bit, dtype, shape, key or mask, and it says where."""

import copy

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode, VectorWrapper
from lockstep import compare_infos, run_lockstep
from rollout import make_oracle

import fastvec

SAME_STEP_INFO = {
    "final_obs": np.array([None, np.array([1, 2], np.float32)], object),
    "_final_obs": np.array([False, True]),
    "final_info": {"prob": np.array([0.0, 0.5]), "_prob": np.array([False, True])},
    "_final_info": np.array([False, True]),
}
DENSE = {**SAME_STEP_INFO, "final_obs": np.array([[0, 0], [1, 2]], np.float32)}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.array([0.0, -0.0])),
        (np.zeros(2), np.array([0.0, 5e-324])),
        (np.zeros(2), np.array([0.0, np.nan])),
        (np.zeros(2), [0.0, 0.0]),
        (np.zeros(2, ">f8"), np.zeros(2)),
        (np.array([0, 2], np.uint8).view(bool), np.array([False, True])),
        (np.array([None, 1], object), np.array([None, 2], object)),
        ((1, 2), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": 1.0}}),
        (1, True),
        (1.0, np.float64(1.0)),
    ],
)
def test_bits_that_differ_are_told_apart(ours, theirs):
    for one, other in ((ours, theirs), (theirs, ours)):
        with pytest.raises(AssertionError, match="there"):
            assert_same_bits(one, other, "there")


def test_bits_that_do_not_differ_pass():
    value = {"a": (np.arange(3), [np.array([None, np.nan, "x"], object)]), "b": np.float32(np.nan)}
    assert_same_bits(copy.deepcopy(value), value, "there")


def test_infos_that_differ_where_they_may_pass():
    compare_infos(copy.deepcopy(DENSE), SAME_STEP_INFO, "there")
    beside_the_mask = copy.deepcopy(DENSE)
    beside_the_mask["final_obs"][0] = 7
    compare_infos(beside_the_mask, SAME_STEP_INFO, "there")


def wrong_infos():
    """DENSE, each time with one thing wrong."""

    def with_change(change):
        info = copy.deepcopy(DENSE)
        change(info)
        return info

    yield with_change(lambda info: info["final_obs"].__setitem__((1, 0), 3))
    yield with_change(lambda info: info.update(final_obs=info["final_obs"].astype(np.float64)))
    yield with_change(lambda info: info.update(final_obs=info["final_obs"].tolist()))
    yield with_change(lambda info: info.update(final_obs=info["final_obs"][:, :1]))
    yield with_change(lambda info: info["_final_obs"].__setitem__(0, True))
    yield with_change(lambda info: info.update(_final_obs=info["_final_obs"].astype(np.uint8)))
    yield with_change(lambda info: info.pop("_final_info"))
    yield with_change(lambda info: info.update(extra=0))
    yield with_change(lambda info: info["final_info"]["prob"].__setitem__(0, 0.25))
    yield with_change(lambda info: info["final_info"].pop("_prob"))
    yield with_change(lambda info: info.update(final_info=None))


@pytest.mark.parametrize("info", list(wrong_infos()))
def test_infos_that_differ_anywhere_else_are_told_apart(info):
    with pytest.raises(AssertionError, match="there"):
        compare_infos(info, SAME_STEP_INFO, "there")


class Faulty(VectorWrapper):
    """fastvec with one thing wrong at one step."""

    def __init__(self, env, fault):
        super().__init__(env)
        self.fault, self.steps, self.resets = fault, 0, 0

    def reset(self, *, seed=None, options=None):
        self.resets += 1
        if self.fault == "mask taken out of the options" and options:
            result = self.env.reset(seed=seed, options=options)
            options.pop("reset_mask")
            return result
        if self.fault == "reset without its seed" and self.resets == 2:
            return self.env.reset(options=options)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions):
        self.steps += 1
        if self.fault == "action of one lane" and self.steps == 100:
            actions = actions.copy()
            actions[3] = 1 - actions[3]
        obs, rewards, terminations, truncations, info = self.env.step(actions)
        if self.steps == 100:
            if self.fault == "last bit of one observation":
                obs[2, 1] = np.nextafter(obs[2, 1], np.float32(9))
            elif self.fault == "dtype of rewards":
                rewards = rewards.astype(np.float32)
            elif self.fault == "termination for truncation":
                terminations, truncations = truncations.copy(), ~truncations
            elif self.fault == "info that should not be":
                info = {**info, "final_obs": obs, "_final_obs": terminations}
            elif self.fault == "last bit of the state":
                self.env.state["x"][4] = np.nextafter(self.env.state["x"][4], 9)
        if self.fault == "first observation as the last" and "final_obs" in info:
            info["final_obs"] = obs.copy()
        return obs, rewards, terminations, truncations, info


@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        ("last bit of one observation", AutoresetMode.NEXT_STEP),
        ("last bit of the state", AutoresetMode.NEXT_STEP),
        ("dtype of rewards", AutoresetMode.NEXT_STEP),
        ("termination for truncation", AutoresetMode.SAME_STEP),
        ("info that should not be", AutoresetMode.NEXT_STEP),
        ("first observation as the last", AutoresetMode.SAME_STEP),
        ("mask taken out of the options", AutoresetMode.DISABLED),
        ("action of one lane", AutoresetMode.DISABLED),
        ("reset without its seed", AutoresetMode.NEXT_STEP),
    ],
)
def test_a_run_finds_one_fault(fault, mode):
    with pytest.raises(AssertionError):
        run_lockstep(
            lambda: Faulty(fastvec.make("CartPole-v1", n=5, autoreset_mode=mode), fault),
            lambda: make_oracle("CartPole-v1", 5, mode),
            seeds=(0, 1),
            interruptions=0,
        )
    counts = run_lockstep(
        lambda: Faulty(fastvec.make("CartPole-v1", n=5, autoreset_mode=mode), None),
        lambda: make_oracle("CartPole-v1", 5, mode),
        seeds=(0, 1),
        interruptions=0,
    )
    assert counts["steps"] == 400
