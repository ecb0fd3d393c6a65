"""examples/v_trace.py: its arithmetic, and that it runs and learns."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bits import assert_same_bits

PATH = Path(__file__).parent.parent / "examples" / "v_trace.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("v_trace", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["v_trace"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["v_trace"]


def test_of_the_same_policy_targets_are_returns(example):
    """Numbers that float64 has exactly, so that the order of operations does not show."""
    rewards, discounts = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.5, 0.5])
    values, next_values = np.array([8.0, 16.0, 32.0]), np.array([16.0, 32.0, 64.0])
    targets, advantages = example.v_trace(rewards, discounts, values, next_values, np.ones(3))
    assert_same_bits(targets, np.array([1 + (2 + (4 + 32) / 2) / 2, 2 + (4 + 32) / 2, 4.0 + 32]), "targets")
    assert_same_bits(advantages, targets - values, "advantages")


def test_what_the_policy_would_not_do_any_more_does_not_count(example):
    rewards, discounts = np.array([1.0, 2.0]), np.array([0.5, 0.5])
    values, next_values = np.array([8.0, 16.0]), np.array([16.0, 64.0])
    targets, advantages = example.v_trace(rewards, discounts, values, next_values, np.array([1.0, 0.0]))
    assert_same_bits(targets, np.array([1 + 16 / 2, 16.0]), "targets")
    assert_same_bits(advantages, np.array([1.0, 0.0]), "advantages")
    more = example.v_trace(rewards, discounts, values, next_values, np.array([3.0, 1.0]))
    assert_same_bits(more, example.v_trace(rewards, discounts, values, next_values, np.ones(2)), "ratios above 1")


def test_nothing_leaks_over_the_end_of_an_episode(example):
    targets, _ = example.v_trace(
        np.array([1.0, 2.0]), np.array([0.0, 0.5]), np.zeros(2), np.array([100.0, 4.0]), np.ones(2)
    )
    assert_same_bits(targets, np.array([1.0, 4.0]), "targets")


def test_it_learns():
    done = subprocess.run(
        [sys.executable, str(PATH), "--steps", "12000"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, last = map(float, re.findall(r"50(?: episodes)? (\d\.\d\d)", done.stdout))
    assert first < last
    assert last > 0.9
