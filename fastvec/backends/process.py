"""ProcessVecEnv: ordinary Python envs in worker processes, stepped at the same time on several cores."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from fastvec._lanes import ENDED, FAILED
from fastvec.backends.notes import add_note
from fastvec.backends.ordinary import Errors, Infos, OrdinaryVecEnv
from fastvec.backends.parcels import Raised, pack_code
from fastvec.backends.parts import parts_of
from fastvec.backends.shared_arrays import SharedArrays
from fastvec.backends.starting import checked_context
from fastvec.backends.worker import REQUEST, STEP, Reply, Room
from fastvec.backends.worker_error import WorkerError
from fastvec.backends.worker_pool import Lost, WorkerPool, span
from fastvec.machine import usable_cores

# How long to look for an event before sleeping, in seconds: about what waking takes.
LOOK_FOR = 30e-6
# A worker that has to be restarted once more after so many restarts in so many steps is in a loop.
CRASH_LOOP_RESTARTS, CRASH_LOOP_STEPS = 3, 100

# What to do after a call in which an env raised.
ADVICE = {
    "step": "The other lanes have moved; before the next step reset all, or these by "
    "options={{'reset_mask': env.failed}}",
    "recv": "The other lanes go on; this one does after async_reset(env_ids=[{lane}])",
    "close": "All envs have been closed, and the workers have ended",
}

logger = logging.getLogger("fastvec")


@dataclass
class Failure(Exception):
    """Why a lane has no result: what its env raised, or what became of its worker."""

    worker: int
    raised: Raised | None
    lost: Lost | None


class ProcessVecEnv(OrdinaryVecEnv):
    """Ordinary Python envs in worker processes. Made by :func:`fastvec.make`.

    Attributes:
        num_workers: number of worker processes; each has a run of lanes.
    """

    backend = "process"
    _by_lane = False  # whether lanes can be asked for one by one

    def __init__(
        self,
        factories: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        autoreset_mode: AutoresetMode,
        label: str,
        *,
        copy: bool = True,
        episode_stats: bool = False,
        num_workers: int | None = None,
        context: str | None = None,
        shared_memory: bool = True,
        step_timeout: float | None = None,
        on_worker_error: str = "raise",
    ) -> None:
        """Starts the workers, which make an env with each factory; see :func:`fastvec.make`.

        Raises:
            WorkerError: if an env cannot be made, or a worker ends before.
            TypeError: if the factories cannot be sent to workers.
            ValueError: for envs with different spaces, and for arguments out of range.
            MemoryError: if there is too little memory to share.
        """
        n = len(factories)
        cores = usable_cores()
        self.num_workers = min(n, cores if num_workers is None else num_workers)
        self._step_timeout = step_timeout
        self._owner = os.getpid()
        self._interrupted = False
        self._restarts = _checked_on_error(on_worker_error)
        self._memory: SharedArrays | None = None  # what restarted workers are to map
        self._steps = 0
        self._restarted_at: list[list[int]] = []  # for each worker, in which steps
        bounds = [n * worker // self.num_workers for worker in range(self.num_workers + 1)]
        lanes = [range(start, stop) for start, stop in itertools.pairwise(bounds)]
        self._pool = WorkerPool(factories, lanes, autoreset_mode.value, label, checked_context(context))
        try:
            self._open(autoreset_mode, label, n, bool(copy), bool(episode_stats), bool(shared_memory), cores)
        except BaseException:
            self._pool.close(terminate=True)
            raise

    def _open(
        self,
        autoreset_mode: AutoresetMode,
        label: str,
        n: int,
        copy: bool,
        episode_stats: bool,
        shared_memory: bool,
        cores: int,
    ) -> None:
        """Checks that the workers' envs go together, and makes the memory for them."""
        facts = self._pool.facts[0]
        for lanes, other in zip(self._pool.lanes, self._pool.facts, strict=True):
            for name in ("observation_space", "action_space"):
                if getattr(other, name) != getattr(facts, name):
                    raise ValueError(
                        f"lane {lanes.start} has the {name} {getattr(other, name)}, and lane 0 {getattr(facts, name)}: "
                        f"lanes share one"
                    )
        observations: list[tuple[tuple[int, ...], np.dtype[Any] | None]] = [
            ((n, *part.shape), part.dtype) for part in parts_of(facts.observation_space)
        ]
        counts = [((n,), np.dtype(dtype)) for dtype in (np.float64, np.bool_, np.bool_, np.uint8)]
        mine = [*observations, *observations, *counts]
        words = ((1 + self.num_workers, 16), np.dtype(np.int32))
        action_parts = parts_of(facts.action_space)
        self._actions_shared = shared_memory and all(part.dtype is not None for part in action_parts)
        plan: list[tuple[tuple[int, ...], np.dtype[Any]]] = [words]
        if shared_memory:
            plan += [(shape, dtype) for shape, dtype in mine if dtype is not None]
        if self._actions_shared:
            for part in action_parts:
                assert part.dtype is not None
                plan.append(((n, *part.shape), part.dtype))
                # Float actions may be float64 whatever the space says.
                plan.append(((n, *part.shape) if part.dtype.kind == "f" else (0,), np.dtype(np.float64)))
            plan.append(((n, len(action_parts)), np.dtype(np.int32)))
        if self._by_lane:
            plan += [((n,), np.dtype(np.int32))] * 2
        memory = SharedArrays(plan)
        try:
            arrays = iter(memory.arrays)
            shared_words = next(arrays)
            super().__init__(
                facts,
                n,
                autoreset_mode,
                label,
                copy=copy,
                episode_stats=episode_stats,
                allocate=(lambda shape, dtype: next(arrays)) if shared_memory else np.zeros,
            )
            self._action_arrays = list(arrays)
            if self._by_lane:
                self._requests, self._ring = self._action_arrays[-2:]
                del self._action_arrays[-2:]
            self._unshared = [
                [part for part in parts if not shared_memory or isinstance(part, list)]
                for parts in (self._observations, self._final)
            ]
            ledger = self._ledger
            self._counts = [ledger.rewards, ledger.terminations, ledger.truncations, ledger.status]
            looks, worker_looks = looks_of(self.num_workers, cores)
            self._room = Room(plan, mine, shared_memory, self._by_lane, worker_looks)
            self._restarted_at = [[] for _ in range(self.num_workers)]
            self._pool.open(self._room, memory.file, shared_words, looks)
            if self._restarts:
                self._memory = memory
        finally:
            if self._memory is None:
                memory.close_file()

    def __reduce__(self) -> Any:
        """Refuses: the envs are in processes of their own.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{self!r} cannot be copied or pickled, as its envs are in processes; backend='serial' can")

    def _enter(self, call: str) -> None:
        if self._owner != os.getpid():
            raise RuntimeError(
                f"{call}: this {self.label} env belongs to process {self._owner}, and this is a fork of it; "
                f"make a new env"
            )
        super()._enter(call)

    def _require_ready(self) -> None:
        if not self._restarts:
            self._require_workers()
        if self._interrupted:
            raise ResetNeeded("step: the call before was interrupted; reset all lanes")
        super()._require_ready()

    def _require_workers(self) -> None:
        for worker, lost in enumerate(self._pool.lost):
            if lost is not None:
                lanes = self._pool.lanes[worker]
                then = "it is restarted by the next step or reset" if self._restarts else "make a new env"
                raise WorkerError(
                    f"worker {worker} ({span(lanes)}) {lost.how} in a call before: {then}",
                    worker,
                    tuple(lanes),
                )

    def _reset_lanes(
        self, seeds: list[int | None], mask: npt.NDArray[np.bool_] | None, options: dict[str, Any] | None
    ) -> tuple[Infos, Errors]:
        anew = self._bring_back() if self._restarts else []
        self._require_workers()
        if self._interrupted and mask is not None:
            raise ResetNeeded("reset with a reset_mask: the call before was interrupted; reset all lanes")
        requests = []
        for worker, lanes in enumerate(self._pool.lanes):
            part = slice(lanes.start, lanes.stop)
            # All lanes of a worker that was lost begin anew.
            own_mask = None if mask is None or worker in anew else mask[part].copy()
            requests.append(pack_code(("reset", (seeds[part], own_mask, options)), "options"))
        infos, _, errors = self._take(self._run(REQUEST, requests))
        self._interrupted = False
        if mask is not None:
            infos = [(lane, info) for lane, info in infos if mask[lane]]
        return infos, errors

    def _step_lanes(self, actions: list[Any]) -> tuple[Infos, Infos, Errors]:
        if not self._restarts:
            return self._step_workers(actions)
        self._steps += 1
        held = [part.copy() for part in self._observations]
        infos, finals, errors = self._step_workers(actions)
        self._restarted = None
        if errors:
            infos, finals = self._restart_after(errors, held, infos, finals)
        return infos, finals, []

    def _restart_after(self, errors: Errors, held: list[Any], infos: Infos, finals: Infos) -> tuple[Infos, Infos]:
        """Brings the workers back that were lost or in which envs raised; their lanes show what they showed before.

        Returns:
            The infos of the other lanes and of the new episodes, and the last infos of the others.

        Raises:
            WorkerError: for a worker that fails again and again, or cannot be brought back.
        """
        failed: dict[int, Errors] = {}
        for lane, failure in errors:
            assert isinstance(failure, Failure)
            failed.setdefault(failure.worker, []).append((lane, failure))
        restarted = np.zeros(self.num_envs, np.bool_)
        for worker, own in failed.items():
            self._count_restart(worker, own, "step")
            restarted[self._pool.lanes[worker].start : self._pool.lanes[worker].stop] = True
        infos = [(lane, info) for lane, info in infos if not restarted[lane]]
        finals = [(lane, info) for lane, info in finals if not restarted[lane]]
        for worker, own in failed.items():
            self._bring_back_one(worker, str(self._told(own, "step", None)))
        lanes = np.flatnonzero(restarted).tolist()
        put_rows(held, self._observations, lanes)
        self._ledger.status[restarted] = ENDED
        for array in self._counts[:3]:
            array[restarted] = 0
        if self._mode == AutoresetMode.SAME_STEP:
            requests = [
                pack_code(("reset", ([None] * len(lanes), None, None)), "a reset") for lanes in self._pool.lanes
            ]
            first, _, again = self._take(self._pool.run(REQUEST, requests, self._step_timeout, sorted(failed)))
            if again:
                raise self._told(again, "the reset after a restart", None)
            infos = sorted([*infos, *first], key=lambda pair: pair[0])
            put_rows(held, self._final, lanes)
        self._restarted = restarted
        return infos, finals

    def _count_restart(self, worker: int, errors: Errors, call: str) -> None:
        """Notes that a worker is to be restarted for these errors, or raises them if that happens again and again."""
        recent = [step for step in self._restarted_at[worker] if step > self._steps - CRASH_LOOP_STEPS]
        if len(recent) >= CRASH_LOOP_RESTARTS:
            often = f"It was restarted {len(recent)} times in {CRASH_LOOP_STEPS} steps before, and is not again"
            raise self._told(errors, call, None, often)
        self._restarted_at[worker] = [*recent, self._steps]

    def _bring_back(self) -> list[int]:
        """Starts workers that were lost in a call before, and returns which."""
        lost = [worker for worker, how in enumerate(self._pool.lost) if how is not None]
        for worker in lost:
            how = self._pool.lost[worker]
            assert how is not None
            self._bring_back_one(worker, f"it {how.how} in a call before")
        return lost

    def _bring_back_one(self, worker: int, reason: str) -> None:
        assert self._memory is not None
        logger.warning(
            "%s: worker %d (%s) is restarted: %s", self.label, worker, span(self._pool.lanes[worker]), reason
        )
        self._pool.restart(worker, self._room, self._memory.file)

    def _settle(self) -> tuple[int, dict[str, npt.NDArray[Any]] | None]:
        ended, episode = super()._settle()
        if self._restarted is not None:
            self._ledger.begin(self._restarted)
            self._ledger.truncations[self._restarted] = True
            ended += int(np.count_nonzero(self._restarted))
        return ended, episode

    def _step_workers(self, actions: list[Any]) -> tuple[Infos, Infos, Errors]:
        """Gives the workers these actions, and takes what they return."""
        if self._actions_shared:
            kinds = self._action_arrays[-1]
            for part, array in enumerate(actions):
                kind = 0 if array.dtype == self._action_arrays[2 * part].dtype else 1
                kinds[:, part] = kind
                self._action_arrays[2 * part + kind][...] = array
            return self._take(self._run(STEP, None))
        requests = []
        for lanes in self._pool.lanes:
            requests.append(pack_code(("step", ([array[lanes.start : lanes.stop] for array in actions],)), "actions"))
        return self._take(self._run(REQUEST, requests))

    def _run(self, kind: int, requests: list[bytes] | None) -> list[Any]:
        try:
            return self._pool.run(kind, requests, self._step_timeout)
        except BaseException:  # Ctrl-C: some lanes have moved, and some will yet
            self._interrupted = True
            raise

    def _take(self, replies: list[Any]) -> tuple[Infos, Infos, Errors]:
        """Takes what workers replied to a step or reset to its places."""
        infos: Infos = []
        finals: Infos = []
        errors: Errors = []
        for worker, reply in enumerate(replies):
            if reply is None:
                continue
            lanes = self._pool.lanes[worker]
            rows = slice(lanes.start, lanes.stop)
            if not isinstance(reply, Reply):
                raised, lost = (reply, None) if isinstance(reply, Raised) else (None, reply)
                self._ledger.status[rows] = FAILED
                for array in self._counts[:3]:
                    array[rows] = 0
                errors += [(lane, Failure(worker, raised, lost)) for lane in lanes]
                continue
            infos += reply.infos
            finals += reply.finals
            errors += [(lane, Failure(worker, raised, None)) for lane, raised in reply.errors]
            for parts, values in zip(self._unshared, (reply.observations, reply.final), strict=True):
                for part, value in zip(parts, values, strict=True):
                    part[rows] = value
            for array, value in zip(self._counts if reply.arrays else (), reply.arrays, strict=True):
                array[rows] = value
        return infos, finals, errors

    def _told(self, errors: Errors, call: str, results: Any, then: str | None = None) -> Exception:
        """As in ``OrdinaryVecEnv``; ``then`` says what to do, where it is something else than usual."""
        lane, failure = errors[0]
        assert isinstance(failure, Failure)
        worker, lanes = failure.worker, self._pool.lanes[failure.worker]
        others = sorted({other for other, _ in errors} - set(lanes))
        also = f" (and lanes {', '.join(map(str, others))} failed too)" if others else ""
        if failure.lost is not None:
            message = f"worker {worker} ({span(lanes)}) {failure.lost.how} in {call}{also}"
            message += f". {then}" if then else ""
            concerned: tuple[int, ...] = tuple(lanes)
        else:
            assert failure.raised is not None
            concerned = tuple(other for other, each in errors if each.worker == worker)  # type: ignore[attr-defined]
            then = then or ADVICE.get(call, ADVICE["step"]).format(lane=lane)
            place = f"lane {lane} (worker {worker}, {span(lanes)})"
            message = f"{place} raised in {call}{also}: {failure.raised.text}. {then}\n\n{failure.raised.trace}"
        error = WorkerError(message, worker, concerned)
        error.results = results
        if results is not None:
            error.valid = ~self.failed
        error.__cause__ = None if failure.raised is None else failure.raised.exception()
        return error

    def _ask_lanes(self, method: str, *args: Any) -> list[Any]:
        self._require_workers()
        request = pack_code((method, args), f"{method} with {args}")
        return [value for part in self._answers(method, [request] * self.num_workers) for value in part]

    def _set_in_lanes(self, name: str, values: list[Any]) -> None:
        self._require_workers()
        parts = (values[lanes.start : lanes.stop] for lanes in self._pool.lanes)
        for _ in self._answers("set_attr", [pack_code(("set_attr", (name, part)), name) for part in parts]):
            pass

    def _answers(self, method: str, requests: list[bytes]) -> Iterator[Any]:
        """What workers answer to a call that is no step or reset; an exception is raised here as it was there."""
        for worker, reply in enumerate(self._run(REQUEST, requests)):
            lanes = self._pool.lanes[worker]
            if isinstance(reply, Lost):
                raise WorkerError(f"worker {worker} ({span(lanes)}) {reply.how} in {method}", worker, tuple(lanes))
            if isinstance(reply, Raised):
                error = reply.exception()
                if error is None:
                    error = WorkerError(f"worker {worker} ({span(lanes)}): {reply.text}", worker, tuple(lanes))
                add_note(error, f"raised in worker {worker} ({span(lanes)}):\n{reply.trace}")
                raise error
            yield reply

    def close_extras(self, timeout: float | None = None, terminate: bool = False, **kwargs: Any) -> None:
        """Closes all envs and ends the workers; called by ``close``.

        Args:
            timeout: seconds that envs may take to close; those that take longer are killed. None for 5.
            terminate: whether to kill the workers at once, without closing their envs.
            **kwargs: as wrappers pass them on; ignored.

        Raises:
            Exception: what an env raised in its ``close``, when all workers have ended.
        """
        self._refuse_while_running()
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout >= 0):
            raise TypeError(f"close: timeout is {timeout!r}: expected seconds, from 0, or None")
        try:
            replies = self._pool.close(timeout, terminate)
        finally:
            self.closed = True
            if self._memory is not None:
                self._memory.close_file()
        for worker, reply in enumerate(replies):
            for lane, raised in reply if isinstance(reply, list) else ():
                raise self._told([(lane, Failure(worker, raised, None))], "close", None)


def put_rows(source: list[Any], parts: list[Any], lanes: list[int]) -> None:
    """Copies lanes' rows of observations, arrays or lists of objects, to other such."""
    for given, part in zip(source, parts, strict=True):
        for lane in lanes:
            part[lane] = given[lane]


def looks_of(num_workers: int, cores: int) -> tuple[float, float]:
    """How long the parent, and how long a worker looks for an event before it sleeps, in seconds.

    Who looks has a core, and keeps it from others where there are too few.
    """
    return LOOK_FOR if num_workers < cores else 0.0, LOOK_FOR if num_workers <= cores else 0.0


def _checked_on_error(on_worker_error: str) -> bool:
    """Whether workers are restarted, from the argument on_worker_error."""
    if on_worker_error not in ("raise", "restart"):
        raise ValueError(f"on_worker_error is {on_worker_error!r}: expected 'raise' or 'restart'")
    return on_worker_error == "restart"
