"""from_tables: lanes of a user's own finite problem, stepped by the kernel of FrozenLake and CliffWalking."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from fastvec import registry, tables
from fastvec.factory import assemble, checked_count, checked_limit, checked_mode
from fastvec.vec_env import VecEnv

# How far from 1 a sum of probabilities may be: many float32 ones are no closer.
TOLERANCE = 1e-6


def from_tables(
    P: Mapping[int, Any] | Sequence[Any] | npt.NDArray[Any],
    initial_state_distribution: npt.ArrayLike,
    n: int = 1,
    *,
    rewards: npt.ArrayLike | None = None,
    terminal: npt.ArrayLike | None = None,
    autoreset_mode: str | AutoresetMode = "NextStep",
    max_episode_steps: int | None = None,
    copy: bool = True,
    episode_stats: bool = False,
    num_threads: int | None = None,
) -> VecEnv:
    """Makes n lanes of a Markov decision process with finitely many states and actions.

    Observations are states and actions are numbers from 0, both Discrete; ``info["prob"]`` is the probability that the
    step's transition had. A lane equals, bit for bit, an ordinary Gymnasium env over the same ``P`` that draws with
    ``gymnasium.envs.toy_text.utils.categorical_sample`` (one number a reset, and one a step), as toy-text envs do.

    Args:
        P: the transitions, in one of two forms. As in Gymnasium's toy-text envs, ``P[state][action]`` is a list of
            (probability, next state, reward, terminated); dicts and lists will both do. Or dense: an array (S, A, S) of
            probabilities from state and action to the next state; then ``rewards`` is needed.
        initial_state_distribution: (S,), the probability of each state to be an episode's first.
        n: number of lanes (``num_envs``).
        rewards: for dense P: (S, A, S), or (S, A) where they do not depend on the next state.
        terminal: for dense P: bool (S,), the states in which an episode ends; None for none. In the other form the
            transitions say so themselves.
        autoreset_mode: as in :func:`fastvec.make`, and so are the others.
        max_episode_steps: steps after which an episode is truncated; None or -1 for no limit.
        copy: whether every call returns new arrays.
        episode_stats: whether infos have the episodes' returns, lengths and seconds.
        num_threads: how many threads a step may use.

    Returns:
        The env, not yet reset. What was passed is copied.

    Raises:
        TypeError: for something that is no number or table where one is needed; the message has its place.
        ValueError: for probabilities that are negative or do not sum to 1 (within 1e-6), states out of range and shapes
            that do not fit; the message has the state and the action.

    A machine that breaks down now and then, and stays so until it is repaired:

    >>> import fastvec
    >>> WORKS, BROKEN = 0, 1
    >>> RUN, REPAIR = 0, 1
    >>> P = {
    ...     WORKS: {RUN: [(0.9, WORKS, 1.0, False), (0.1, BROKEN, 1.0, False)], REPAIR: [(1.0, WORKS, -1.0, False)]},
    ...     BROKEN: {RUN: [(1.0, BROKEN, 0.0, False)], REPAIR: [(1.0, WORKS, -3.0, False)]},
    ... }
    >>> env = fastvec.from_tables(P, [1.0, 0.0], n=4, max_episode_steps=100)
    >>> obs, info = env.reset(seed=0)
    >>> obs, rewards, terminations, truncations, info = env.step([RUN, RUN, REPAIR, REPAIR])
    >>> rewards
    array([ 1.,  1., -1., -1.])
    >>> info["prob"]
    array([0.9, 0.1, 1. , 1. ])

    The same as arrays:

    >>> import numpy as np
    >>> dense = np.array([[[0.9, 0.1], [1, 0]], [[0, 1], [1, 0]]])
    >>> same = fastvec.from_tables(dense, [1, 0], n=4, rewards=[[1, -1], [0, -3]], max_episode_steps=100)
    >>> obs, info = same.reset(seed=0)
    >>> same.step([RUN, RUN, REPAIR, REPAIR])[1]
    array([ 1.,  1., -1., -1.])
    """
    n = checked_count("num_envs (n)", n)
    mode = checked_mode(autoreset_mode)
    limit = checked_limit(max_episode_steps)
    if rewards is not None:
        transitions = _read_dense(P, rewards, terminal)
    elif isinstance(P, np.ndarray) or terminal is not None:
        raise ValueError(
            "from_tables: an array P, and terminal, need rewards, an array (S, A, S) or (S, A), beside them"
        )
    else:
        transitions = _read_lists(P)
    _check(transitions)
    num_states, num_actions, _ = transitions.prob.shape
    distribution = _read_distribution(initial_state_distribution, num_states)
    env: gymnasium.Env[Any, Any] = gymnasium.Env()
    env.observation_space = gymnasium.spaces.Discrete(num_states)
    env.action_space = gymnasium.spaces.Discrete(num_actions)
    return assemble(
        registry.FROM_TABLES,
        env,
        tables.build(transitions, distribution),
        n,
        mode,
        limit,
        copy=copy,
        episode_stats=episode_stats,
        num_threads=num_threads,
        precision="float64",
    )


def _read_lists(P: Any) -> tables.Transitions:
    """The transitions of a toy-text ``P``, when it has that form."""
    states = _numbered(P, "P", "state")
    num_actions = None
    rows = []
    for state, of_state in enumerate(states):
        actions = _numbered(of_state, f"P[{state}]", "action")
        if num_actions is None:
            num_actions = len(actions)
        if len(actions) != num_actions:
            raise ValueError(
                f"P[{state}] has {len(actions)} actions and P[0] has {num_actions}: every state needs a list for each "
                f"action; where an episode has ended, of one transition to the state itself"
            )
        rows.append([_read_list(one, f"P[{state}][{action}]") for action, one in enumerate(actions)])
    return tables.unpack(rows)


def _numbered(value: Any, where: str, what: str) -> list[Any]:
    """The items of a dict whose keys are 0, 1, 2, ..., or of a list, in order."""
    if isinstance(value, Mapping):
        missing = [number for number in range(len(value)) if number not in value]
        if missing:
            raise ValueError(f"{where} has no {what} {missing[0]}: expected {what}s 0 to {len(value) - 1}, as its keys")
        items = [value[number] for number in range(len(value))]
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        items = list(value)
    else:
        raise TypeError(f"{where} is {type(value).__name__}: expected a dict or list with an entry for each {what}")
    if not items:
        raise ValueError(f"{where} is empty: expected an entry for each {what}")
    return items


def _read_list(value: Any, where: str) -> list[tuple[float, int, float, bool]]:
    """What may come of one action in one state."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise TypeError(f"{where} is {type(value).__name__}: expected a list of transitions")
    if not value:
        raise ValueError(f"{where} is empty: expected transitions; where an episode has ended, one to the state itself")
    read = []
    for place, transition in enumerate(value):
        try:
            prob, next_state, reward, terminated = transition
            if not isinstance(terminated, (bool, np.bool_, int, np.integer)):
                raise TypeError
            read.append((float(prob), operator.index(next_state), float(reward), bool(terminated)))
        except (TypeError, ValueError):
            raise TypeError(
                f"{where}[{place}] is {transition!r}: expected (probability, next state, reward, terminated), "
                f"a number, an int, a number and a bool"
            ) from None
    return read


