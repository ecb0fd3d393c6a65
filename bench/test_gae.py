"""Time of `gae` beside NumPy's usual loop over rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fastvec

SHAPES = ((128, 8), (128, 1024))


def numpy_rows(rewards, values, terminations, truncations, last_values, *, final_values, gamma=0.99, gae_lambda=0.95):
    """One row after another with NumPy, in SameStep mode."""
    steps = len(values)
    advantages = np.empty_like(values)
    carried = np.zeros_like(last_values)
    for t in reversed(range(steps)):
        following = values[t + 1] if t < steps - 1 else last_values
        bootstrap = np.where(terminations[t], 0, np.where(truncations[t], final_values[t], following))
        carried = np.where(terminations[t] | truncations[t], 0, carried)
        carried = rewards[t] + gamma * bootstrap - values[t] + gamma * gae_lambda * carried
        advantages[t] = carried
    return advantages, advantages + values


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("side", ["fastvec", "fastvec, out=", "numpy rows"])
def test_gae(benchmark, side, dtype, shape):
    rng = np.random.default_rng(0)
    rewards, values, final_values = (rng.normal(size=shape).astype(dtype) for _ in range(3))
    terminations, truncations = rng.random((2, *shape)) < 0.01
    rollout = rewards, values, terminations, truncations, rng.normal(size=shape[1]).astype(dtype)
    sides = {
        "fastvec": fastvec.gae,
        "fastvec, out=": partial(fastvec.gae, out=(np.empty_like(values), np.empty_like(values))),
        "numpy rows": numpy_rows,
    }
    benchmark.group = f"gae, {dtype.__name__} of shape {shape}"
    benchmark(sides[side], *rollout, final_values=final_values)
