"""Transition tables: from a finite problem as Gymnasium's toy-text envs hold it to the arrays that csrc/tables.h reads.

Nothing is checked here: Gymnasium steps by whatever its env holds, and so do kernels. mdp.py checks what users give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# One fv_transition.
TRANSITION = np.dtype(
    [("below", np.float64), ("prob", np.float64), ("reward", np.float64), ("next", np.int32), ("terminated", np.int32)]
)

Tables = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class Transitions:
    """What may come of every action in every state.

    Attributes:
        prob: float64 (states, actions, k): the probability of each of up to k transitions.
        next: int64, of the same shape: the state each leads to.
        reward: float64, of the same shape.
        terminated: bool, of the same shape.
        given: bool, of the same shape: False where a pair has fewer than k.
    """

    prob: npt.NDArray[np.float64]
    next: npt.NDArray[np.int64]
    reward: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    given: npt.NDArray[np.bool_]


def unpack(P: Mapping[int, Any] | Sequence[Any]) -> Transitions:
    """The transitions of a toy-text ``P``: ``P[state][action]`` is a list of (prob, next state, reward, terminated)."""
    num_states, num_actions = len(P), len(P[0])
    lists = [P[state][action] for state in range(num_states) for action in range(num_actions)]
    shape = (num_states, num_actions, max(map(len, lists)))
    given = np.arange(shape[2]) < np.array([len(each) for each in lists]).reshape(*shape[:2], 1)

    def field(place: int, dtype: type) -> npt.NDArray[Any]:
        filled: npt.NDArray[Any] = np.zeros(shape, dtype)
        filled[given] = [transition[place] for each in lists for transition in each]
        return filled

    return Transitions(field(0, np.float64), field(1, np.int64), field(2, np.float64), field(3, np.bool_), given)


def build(transitions: Transitions, initial_state_distribution: npt.NDArray[np.float64]) -> Tables:
    """The tables of csrc/tables.h, in its order."""
    num_states, num_actions, _ = transitions.prob.shape
    first, listed = _listed(transitions)
    states = np.arange(num_states)[np.newaxis, np.newaxis]
    distribution = initial_state_distribution.reshape(states.shape)
    nothing = np.zeros(states.shape)
    _, starts = _listed(Transitions(distribution, states, nothing, nothing.astype(bool), np.ones(states.shape, bool)))
    starts["prob"] = 1  # what reset() tells, whichever state was drawn
    return np.array([num_actions]), first, listed, starts


def _listed(transitions: Transitions) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.void]]:
    """Where each pair's transitions begin, and all transitions one after another.

    Those of probability 0 are left out, as no number draws them; but a pair's first is drawn where rounding leaves the
    sum of all below the number. NumPy sums along an axis from left to right, as it does in Gymnasium's draw. A sum may
    fall again, where probabilities are negative, or be NaN; the first to be above a number is then the first among the
    largest so far.
    """
    kept = transitions.given & (transitions.prob != 0)
    kept[..., 0] = True
    listed = np.empty(int(kept.sum()), TRANSITION)
    listed["below"] = np.fmax.accumulate(np.cumsum(transitions.prob, axis=-1), axis=-1)[kept]
    listed["prob"] = transitions.prob[kept]
    listed["next"] = transitions.next[kept]
    listed["reward"] = transitions.reward[kept]
    listed["terminated"] = transitions.terminated[kept]
    return np.concatenate([[0], np.cumsum(kept.sum(axis=-1))]), listed


def tables_of_env(env: Any) -> Tables:
    """The tables of an ordinary env that has ``P`` and ``initial_state_distrib``, such as FrozenLake."""
    return build(unpack(env.P), np.asarray(env.initial_state_distrib, np.float64))


def tables_of_taxi(env: Any) -> Tables:
    """The tables of Taxi: those of :func:`tables_of_env`, and the action mask of every state."""
    masks = np.stack([env.action_mask(state) for state in range(len(env.P))])
    return *tables_of_env(env), masks
