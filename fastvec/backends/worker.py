"""A worker of the process backend: it makes the envs of some lanes and steps them when it is told to."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection, wait
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from fastvec._lanes import ENDED, Lanes
from fastvec.backends import _bell
from fastvec.backends.lane_actions import LaneActions
from fastvec.backends.ordinary import LaneFacts
from fastvec.backends.parcels import Raised, pack, unpack
from fastvec.backends.parts import parts_of
from fastvec.backends.shared_arrays import Plan, SharedArrays
from fastvec.backends.sources import make_envs

# Commands: of a step all is in shared memory; of a request what is asked for is in the pipe; and single lanes may have
# something to do, which their words in shared memory say.
STEP, REQUEST, LANES = 1, 2, 3
# What a lane may be asked for by itself.
STEP_LANE, RESET_LANE = 1, 2
# How long a worker waits for a command before it looks whether its parent is still there.
PATIENCE = 1.0


@dataclass(frozen=True)
class Reply:
    """What a worker has to say of a step or reset beside what is in shared memory.

    Attributes:
        infos, finals: as ``Lanes.step`` returns them.
        errors: (lane, exception) of envs that raised.
        observations, final: the rows of those parts of observations that are in no shared memory, in their order.
        arrays: the rows of rewards, flags and status, without shared memory.
    """

    infos: list[tuple[int, dict[str, Any]]]
    finals: list[tuple[int, dict[str, Any]]]
    errors: list[tuple[int, Raised]]
    observations: list[Any]
    final: list[Any]
    arrays: list[Any]


@dataclass(frozen=True)
class Room:
    """Where results and actions go.

    Attributes:
        plan: shapes and dtypes of the shared arrays: the words of the bells; if all is shared, what ``mine`` has; then,
            unless some actions are objects, two arrays for each part of actions, in its own dtype and in float64, and
            which of the two it is, for each lane and part.
        mine: shapes and dtypes of each part of observations (dtype None: objects), these again for final observations,
            rewards, terminations, truncations and status.
        shared: whether results and actions are in shared memory.
        by_lane: whether there are, at the end of the plan, words for what single lanes are asked for, and the ring.
        look_for: how long a worker looks for a command before it sleeps, in seconds.
    """

    plan: Plan
    mine: list[tuple[tuple[int, ...], np.dtype[Any] | None]]
    shared: bool
    by_lane: bool
    look_for: float


def main(
    connection: Connection,
    life: Connection,
    parent: int,
    inherited: Sequence[Connection],
    factories: Sequence[Callable[[], gymnasium.Env[Any, Any]]] | None,
) -> None:
    """Runs a worker until it is told to end, or its parent ends.

    Args:
        connection: the pipe to the parent.
        life: a pipe that closes when the parent ends, and with it all of its forks that have the other end.
        parent: the number of its process.
        inherited: what a forked worker has of the parent's, and must close for that.
        factories: with fork, what makes the envs; else it comes through the pipe.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair, which then closes its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for each in inherited:
        each.close()
    threading.Thread(target=_end_with_parent, args=(life, parent), daemon=True).start()
    # The parent may go, or give this worker up.
    with contextlib.suppress(EOFError, ConnectionError):
        _serve(connection, factories)


def _end_with_parent(life: Connection, parent: int) -> None:
    """Ends this process when the parent's end of the pipe closes or the parent is gone, whatever an env is doing."""
    signs: list[Connection | int] = [life]
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # it is gone already, which the pipe says; or the kernel has no such thing
            signs.append(os.pidfd_open(parent))
    wait(signs)
    os._exit(1)


def _serve(connection: Connection, factories: Sequence[Callable[[], gymnasium.Env[Any, Any]]] | None) -> None:
    worker, first, mode, label, packed = unpack(connection.recv_bytes())
    try:
        envs = make_envs(unpack(packed) if factories is None else factories, first)
        facts = pack(LaneFacts.of(envs[0]))
    except Exception as error:
        connection.send_bytes(pack(Raised.of(error)))
        return
    connection.send_bytes(facts)
    room: Room = unpack(connection.recv_bytes())
    memory = SharedArrays(room.plan, reduction.recv_handle(connection))
    memory.close_file()
    lanes = _WorkerLanes(envs, first, mode, label, room, memory.arrays)
    connection.send_bytes(pack(None))
    lanes.run(worker, connection)


def _packed(reply: Any) -> bytes:
    """A reply as it is sent.

    Raises:
        TypeError: if that cannot be; of infos with the lane and the key.
    """
    try:
        return pack(reply)
    except Exception as error:
        for lane, info in [*reply.infos, *reply.finals] if isinstance(reply, Reply) else ():
            for key, value in info.items():
                try:
                    pack(value)
                except Exception as reason:
                    raise TypeError(
                        f"info[{key!r}] of lane {lane} is {type(value).__name__}, which cannot be sent to the parent "
                        f"({reason}): leave it out, or use backend='serial'"
                    ) from None
        raise TypeError(f"what was asked for cannot be sent to the parent: {error}") from error


