"""FirstReadyVecEnv: batches of the lanes that are ready first, so that nobody waits for the slowest env.

Actions are sent to some lanes, and results of some lanes are received, whichever they are. Each lane's trajectory is
that of synchronous stepping with the same seed and actions; what differs is in which batch its rows are."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from fastvec._lanes import BEGAN, ENDED, FAILED, RUNNING, merge_infos
from fastvec.backends import _bell
from fastvec.backends.lane_actions import LaneActions
from fastvec.backends.ordinary import Errors, Infos, Results
from fastvec.backends.parcels import Raised, pack_code
from fastvec.backends.parts import value_of
from fastvec.backends.process import Failure, ProcessVecEnv, put_rows
from fastvec.backends.worker import LANES, RESET_LANE, STEP_LANE, Reply
from fastvec.backends.worker_error import WorkerError
from fastvec.backends.worker_pool import CLOSE_TIMEOUT, PATIENCE, span
from fastvec.reset_options import checked_seeds

# Places of the ring are counted in so many bits.
PLACES = 2**31 - 1
# How often to look for what should be in a place, a millisecond each.
LOOKS = 20
# The calls that may be made while lanes are out.
BY_LANE = ("async_reset", "send", "recv")


@dataclass(frozen=True)
class Staleness:
    """By how many policy versions the steps that were received lagged behind the newest that was sent.

    Attributes:
        mean: on average; 0.0 where there is none.
        largest: at most.
        steps: how many steps had a version.
    """

    mean: float
    largest: int
    steps: int


class FirstReadyVecEnv(ProcessVecEnv):
    """Ordinary Python envs in worker processes, of which batches can be received. Made by :func:`fastvec.make`.

    A lane is out from ``send`` or ``async_reset`` until ``recv`` has returned it. While none is, ``reset`` and ``step``
    of all lanes work as everywhere.

    Attributes:
        batch_size: how many lanes ``recv`` returns.
    """

    _by_lane = True

    def __init__(self, *args: Any, batch_size: int, **kwargs: Any) -> None:
        """As :class:`ProcessVecEnv`, with the size of batches.

        Raises:
            ValueError: for a size that is no number of lanes, and where observations and actions have no arrays that
                could be shared.
        """
        super().__init__(*args, **kwargs)
        try:
            if not 1 <= batch_size <= self.num_envs:
                raise ValueError(f"batch_size is {batch_size}: expected 1 to {self.num_envs}, the number of lanes")
            if not self._actions_shared:
                raise ValueError("batch_size needs shared_memory=True and an action space of arrays")
        except ValueError:
            self.close(terminate=True)
            raise
        n = self.num_envs
        self.batch_size = batch_size
        self._worker_of = np.repeat(np.arange(self.num_workers), [len(lanes) for lanes in self._pool.lanes])
        self._out = np.zeros(n, np.bool_)
        self._sent_at = np.zeros(n)
        self._is_reset = np.zeros(n, np.bool_)  # of what is out: a reset rather than a step
        self._versions = np.full(n, -1, np.int64)  # of the policy whose action a lane has
        self._newest = -1
        self._lags = [0, 0, 0]  # sum, largest, count
        self._popped = 0
        self._arrived: list[tuple[int, Reply | None]] = []
        self._failures: list[tuple[list[int], Failure]] = []  # that nobody has been told of
        self._forms: dict[int, LaneActions] = {}  # of actions of so many lanes
        # Where workers are restarted:
        self._cut_off = np.zeros(n, np.bool_)  # lanes whose next row says that their episode was
        self._orphaned = np.zeros(n, np.bool_)  # lanes that were not out then: that of the next send will
        self._held: list[Any] = []  # the observations that were shown last
        self._hold()

    def async_reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        env_ids: npt.ArrayLike | None = None,
    ) -> None:
        """Asks lanes to begin a new episode; ``recv`` returns their first observations, with reward 0 and no flags.

        Args:
            seed: as in ``reset``: an int s seeds lane i with s + i, whichever lanes are asked; a sequence has a seed
                for each of all lanes.
            options: passed to the envs.
            env_ids: the lanes, none of them out; None for all.

        Raises:
            ValueError, TypeError: for lanes that are none, and for seeds as in ``reset``. No lane has been asked.
            gymnasium.error.ResetNeeded: if the first is not of all lanes.
        """
        self._enter("async_reset")
        try:
            lanes = self._checked_lanes(np.arange(self.num_envs) if env_ids is None else env_ids, "async_reset")
            seeds = checked_seeds(seed, self.num_envs)
            if not self._started and len(lanes) < self.num_envs:
                raise ResetNeeded("async_reset: reset all lanes first")
            if not isinstance(seeds, list):
                seeds = [None if seeds is None else seeds + lane for lane in range(self.num_envs)]
            messages = []
            for worker in np.unique(self._worker_of[lanes]).tolist():
                own = lanes[self._worker_of[lanes] == worker].tolist()
                messages.append((worker, pack_code({lane: (seeds[lane], options) for lane in own}, "options")))
            self._ledger.rewards[lanes] = 0.0
            self._orphaned[lanes] = False
            self._ask(lanes, RESET_LANE)
            for worker, message in messages:
                self._pool.tell(worker, message)
            self._started = True
            self._interrupted = False
        finally:
            self._running = None

    def send(self, actions: Any, env_ids: npt.ArrayLike, policy_version: int | None = None) -> None:
        """Gives some lanes an action each, and returns at once.

        Args:
            actions: one for each of these lanes, in their order.
            env_ids: the lanes, none of them out: ``info["env_id"]`` of what was received.
            policy_version: what ``info["policy_version"]`` says of these steps: a number that grows with every update
                of the policy that the actions are of.

        Raises:
            ValueError, TypeError: for lanes that are none, twice there or out, and for actions as in ``step``. No lane
                has been sent anything.
            gymnasium.error.ResetNeeded: before the first reset, for a lane that raised and was not reset since, or one
                that has ended in DISABLED mode.
        """
        self._enter("send")
        try:
            if not self._started:
                raise ResetNeeded("send: call async_reset or reset first")
            lanes = self._checked_lanes(env_ids, "send")
            if policy_version is not None:
                _check_version(policy_version)
            if len(lanes) == 0:  # as when a filter has left nothing
                return
            orphaned = self._orphaned[lanes]
            for lane in lanes[(self._ledger.status[lanes] == FAILED) & ~orphaned].tolist():
                raise ResetNeeded(f"send: lane {lane} raised and was not reset since: async_reset(env_ids=[{lane}])")
            if self._mode == AutoresetMode.DISABLED:
                for lane in lanes[self._ledger.status[lanes] == ENDED].tolist():
                    raise ResetNeeded(f"send: the episode of lane {lane} has ended: async_reset(env_ids=[{lane}])")
            form = self._forms.get(len(lanes))
            if form is None:
                form = self._forms[len(lanes)] = LaneActions(self.single_action_space, len(lanes), self.label)
            kinds = self._action_arrays[-1]
            for part, array in enumerate(form.arrays(actions)):
                kind = 0 if array.dtype == self._action_arrays[2 * part].dtype else 1
                kinds[lanes, part] = kind
                self._action_arrays[2 * part + kind][lanes] = array
            self._versions[lanes] = -1 if policy_version is None else policy_version
            self._newest = self._newest if policy_version is None else max(self._newest, int(policy_version))
            self._ask(lanes[~orphaned], STEP_LANE)
            self._out[lanes] = True
            for lane in lanes[orphaned].tolist():
                self._orphaned[lane] = False
                self._cut(lane)
        finally:
            self._running = None

    def recv(self, timeout: float | None = None) -> Results:
        """Waits for ``batch_size`` lanes, and returns what they returned; in the order in which they were ready.

        Args:
            timeout: seconds to wait; None for no limit.

        Returns:
            (observation, rewards, terminations, truncations, info), each with a row for each of these lanes, and arrays
            of info too. ``info["env_id"]``, int64 (batch_size,), says which lanes they are, ``info["policy_version"]``
            what ``send`` was given, or -1, and ``info["began"]`` (bool) which rows are resets, and no transitions.

        Raises:
            RuntimeError: if fewer lanes are out: there would never be enough.
            TimeoutError: if there are not enough in time. Nothing is lost: the next ``recv`` has those that there are.
            fastvec.WorkerError: if an env raised or a worker ended; the other lanes are in the next ``recv``.
        """
        self._enter("recv")
        try:
            end = None if timeout is None else time.monotonic() + _checked_seconds(timeout)
            out = int(np.count_nonzero(self._out))
            if out < self.batch_size:
                raise RuntimeError(
                    f"recv: {out} lanes are out, and a batch has {self.batch_size}; send to more lanes first"
                )
            self._steps += 1
            self._gather(self.batch_size, end)
            batch, self._arrived = self._arrived[: self.batch_size], self._arrived[self.batch_size :]
            return self._batch(batch)
        finally:
            self._running = None

    @property
    def staleness(self) -> Staleness:
        """How far the policies of the received steps lagged behind; of steps whose ``send`` had a policy_version."""
        total, largest, steps = self._lags
        return Staleness(total / steps if steps else 0.0, largest, steps)

    def _checked_lanes(self, env_ids: npt.ArrayLike, call: str) -> npt.NDArray[np.int64]:
        given = np.asarray(env_ids)
        if given.shape == (0,):
            return np.zeros(0, np.int64)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise TypeError(f"{call}: env_ids is {env_ids!r}: expected a list or array of lanes, ints")
        for lane in given[(given < 0) | (given >= self.num_envs)].tolist():
            raise ValueError(f"{call}: env_ids has {lane}: there are lanes 0 to {self.num_envs - 1}")
        lanes = given.astype(np.int64)
        if len(np.unique(lanes)) < len(lanes):
            raise ValueError(f"{call}: env_ids has a lane twice: {lanes.tolist()}")
        for lane in lanes[self._out[lanes]].tolist():
            raise ValueError(f"{call}: lane {lane} is out already; recv it first")
        for worker in np.unique(self._worker_of[lanes]).tolist():
            lost = self._pool.lost[worker]
            if lost is not None and self._restarts:
                self._restart(worker, f"it {lost.how} in a call before")
            elif lost is not None:
                own = self._pool.lanes[worker]
                raise WorkerError(f"worker {worker} ({span(own)}) {lost.how} in a call before", worker, tuple(own))
        return lanes

    def _ask(self, lanes: npt.NDArray[np.int64], kind: int) -> None:
        self._is_reset[lanes] = kind == RESET_LANE
        self._sent_at[lanes] = time.monotonic()
        self._out[lanes] = True
        for lane in lanes.tolist():
            _bell.post(self._requests, lane, kind)
        for worker in np.unique(self._worker_of[lanes]).tolist():
            _bell.command(self._pool.words, worker, LANES)

    def _gather(self, count: int, end: float | None) -> None:
        """Waits until so many lanes have arrived.

        Raises:
            TimeoutError: if that is not so at the end.
            WorkerError: for lanes that failed, which are not out any more; unless their worker is restarted.
        """
        words = self._pool.words
        while True:
            _bell.expect(words, 1)  # before looking, so that what comes after wakes
            while len(self._arrived) < count and not self._failures and self._pop():
                pass
            if self._failures:
                self._deal_with(*self._failures.pop(0))
                continue
            if len(self._arrived) >= count:
                return
            left = PATIENCE if end is None else min(PATIENCE, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"recv: {len(self._arrived)} of {count} lanes were ready in time")
            if not _bell.wait_for_events(words, self._pool.looks, left):
                self._find_lost()

    def _pop(self) -> bool:
        """Takes the next lane that is ready or has failed, if there is one."""
        found = _bell.pop(self._ring, self._popped)
        if found is None:
            return False
        self._popped += 1
        lane, has_reply = found
        worker = int(self._worker_of[lane])
        reply = self._pool.receive(worker) if has_reply else None
        if isinstance(reply, Reply):
            for parts, values in zip(self._unshared, (reply.observations, reply.final), strict=True):
                for part, value in zip(parts, values, strict=True):
                    part[lane : lane + 1] = value
        if reply is None or (isinstance(reply, Reply) and not reply.errors):
            self._arrived.append((lane, reply))
        elif isinstance(reply, Reply):
            self._failures.append(([lane], Failure(worker, reply.errors[0][1], None)))
        else:
            raised, lost = (reply, None) if isinstance(reply, Raised) else (None, reply)
            self._failures.append(([lane], Failure(worker, raised, lost)))
        return True

    def _find_lost(self) -> None:
        """Notes workers that have ended, or take too long, with lanes that are out."""
        arrived = np.zeros(self.num_envs, np.bool_)
        arrived[[lane for lane, _ in self._arrived]] = True
        late = np.zeros(self.num_envs, np.bool_)
        if self._step_timeout is not None:
            late = time.monotonic() - self._sent_at > self._step_timeout
        waiting = self._out & ~arrived
        for worker in np.unique(self._worker_of[waiting]).tolist():
            own = waiting & (self._worker_of == worker)
            if self._pool.is_lost(worker, self._step_timeout if (own & late).any() else None):
                self._drain()
                waiting[[lane for lane, _ in self._arrived]] = False
                waiting[[lane for lanes, _ in self._failures for lane in lanes]] = False
                lanes = np.flatnonzero(waiting & (self._worker_of == worker)).tolist()
                if lanes:
                    self._failures.append((lanes, Failure(worker, None, self._pool.lost[worker])))

    def _drain(self) -> None:
        """Takes all that is ready, when a worker has ended: also what it had finished before.

        A place in the ring that it had taken, and had not filled when it was killed, is left out: nobody will fill it.
        """
        looks = 0
        while self._popped & PLACES != int(self._pool.words[0, 2]) & PLACES:
            if self._pop():
                looks = 0
            elif looks < LOOKS:  # another worker, which lives, may be about to fill it
                looks += 1
                time.sleep(1e-3)
            else:
                self._popped += 1

    def _failed(self, errors: Errors) -> Exception:
        """The error of lanes that failed, which are not out any more."""
        for lane, _ in errors:
            self._out[lane] = False
            self._ledger.status[lane] = FAILED
        return self._told(errors, "recv", None)

    def _deal_with(self, lanes: list[int], failure: Failure) -> None:
        """Restarts the worker of lanes that failed, or raises."""
        errors: Errors = [(lane, failure) for lane in lanes]
        if not self._restarts:
            raise self._failed(errors)
        try:
            self._count_restart(failure.worker, errors, "recv")
            self._restart(failure.worker, str(self._told(errors, "recv", None)))
        except WorkerError:
            self._failed(errors)
            raise

    def _restart(self, worker: int, reason: str) -> None:
        """Starts a worker again; what its lanes had done before stays, and the rest of them is cut off."""
        self._pool.stop(worker)
        self._drain()
        self._failures = [(lanes, failure) for lanes, failure in self._failures if failure.worker != worker]
        for lane in self._pool.lanes[worker]:  # before the new worker can look: what was asked of the old one is over
            _bell.take(self._requests, lane)
        self._bring_back_one(worker, reason)
        arrived = {lane for lane, _ in self._arrived}
        for lane in self._pool.lanes[worker]:
            if self._out[lane] and lane not in arrived:
                self._cut(lane)
            else:
                self._orphaned[lane] = True
                if not self._out[lane]:
                    self._ledger.status[lane] = FAILED

    def _cut(self, lane: int) -> None:
        """Has a lane whose env is gone arrive with what it showed last; in SAME_STEP mode with a new episode."""
        put_rows(self._held, self._observations, [lane])
        put_rows(self._held, self._final, [lane])
        self._cut_off[lane] = True
        if self._mode == AutoresetMode.SAME_STEP:
            self._ask(np.array([lane]), RESET_LANE)
            self._pool.tell(int(self._worker_of[lane]), pack_code({lane: (None, None)}, "a reset"))
        else:
            self._arrived.append((lane, None))

    def _hold(self) -> None:
        """Keeps what all lanes show, for those whose worker will be lost."""
        if self._restarts:
            self._held = [part.copy() for part in self._observations]

    def _reset_lanes(
        self, seeds: list[int | None], mask: npt.NDArray[np.bool_] | None, options: dict[str, Any] | None
    ) -> tuple[Infos, Errors]:
        results = super()._reset_lanes(seeds, mask, options)
        self._orphaned[slice(None) if mask is None else mask] = False
        self._hold()
        return results

    def _step_lanes(self, actions: list[Any]) -> tuple[Infos, Infos, Errors]:
        results = super()._step_lanes(actions)
        self._hold()
        return results

    def _batch(self, batch: list[tuple[int, Reply | None]]) -> Results:
        """The results of lanes that have arrived, in this order."""
        lanes = np.array([lane for lane, _ in batch], np.int64)
        ledger, m = self._ledger, len(lanes)
        self._out[lanes] = False
        cut_off = self._cut_off[lanes]
        self._cut_off[lanes] = False
        # To the ledger a row of a lane that was cut off is like a reset's: nothing to count, and a new beginning.
        ledger.rewards[lanes[cut_off]] = 0.0
        ledger.terminations[lanes[cut_off]] = ledger.truncations[lanes[cut_off]] = False
        ledger.status[lanes[self._is_reset[lanes] | cut_off]] = BEGAN
        place = {lane: i for i, lane in enumerate(lanes.tolist())}
        infos: Infos = []
        finals: Infos = []
        for _, reply in batch:
            if reply is not None:
                infos += [(place[lane], info) for lane, info in reply.infos]
                finals += [(place[lane], info) for lane, info in reply.finals]
        info = merge_infos(m, infos)
        began = (ledger.status[lanes] == BEGAN) & ~cut_off
        ended, episode = ledger.settle_lanes(lanes)
        if cut_off.any():
            ledger.truncations[lanes[cut_off]] = True
            ledger.status[lanes[cut_off]] = RUNNING if self._mode == AutoresetMode.SAME_STEP else ENDED
            ended += int(np.count_nonzero(cut_off))
            info["worker_restarted"], info["_worker_restarted"] = cut_off, cut_off.copy()
        terminations, truncations = ledger.terminations[lanes], ledger.truncations[lanes]
        if ended:
            mask = terminations | truncations
            whole = mask & ~cut_off
            if self._mode == AutoresetMode.SAME_STEP:
                info["final_obs"] = self._picture([self._rows(part, lanes) for part in self._final], mask)
                info["_final_obs"] = whole
                info["final_info"] = merge_infos(m, finals)
                info["_final_info"] = whole.copy()
            if episode is not None:
                info["episode"], info["_episode"] = episode, whole.copy()
        info["env_id"] = lanes
        info["began"] = began
        info["policy_version"] = self._versions[lanes]
        lags = self._newest - info["policy_version"][(info["policy_version"] >= 0) & ~began & ~cut_off]
        if len(lags):
            self._lags = [
                self._lags[0] + int(lags.sum()),
                max(self._lags[1], int(lags.max())),
                self._lags[2] + len(lags),
            ]
        observation = value_of(
            self.single_observation_space, iter([self._rows(part, lanes) for part in self._observations])
        )
        if self._restarts:
            put_rows(self._observations, self._held, lanes.tolist())
        ledger.status[lanes[self._orphaned[lanes]]] = FAILED
        return observation, ledger.rewards[lanes], terminations, truncations, info

    def _rows(self, part: Any, lanes: npt.NDArray[np.int64]) -> Any:
        """Copies of rows of an array, or of a list of objects."""
        return [part[lane] for lane in lanes.tolist()] if isinstance(part, list) else part[lanes]

    def _enter(self, call: str) -> None:
        super()._enter(call)
        if call not in BY_LANE and self._out.any():
            self._running = None
            lanes = np.flatnonzero(self._out).tolist()
            raise RuntimeError(f"{call}: lanes {', '.join(map(str, lanes))} are out; recv them first")

    def close_extras(self, timeout: float | None = None, terminate: bool = False, **kwargs: Any) -> None:
        """As ``ProcessVecEnv.close_extras``; lanes that are out have the timeout to come back."""
        if not terminate and self._owner == os.getpid() and hasattr(self, "_out") and self._out.any():
            for lane in np.flatnonzero(self._out).tolist():
                # A step that nobody has begun with is taken back; a reset is not, as its seed is in the pipe.
                if not self._is_reset[lane] and _bell.take(self._requests, lane):
                    self._out[lane] = False
            self._restarts = False
            end = time.monotonic() + (CLOSE_TIMEOUT if timeout is None else timeout)
            try:
                self._gather(int(np.count_nonzero(self._out)), end)
            except (TimeoutError, WorkerError):
                terminate = True
        super().close_extras(timeout, terminate, **kwargs)


def _check_version(version: Any) -> None:
    """Refuses a policy_version that is no number of 64 bits, or below 0, which would say that there is none."""
    if isinstance(version, bool) or not isinstance(version, (int, np.integer)) or not 0 <= version < 2**63:
        raise TypeError(f"send: policy_version is {version!r}: expected an int from 0, or None")


def _checked_seconds(timeout: Any) -> float:
    """The argument timeout of recv."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout != timeout:
        raise TypeError(f"recv: timeout is {timeout!r}: expected seconds or None")
    return timeout
