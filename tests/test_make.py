"""``fastvec.make``: what it takes for an id and keywords, and what its errors say."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from bits import assert_same_bits
from rollout import play

import fastvec


@pytest.mark.parametrize("bad", ["CartPole-v2", "cartpole-v1", "Cartpole", "fastvec/CartPole-v9", "CartPol-v1"])
def test_an_unknown_id_is_refused_with_the_closest_ones(bad):
    with pytest.raises(gym.error.NameNotFound) as caught:
        fastvec.make(bad)
    assert repr(bad) in str(caught.value)
    assert "CartPole-v1" in str(caught.value)


@pytest.mark.parametrize("bad", ["", "Pong", "x" * 1000])
def test_an_id_like_no_other_is_refused_with_all_there_are(bad):
    with pytest.raises(gym.error.NameNotFound) as caught:
        fastvec.make(bad)
    assert "CartPole-v1" in str(caught.value)
    assert "Counter-v0" in str(caught.value)


@pytest.mark.parametrize("bad", [None, 5, ["CartPole-v1"], b"CartPole-v1"])
def test_an_id_of_another_type_is_refused(bad):
    with pytest.raises(TypeError, match="id") as caught:
        fastvec.make(bad)
    assert repr(bad) in str(caught.value)


def test_an_id_may_have_its_namespace():
    actions = np.random.default_rng(0).integers(0, 2, (40, 2))
    plain, named = (fastvec.make(env_id, n=2) for env_id in ("CartPole-v1", "fastvec/CartPole-v1"))
    assert_same_bits(play(named, actions, seed=1), play(plain, actions, seed=1), "with its namespace")


@pytest.mark.parametrize(("env_id", "known"), [("CartPole-v1", "sutton_barto_reward=False"), ("Counter-v0", "none")])
def test_an_unknown_keyword_is_refused_with_the_known_ones(env_id, known):
    with pytest.raises(TypeError, match="gravitation") as caught:
        fastvec.make(env_id, gravitation=1.0)
    for name in (env_id, known, "autoreset_mode", "max_episode_steps"):
        assert name in str(caught.value)


@pytest.mark.parametrize("mode", ["human", "nonsense"])
def test_render_modes_are_refused(mode):
    with pytest.raises(ValueError, match="render_mode") as caught:
        fastvec.make("CartPole-v1", render_mode=mode)
    assert repr(mode) in str(caught.value)
    assert fastvec.make("CartPole-v1", render_mode=None).render_mode is None


@pytest.mark.parametrize("call", ["make('CartPole-v1', n=0)", "make('CartPole-v1', gravitation=1)", "make('Pong')"])
def test_a_failure_leaves_its_own_error_alone(call):
    """No half-made env complains when it is collected."""
    source = f"import gc, fastvec\ntry:\n    fastvec.{call}\nexcept Exception:\n    gc.collect()\n"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