class _WorkerLanes:
    """The lanes of a worker, and how its commands reach them."""

    def __init__(
        self, envs: list[gymnasium.Env[Any, Any]], first: int, mode: str, label: str, room: Room, shared: list[Any]
    ) -> None:
        self.words, self.look_for = shared[0], room.look_for
        rest = iter(shared[1:])
        self.rows = slice(first, first + len(envs))
        results: list[Any] = [
            [None] * shape[0] if dtype is None else next(rest) if room.shared else np.zeros(shape, dtype)
            for shape, dtype in room.mine
        ]
        self.action_arrays = list(rest)
        if room.by_lane:
            self.requests, self.ring = self.action_arrays[-2:]
            del self.action_arrays[-2:]
        self.resets: dict[int, tuple[Any, Any]] = {}  # seeds and options of lanes that are to be reset by themselves
        count = (len(results) - 4) // 2
        self.observations, self.final, self.arrays = results[:count], results[count:-4], results[-4:]
        rewards, terminations, truncations, status = self.arrays
        paths = tuple(part.path for part in parts_of(envs[0].observation_space))
        if not room.shared:
            status[:] = ENDED  # as the parent has it of a worker that was restarted
        self.lanes = Lanes(
            envs, first, paths, self.observations, self.final, rewards, terminations, truncations, status, mode
        )
        self.actions = LaneActions(envs[0].action_space, len(envs), label)
        self.one_action = LaneActions(envs[0].action_space, 1, label)
        self.shared = room.shared
        self.always_replies = not room.shared or any(isinstance(part, list) for part in self.observations)

    def run(self, worker: int, connection: Connection) -> None:
        """Serves commands until it is told to close."""
        done, parent = 0, os.getppid()
        while True:
            before = done
            while (done := _bell.wait_for_command(self.words, worker, before, self.look_for, PATIENCE)) == before:
                if os.getppid() != parent:
                    return
            kind = done & 3
            if kind == LANES:
                self._serve_lanes(connection)
                _bell.idle(self.words, worker, done)
                continue
            method, reply = "step", None
            try:
                if kind == STEP:
                    reply = self._reply(*self.lanes.step(self._shared_actions()))
                else:
                    method, args = unpack(connection.recv_bytes())
                    reply = self._answer(method, args)
                packed = None if reply is None and method == "step" else _packed(reply)
            except EOFError:
                raise
            except Exception as error:
                packed = pack(Raised.of(error))
            # The parent reads when it has been told: a reply may be larger than what a pipe holds.
            _bell.finish(self.words, worker, done, packed is not None)
            if packed is not None:
                connection.send_bytes(packed)
            if method == "close":
                return

    def _shared_actions(self) -> list[Any] | npt.NDArray[Any]:
        """The actions of these lanes, from shared memory."""
        kinds = self.action_arrays[-1][self.rows.start]
        arrays = [self.action_arrays[2 * part + kind][self.rows] for part, kind in enumerate(kinds.tolist())]
        return self.actions.rows(arrays)

    def _serve_lanes(self, connection: Connection) -> None:
        """Does what single lanes are asked for, each at most once, so that none has to wait for another twice."""
        for lane in range(self.rows.start, self.rows.stop):
            kind = _bell.take(self.requests, lane)
            if kind == 0:
                continue
            place = lane - self.rows.start
            try:
                if kind == RESET_LANE:
                    while lane not in self.resets:
                        self.resets.update(unpack(connection.recv_bytes()))
                    seed, options = self.resets.pop(lane)
                    seeds = [seed if one == place else None for one in range(len(self.lanes.envs))]
                    mask = np.arange(len(seeds)) == place
                    infos, errors = self.lanes.reset(seeds, mask, options)
                    reply = self._reply(infos, [], errors, slice(lane, lane + 1))
                else:
                    reply = self._reply(*self.lanes.step_one(place, self._shared_action(lane)), slice(lane, lane + 1))
                packed = None if reply is None else _packed(reply)
            except EOFError:
                raise
            except Exception as error:
                packed = pack(Raised.of(error))
            _bell.push(self.words, self.ring, lane, packed is not None)
            if packed is not None:
                connection.send_bytes(packed)

    def _shared_action(self, lane: int) -> Any:
        """The action of one lane, from shared memory."""
        kinds = self.action_arrays[-1][lane]
        arrays = [self.action_arrays[2 * part + kind][lane : lane + 1] for part, kind in enumerate(kinds.tolist())]
        return self.one_action.rows(arrays)[0]

    def _answer(self, method: str, args: tuple[Any, ...]) -> Any:
        """Does what was asked for through the pipe."""
        if method == "step":
            return self._reply(*self.lanes.step(self.actions.rows(*args)))
        if method == "reset":
            infos, errors = self.lanes.reset(*args)
            return self._reply(infos, [], errors)
        if method == "close":
            return [(lane, Raised.of(error)) for lane, error in self.lanes.close()]
        return getattr(self.lanes, method)(*args)

    def _reply(self, infos: list[Any], finals: list[Any], errors: list[Any], rows: slice | None = None) -> Reply | None:
        """The reply for these rows, or for all of these lanes; None if there is nothing to say."""
        rows = self.rows if rows is None else rows
        if not (infos or finals or errors or self.always_replies):
            return None
        return Reply(
            infos,
            finals,
            [(lane, Raised.of(error)) for lane, error in errors],
            self._unshared(self.observations, rows),
            self._unshared(self.final, rows),
            [] if self.shared else [array[rows] for array in self.arrays],
        )

    def _unshared(self, parts: list[Any], rows: slice) -> list[Any]:
        return [part[rows] for part in parts if not self.shared or isinstance(part, list)]
