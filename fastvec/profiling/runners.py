"""Configurations at work: one runner counts env-steps and times whole slices, another takes batch steps apart.

Both are measure.Runner, which makes and resets the env, finds the length of a slice and closes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fastvec.measure import Runner, count_again, resets_between
from fastvec.profiling.processes import cpu_seconds, new_workers
from fastvec.profiling.split import Split, Stamps, split_of, timed_loop

# Where a step takes so many seconds at least, keeping its flags (some 50 ns) does not show.
KEEPS_FLAGS = 20e-6


class SpeedRunner(Runner):
    """Steps an env as it is made by users, with the policy's inference before every step.

    Attributes:
        workers: the processes of the env.
        slice_takes: seconds of a slice, when it was prepared.
        cpu: CPU seconds of all processes over seconds in each slice; empty where they cannot be read.
    """

    def __init__(
        self, *args: Any, act: Callable[[Any], Any] | None = None, cpu: Callable[[Any], float] = cpu_seconds, **kw: Any
    ) -> None:
        """As :class:`fastvec.measure.Runner`.

        Args:
            act: the policy; None for none.
            cpu: CPU seconds so far, of this process and the workers.
        """
        self._act, self._cpu = act, cpu
        self.cpu: list[float] = []
        self._made: list[int] = []
        self._resets: list[int] = []
        self._pending = 0
        self._keeps_flags = True
        self.slice_takes = self._step_takes = 0.0
        with new_workers() as self.workers:
            super().__init__(*args, **kw)

    def step(self, k: int) -> float:
        """Infers and steps k times, and returns the seconds that took."""
        began, before = time.perf_counter(), self._cpu_now()
        took = self._step_and_keep(k) if self._keeps_flags else super().step(k)
        after, ended = self._cpu_now(), time.perf_counter()
        if before is not None and after is not None:
            self.cpu.append((after - before) / (ended - began))
        self._made.append(k)
        self._step_takes = took / k
        return took

    def _step_and_keep(self, k: int) -> float:
        """Steps, and keeps the flags of every step, to be looked at when the clock does not run."""
        actions = self.next_actions(k)
        kept: list[Any] = []
        step, act, observation = self.env.step, self._act, self.observation
        # Where every row counts nothing is kept: Stable-Baselines3's lists of infos would wake the garbage collector.
        keep = _drop if self.contender.same_step else kept.append
        if act is None:
            start = self._clock()
            for action in actions:
                keep(step(action)[2:4])
            took = self._clock() - start
        else:
            start = self._clock()
            for action in actions:
                act(observation)
                result = step(action)
                observation = result[0]
                keep(result[2:4])
            took = self._clock() - start
            self.observation = observation
        if kept:
            resets, self._pending = resets_between(self.contender, kept, self._pending)
            self._resets.append(resets)
        return took

    def _cpu_now(self) -> float | None:
        try:
            return self._cpu(self.workers)
        except OSError:
            return None

    def prepare(self, seconds: float, fewest_steps: int = 1) -> None:
        """Warms up, so that a slice has about so many seconds and so many steps; settles how resets are counted."""
        self.step(1)  # which is slower than any other
        self.warm_up(seconds)
        self.burst = max(self.burst, fewest_steps)
        self.slice_takes = self.burst * self._step_takes
        if self._act is None and seconds / self.burst < KEEPS_FLAGS:
            self._keeps_flags = False
        self.cpu.clear()

    def rows(self, rounds: int) -> list[int]:
        """How many env-steps were made in each of the last slices; the env is closed by now.

        Where steps are so short that keeping flags would show, a new env makes the same steps again.
        """
        if self.contender.same_step:
            resets = [0] * len(self._made)
        else:
            resets = self._resets if self._keeps_flags else count_again(self, self._made)
        made, last = self._made[-rounds:], resets[-rounds:]
        return [k * self.n - reset for k, reset in zip(made, last, strict=True)]

    def forget_slices_after(self, rounds: int, prepared: int) -> None:
        """Forgets slices of rounds that an interrupt left unfinished.

        Args:
            rounds: how many rounds are whole.
            prepared: how many slices there were before the first.
        """
        del self._made[prepared + rounds :], self.cpu[rounds:]
        del self._resets[prepared + rounds :]

    @property
    def slices(self) -> int:
        """How many slices were made so far, those of the warm-up too."""
        return len(self._made)


def _drop(flags: Any) -> None:
    """Keeps nothing."""


def _no_policy(observation: Any) -> None:
    """Infers nothing."""


class SplitRunner(Runner):
    """Steps an env whose ordinary envs note when they are called, and splits its batch steps.

    Attributes:
        splits: one for each slice.
        slice_takes: seconds of a slice, when it was prepared.
    """

    def __init__(self, *args: Any, act: Callable[[Any], Any] | None = None, in_one_piece: bool = False, **kw: Any):
        """As :class:`fastvec.measure.Runner`.

        Args:
            act: the policy; None for none.
            in_one_piece: whether there are no ordinary envs in it, but for example lanes in C.
        """
        self._act = _no_policy if act is None else act
        self._in_one_piece = in_one_piece
        self.splits: list[Split] = []
        self.slice_takes = self._step_takes = 0.0
        kw.setdefault("clock", time.monotonic)
        super().__init__(*args, **kw)

    def step(self, k: int) -> float:
        """Infers and steps k times, and returns the seconds that took."""
        loop, end, self.observation = timed_loop(
            self.env.step, self._act, self.observation, self.next_actions(k), self._clock
        )
        lanes: list[Stamps] | None = None
        if not self._in_one_piece:
            lanes = list(self.contender.call(self.env, "take_stamps"))
        self.splits.append(split_of(loop, end, lanes))
        took = float(end - loop[0, 0])
        self._step_takes = took / k
        return took

    def prepare(self, seconds: float, fewest_steps: int = 1) -> None:
        """Warms up, so that a slice has about so many seconds, and so many steps at least."""
        self.step(1)
        self.warm_up(seconds)
        self.burst = max(self.burst, fewest_steps)
        self.slice_takes = self.burst * self._step_takes
        self.splits.clear()


def split_over(splits: list[Split], are_totals: bool) -> dict[str, float]:
    """The median over slices of each part, in microseconds, or the mean."""
    middle = np.mean if are_totals else np.median
    return {
        part: float(middle([getattr(split, part) for split in splits])) * 1e6
        for part in ("env", "ipc", "wait", "policy", "python")
    }
