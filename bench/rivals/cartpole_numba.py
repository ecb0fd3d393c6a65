"""CartPole in numba as a good engineer writes it by hand: a column for each state variable, and loops over lanes.

Rivals for a race, not a library: they check no actions, take no options, and know this one env and NEXT_STEP mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

GRAVITY, MASS_POLE, MASS_CART, HALF_LENGTH, FORCE, TAU = 9.8, 0.1, 1.0, 0.5, 10.0, 0.02
X_LIMIT, THETA_LIMIT, MOST_STEPS = 2.4, 12 * 2 * math.pi / 360, 500


def make_kernel(real: type[np.floating[Any]], fastmath: bool) -> Callable[..., None]:
    """Compiles a step of all lanes in one scalar type.

    Two loops: dynamics without a branch for every lane, which LLVM may vectorise, then the few resets.
    """
    gravity, tau, force_mag = real(GRAVITY), real(TAU), real(FORCE)
    mass_pole, total_mass = real(MASS_POLE), real(MASS_POLE + MASS_CART)
    length, pole_moment = real(HALF_LENGTH), real(MASS_POLE * HALF_LENGTH)
    x_limit, theta_limit, four_thirds = real(X_LIMIT), real(THETA_LIMIT), real(4 / 3)

    @numba.njit(fastmath=fastmath, error_model="numpy")
    def step(state, steps, pending, actions, obs, rewards, terminations, truncations):
        x, x_dot, theta, theta_dot = state[0], state[1], state[2], state[3]
        for i in range(actions.shape[0]):
            force = force_mag if actions[i] == 1 else -force_mag
            cosine, sine = math.cos(theta[i]), math.sin(theta[i])
            temp = (force + pole_moment * theta_dot[i] * theta_dot[i] * sine) / total_mass
            theta_acc = (gravity * sine - cosine * temp) / (
                length * (four_thirds - mass_pole * cosine * cosine / total_mass)
            )
            x_acc = temp - pole_moment * theta_acc * cosine / total_mass
            x[i] += tau * x_dot[i]
            x_dot[i] += tau * x_acc
            theta[i] += tau * theta_dot[i]
            theta_dot[i] += tau * theta_acc
            steps[i] += 1
            rewards[i] = 1.0
            terminations[i] = (abs(x[i]) > x_limit) | (abs(theta[i]) > theta_limit)
            truncations[i] = steps[i] >= MOST_STEPS
            obs[i, 0], obs[i, 1], obs[i, 2], obs[i, 3] = x[i], x_dot[i], theta[i], theta_dot[i]
        for i in range(actions.shape[0]):
            if pending[i]:
                for k in range(4):
                    state[k, i] = obs[i, k] = np.random.uniform(-0.05, 0.05)  # noqa: NPY002 # numba's own
                steps[i] = 0
                rewards[i] = 0.0
                terminations[i] = truncations[i] = False
            pending[i] = terminations[i] | truncations[i]

    return step


@numba.njit
def seed_numba(seed: int) -> None:
    """Seeds the generator that compiled functions draw from; it is numba's own, and shared by all of them."""
    np.random.seed(seed)  # noqa: NPY002


KERNELS = {
    "float64": make_kernel(np.float64, fastmath=False),
    "float32": make_kernel(np.float32, fastmath=True),
}


class NumbaCartPole:
    """n lanes of CartPole-v1."""

    def __init__(self, n: int, precision: str) -> None:
        self._n = n
        self._kernel = KERNELS[precision]
        self._state = np.zeros((4, n), precision)
        self._steps = np.zeros(n, np.int32)
        self._pending = np.zeros(n, np.bool_)

    def reset(self, seed: int) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins all episodes, by a step that does nothing but reset."""
        seed_numba(seed)
        self._pending[:] = True
        obs, *_, info = self.step(np.zeros(self._n, np.int64))
        return obs, info

    def step(self, actions: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Steps all lanes; new arrays, as fastvec and Gymnasium return them."""
        n = self._n
        obs, rewards = np.empty((n, 4), np.float32), np.empty(n)
        terminations, truncations = np.empty(n, np.bool_), np.empty(n, np.bool_)
        self._kernel(self._state, self._steps, self._pending, actions, obs, rewards, terminations, truncations)
        return obs, rewards, terminations, truncations, {}

    def close(self) -> None:
        """Has nothing to close."""
