"""Driving a vector env and keeping what its lanes returned, so that runs can be compared lane by lane."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from fastvec.testing.results import ResultCheck
from fastvec.testing.rows import AnyVectorEnv, info_of, rows_of, same_bits, same_values
from fastvec.testing.violation import short

# The steps that lanes are given to come to a row in which none of them ends.
PATIENCE = 100


class UnusableResultError(Exception):
    """The env returned what cannot be taken apart; the report says it already."""


class EnvFailureError(Exception):
    """The env raised in a valid call.

    Attributes:
        call: what was called.
        step: how many steps came before in this run; None in a reset.
        error: what the env raised.
    """

    def __init__(self, call: str, step: int | None, error: Exception) -> None:
        super().__init__(f"{call} raised {type(error).__name__}: {error}")
        self.call, self.step, self.error = call, step, error


@dataclass
class Turn:
    """What one call returned, for each lane; a reset has no rewards and flags.

    Attributes:
        observations, infos: one for each lane.
        rewards, terminations, truncations: arrays (n,).
        after: in DISABLED mode, what the reset of the lanes that ended returned.
    """

    observations: list[Any]
    infos: list[dict[str, Any]]
    rewards: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    terminations: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    truncations: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    after: Turn | None = None

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """The lanes whose episode ended in this step, bool (n,)."""
        ended: npt.NDArray[np.bool_] = np.logical_or(self.terminations, self.truncations)
        return ended


@dataclass
class Run:
    """A reset and the steps after it."""

    first: Turn
    turns: list[Turn] = field(default_factory=list)

    def first_end(self) -> int:
        """The number of the first step in which an episode ended; that of steps if none did."""
        return next((step for step, turn in enumerate(self.turns) if turn.ended.any()), len(self.turns))


@dataclass(frozen=True)
class Difference:
    """The first thing that is not the same in two runs.

    Attributes:
        what: "observation", "reward", "terminated", "truncated" or "info".
        one, other: the values.
        lane: the lane.
        step: how many steps came before in the run; None in a reset.
    """

    what: str
    one: Any
    other: Any
    lane: int
    step: int | None


class Driver:
    """Calls an env, has every result checked, and turns it into rows. In DISABLED mode it resets lanes that ended.

    Attributes:
        env: the env, which may be put in a wrapper.
        results: what checks the results.
        steps: since the last reset of all lanes.
    """

    def __init__(self, env: AnyVectorEnv, mode: AutoresetMode, results: ResultCheck) -> None:
        self.env, self.results = env, results
        self.mode = mode
        self.steps = 0
        self._pending = False  # an autoreset is to come
        self._actions: Any = None  # the last

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> Turn:
        """Resets the env, or the lanes of a mask in the options."""
        mask = None if options is None else options["reset_mask"].copy()
        if mask is None:
            self.steps, self._pending = 0, False
        call = "reset" if mask is None else "reset with a reset_mask"
        result = self._call(call, lambda: self.env.reset(seed=seed, options=options))
        if not self.results.see_reset(result, mask):
            raise UnusableResultError
        return self._turn(*result)

    def step(self, actions: Any) -> Turn:
        """Steps the env."""
        given = copy.deepcopy(actions)
        result = self._call("step", lambda: self.env.step(given))
        if not same_bits(given, actions):
            self.results.report.add("arguments", f"actions to stay {short(actions)}", short(given), step=self.steps)
        if not self.results.see_step(result, self.steps):
            raise UnusableResultError
        turn = self._turn(result[0], result[-1])
        turn.rewards, turn.terminations, turn.truncations = (np.array(array) for array in result[1:4])
        self.steps += 1
        self._pending = self.mode == AutoresetMode.NEXT_STEP and bool(turn.ended.any())
        self._actions = actions
        return turn

    def settle(self, turn: Turn) -> None:
        """Does after a step what the mode leaves to the caller."""
        if self.mode == AutoresetMode.DISABLED and turn.ended.any():
            turn.after = self.reset(options={"reset_mask": turn.ended})

    def play(self, actions: Iterable[Any], seed: Any = None) -> Run:
        """Resets the env and takes the actions.

        Autoresets that are pending come first, so that an env whose reset leaves them pending fails where that is
        looked for, and nowhere else.
        """
        for _ in range(PATIENCE):
            if not self._pending:
                break
            self.step(self._actions)
        return self.go_on(Run(self.reset(seed)), actions)

    def go_on(self, run: Run, actions: Iterable[Any]) -> Run:
        """Takes more actions."""
        for row in actions:
            turn = self.step(row)
            self.settle(turn)
            run.turns.append(turn)
        return run

    def _call(self, call: str, function: Any) -> Any:
        try:
            return function()
        except Exception as error:
            raise EnvFailureError(call, self.steps if call == "step" else None, error) from error

    def _turn(self, observation: Any, infos: dict[str, Any]) -> Turn:
        rows = rows_of(self.env.observation_space, observation)
        return Turn(rows, [info_of(infos, lane) for lane in range(self.env.num_envs)])


def compare_runs(one: Run, other: Run, lanes: Iterable[int], *, infos: bool = False) -> Difference | None:
    """The first difference in these lanes, of what both runs have; with ``infos`` that of infos too, by value."""
    lanes = list(lanes)
    found = compare_turns(one.first, other.first, lanes, None, infos=infos)
    for step, (own, their) in enumerate(zip(one.turns, other.turns, strict=False)):
        found = found or compare_turns(own, their, lanes, step, infos=infos)
        if found is not None:
            break
    return found


def compare_turns(
    one: Turn, other: Turn, lanes: Iterable[int], step: int | None, *, infos: bool = False
) -> Difference | None:
    """The first difference of two calls' results in these lanes."""
    for lane in lanes:
        if not same_bits(one.observations[lane], other.observations[lane]):
            return Difference("observation", one.observations[lane], other.observations[lane], lane, step)
        for what in ("rewards", "terminations", "truncations"):
            own, their = getattr(one, what), getattr(other, what)
            if len(own) and len(their) and not same_bits(own[lane], their[lane]):
                return Difference(_SINGULAR[what], own[lane], their[lane], lane, step)
        if infos and not same_values(one.infos[lane], other.infos[lane]):
            return Difference("info", one.infos[lane], other.infos[lane], lane, step)
        # A lane that ended in one of the two ended in the other, or its flags would differ.
        if one.after is not None and other.after is not None and one.ended[lane]:
            found = compare_turns(one.after, other.after, [lane], step, infos=infos)
            if found is not None:
                return found
    return None


_SINGULAR = {"rewards": "reward", "terminations": "terminated", "truncations": "truncated"}
