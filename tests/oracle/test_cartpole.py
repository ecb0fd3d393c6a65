"""CartPole against Gymnasium's own, in lock-step."""

import numpy as np
import pytest
from lockstep import Lockstep, run_lockstep
from rollout import make_oracle

import fastvec

N = 5
SEEDS = (0, 1234, [7, 7, 2**32, 2**64 - 1, 2**128 + 5], 2**32 - 3, 2**64 - 2)


def steady(obs):
    """Keeps the pole up past 500 steps."""
    x, x_dot, theta, theta_dot = obs.T
    return (theta + 0.5 * theta_dot + 0.05 * x + 0.1 * x_dot > 0).astype(np.int64)


def compare(env_id, mode, lane_steps, policy=None, interruptions=0.01, **kwargs):
    return run_lockstep(
        lambda: fastvec.make(env_id, n=N, autoreset_mode=mode, **kwargs),
        lambda: make_oracle(env_id, N, mode, **kwargs),
        seeds=SEEDS,
        lane_steps=lane_steps,
        policy=policy,
        interruptions=interruptions,
    )


@pytest.mark.parametrize("env_id", ["CartPole-v0", "CartPole-v1"])
@pytest.mark.parametrize("sutton_barto_reward", [False, True])
def test_random_play(env_id, mode, lane_steps, sutton_barto_reward):
    counts = compare(env_id, mode, lane_steps, sutton_barto_reward=sutton_barto_reward)
    assert counts["terminated"] > lane_steps / 50


@pytest.mark.parametrize(("env_id", "limit"), [("CartPole-v0", 200), ("CartPole-v1", 500)])
def test_steady_play_reaches_the_limit(env_id, mode, lane_steps, limit):
    counts = compare(env_id, mode, lane_steps, policy=steady, interruptions=0.0005)
    assert counts["truncated"] >= lane_steps / limit / 2


def test_a_limit_that_random_play_often_meets_with_a_fall(mode, lane_steps):
    counts = compare("CartPole-v1", mode, lane_steps, max_episode_steps=12)
    assert counts["both"] > 0
    assert counts["terminated"] > counts["both"]
    assert counts["truncated"] > counts["both"]


def test_constant_actions(mode, lane_steps):
    for action in (0, 1):
        counts = compare("CartPole-v1", mode, lane_steps // 2, policy=lambda obs, a=action: np.full(N, a))
        assert counts["terminated"] > 0


@pytest.mark.parametrize("bounds", [(-0.2, 0.2), (0.0, 0.0), (-0.05, 0.3), (-3, 3), (0.1, 0.1)])
def test_reset_options(mode, bounds):
    """The bounds hold for the reset that they are given to; resets that follow an end take the env's own."""
    pair = Lockstep(fastvec.make("CartPole-v1", n=N, autoreset_mode=mode), make_oracle("CartPole-v1", N, mode))
    low, high = bounds
    rng = np.random.default_rng(0)
    for options in ({"low": low, "high": high}, {"high": max(high, 0.05)}, {"low": min(low, -0.05)}, {}, None):
        pair.reset(seed=3, options=options)
        for step in range(60):
            if pair.ended.any() and mode.value == "Disabled":
                pair.reset(options={"reset_mask": pair.ended.copy()})
            if step == 30:
                pair.reset(options={**(options or {}), "reset_mask": np.arange(N) % 2 == 0})
            pair.step(rng.integers(0, 2, N))


@pytest.mark.parametrize("integrator", ["euler", "semi-implicit euler"])
def test_kinematics_integrator(mode, integrator):
    def build(env):
        env.set_attr("kinematics_integrator", integrator)
        return env

    counts = run_lockstep(
        lambda: build(fastvec.make("CartPole-v1", n=N, autoreset_mode=mode)),
        lambda: build(make_oracle("CartPole-v1", N, mode)),
        lane_steps=5_000,
    )
    assert counts["terminated"] > 0
