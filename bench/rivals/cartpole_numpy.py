"""CartPole in NumPy, vectorised by hand: float32 columns, and every operation into an array that is there already.

A rival for a race, not a library: it checks no actions, takes no options, and knows this one env and NEXT_STEP mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

GRAVITY, MASS_POLE, MASS_CART, HALF_LENGTH, FORCE, TAU = 9.8, 0.1, 1.0, 0.5, 10.0, 0.02
X_LIMIT, THETA_LIMIT, MOST_STEPS = np.float32(2.4), np.float32(12 * 2 * math.pi / 360), 500
TOTAL_MASS = MASS_POLE + MASS_CART
# Products and quotients of constants, so that lanes need fewer operations and no more than one division.
POLE_RATIO = np.float32(MASS_POLE * HALF_LENGTH / TOTAL_MASS)
DRAG = np.float32(HALF_LENGTH * MASS_POLE / TOTAL_MASS)
INERTIA = np.float32(HALF_LENGTH * 4 / 3)
PUSH = np.float32(2 * FORCE / TOTAL_MASS)
PUSH_LEFT = np.float32(-FORCE / TOTAL_MASS)
STEP = np.float32(TAU)
WEIGHT = np.float32(GRAVITY)


class NumpyCartPole:
    """n lanes of CartPole-v1."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._state = np.zeros((4, n), np.float32)
        self._steps = np.zeros(n, np.int32)
        self._pending = np.zeros(n, np.bool_)
        self._rng = np.random.default_rng()
        self._scratch = np.empty((5, n), np.float32)

    def reset(self, seed: int) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins all episodes."""
        self._rng = np.random.default_rng(seed)
        self._pending[:] = False
        self._begin(np.arange(self._n))
        return np.ascontiguousarray(self._state.T), {}

    def step(self, actions: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Steps all lanes; new arrays, as fastvec and Gymnasium return them."""
        x, x_dot, theta, theta_dot = self._state
        sine, cosine, push, acc, work = self._scratch
        np.sin(theta, out=sine)
        np.cos(theta, out=cosine)
        np.multiply(actions, PUSH, out=push, casting="same_kind")
        push += PUSH_LEFT
        np.multiply(theta_dot, theta_dot, out=work)
        work *= sine
        work *= POLE_RATIO
        push += work  # the push by mass, and the pole's pull
        np.multiply(sine, WEIGHT, out=acc)
        np.multiply(cosine, push, out=work)
        acc -= work
        np.multiply(cosine, cosine, out=work)
        work *= -DRAG
        work += INERTIA
        acc /= work  # the pole's acceleration
        cosine *= acc
        cosine *= POLE_RATIO
        push -= cosine  # the cart's
        for position, speed, acceleration in ((x, x_dot, push), (theta, theta_dot, acc)):
            np.multiply(speed, STEP, out=work)
            position += work
            acceleration *= STEP
            speed += acceleration

        self._steps += 1
        rewards = np.ones(self._n)
        terminations = np.abs(x, out=work) > X_LIMIT
        terminations |= np.abs(theta, out=work) > THETA_LIMIT
        truncations = self._steps >= MOST_STEPS
        ended = np.flatnonzero(self._pending)
        if len(ended):
            self._begin(ended)
            rewards[ended] = 0.0
            terminations[ended] = truncations[ended] = False
        np.logical_or(terminations, truncations, out=self._pending)
        return np.ascontiguousarray(self._state.T), rewards, terminations, truncations, {}

    def close(self) -> None:
        """Has nothing to close."""

    def _begin(self, lanes: npt.NDArray[np.intp]) -> None:
        self._state[:, lanes] = self._rng.uniform(-0.05, 0.05, (4, len(lanes)))
        self._steps[lanes] = 0
