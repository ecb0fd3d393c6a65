"""Lanes whose angle is outside of what vecmath.h computes: the kernel's loop leaves them to the C library."""

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from rollout import make_oracle

import fastvec
from fastvec import _core
from fastvec.machine import Difference

MODES = [mode.value for mode in AutoresetMode]
HERE = [name for name, runs in _core.targets().items() if runs]
REACHES = [0.9, 3.0, 1e9]  # rad: at times, mostly and always beyond


def play_with_far_lanes(env, reach, lanes_far):
    """Takes 30 steps, and before each puts some poles at an angle of up to `reach`; returns all that was returned."""
    rng = np.random.default_rng(7)
    returned = [env.reset(seed=5)]
    for _ in range(30):
        states = [np.array(state, np.float64) for state in env.get_attr("state")]
        for state in states:
            if rng.random() < lanes_far:
                state[2] = rng.uniform(-reach, reach)
        env.set_attr("state", states)
        returned.append(env.step(rng.integers(0, 2, env.num_envs)))
        returned.append(np.array(env.get_attr("state"), np.float64))
        ended = returned[-2][2] | returned[-2][3]
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
            returned.append(env.reset(options={"reset_mask": ended}))
    env.close()
    return returned


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("target", HERE)
def test_far_lanes_equal_gymnasium(mode, target, reach, monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", target)
    ours = fastvec.make("CartPole-v1", n=21, autoreset_mode=mode)
    theirs = make_oracle("CartPole-v1", 21, AutoresetMode(mode))
    for got, expected in zip(
        play_with_far_lanes(ours, reach, 0.3), play_with_far_lanes(theirs, reach, 0.3), strict=True
    ):
        for one, other in zip(got, expected, strict=True):
            if not isinstance(one, dict):  # infos are compared elsewhere
                assert_same_bits(one, other, target)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lanes_far", [0.01, 1.0])
@pytest.mark.parametrize("math", ["", "libm"])
@pytest.mark.parametrize("target", HERE)
def test_far_lanes_keep_their_statistics(mode, target, math, lanes_far, monkeypatch):
    """A far lane is stepped twice, but its reward counts once. More lanes than a chunk has, no multiple of a vector."""

    def play():
        env = fastvec.make("CartPole-v1", n=1027, autoreset_mode=mode, episode_stats=True, sutton_barto_reward=True)
        returned = play_with_far_lanes(env, 1.2, lanes_far)
        return [without_times(item) for item in returned]

    def without_times(returned):
        if isinstance(returned, tuple) and "episode" in returned[-1]:
            returned[-1]["episode"].pop("t")
        return returned

    monkeypatch.setenv("FASTVEC_ISA", "baseline")
    expected = play()
    monkeypatch.setenv("FASTVEC_ISA", target)
    monkeypatch.setenv("FASTVEC_MATH", math)
    assert_same_bits(play(), expected, target)


def test_an_unknown_mathematics_is_refused(monkeypatch):
    monkeypatch.setenv("FASTVEC_MATH", "fast")
    with pytest.raises(ValueError, match="FASTVEC_MATH is 'fast'"):
        fastvec.make("CartPole-v1")


@pytest.mark.parametrize("target", HERE)
def test_math_that_differs_is_not_used(target, monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", target)
    own = target != "baseline" and _core.math_difference(target) is None
    assert fastvec.make("CartPole-v1")._batch.math == ("vector" if own else "libm")
    monkeypatch.setattr("fastvec.machine.vector_difference", lambda target: Difference("sin", 0.5, 0.0, 1.0))
    assert fastvec.make("CartPole-v1")._batch.math == "libm"