def _read_dense(P: Any, rewards: Any, terminal: Any) -> tables.Transitions:
    """The transitions of arrays; each pair has one to every state."""
    prob = _numbers(P, "P")
    if prob.ndim != 3 or prob.shape[0] != prob.shape[2] or 0 in prob.shape:
        raise ValueError(f"P has shape {prob.shape}: with rewards beside it, expected (S, A, S)")
    num_states = prob.shape[0]
    reward = _numbers(rewards, "rewards")
    if reward.shape not in (prob.shape, prob.shape[:2]):
        raise ValueError(f"rewards has shape {reward.shape}: expected {prob.shape} or {prob.shape[:2]}, as P's is")
    ends = np.zeros(num_states, bool) if terminal is None else np.asarray(terminal)
    if ends.dtype != np.bool_:
        raise TypeError(f"terminal has dtype {ends.dtype}: expected bool, True for each state in which an episode ends")
    if ends.shape != (num_states,):
        raise ValueError(f"terminal has shape {ends.shape}: expected {(num_states,)}, one bool for each state")

    def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.broadcast_to(values, prob.shape)

    return tables.Transitions(
        prob,
        spread(np.arange(num_states)),
        spread(reward if reward.ndim == 3 else reward[:, :, np.newaxis]),
        spread(ends),
        spread(np.array(True)),
    )


def _read_distribution(value: Any, num_states: int) -> npt.NDArray[np.float64]:
    distribution = _numbers(value, "initial_state_distribution")
    if distribution.shape != (num_states,):
        raise ValueError(
            f"initial_state_distribution has shape {distribution.shape}: P has {num_states} states, expected "
            f"{(num_states,)}"
        )
    bad = ~(distribution >= 0)
    if bad.any():
        state = int(np.argmax(bad))
        raise ValueError(f"initial_state_distribution[{state}] is {distribution[state]}: expected a probability")
    if not abs(distribution.sum() - 1) <= TOLERANCE:
        raise ValueError(f"initial_state_distribution sums to {distribution.sum()}: expected 1")
    return distribution


def _numbers(value: Any, name: str) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {type(value).__name__}: expected an array of numbers") from None


def _check(transitions: tables.Transitions) -> None:
    """Raises for the first state and action with a number that cannot be."""
    num_states = transitions.prob.shape[0]
    given = transitions.given
    for bad, numbers, what, expected in (
        (~(transitions.prob >= 0), transitions.prob, "a probability", "a number from 0 to 1"),
        (
            (transitions.next < 0) | (transitions.next >= num_states),
            transitions.next,
            "the next state",
            f"0 to {num_states - 1}",
        ),
        (np.isnan(transitions.reward), transitions.reward, "a reward", "a number"),
    ):
        bad = bad & given
        if bad.any():
            state, action, place = np.argwhere(bad)[0]
            raise ValueError(
                f"P: {what} of state {state}, action {action} is {numbers[state, action, place]}: expected {expected}"
            )
    sums = transitions.prob.sum(axis=-1)
    wrong = ~(np.abs(sums - 1) <= TOLERANCE)
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        raise ValueError(
            f"P: the probabilities of state {state}, action {action} sum to {sums[state, action]}: expected 1"
        )
