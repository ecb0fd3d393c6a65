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

from fastvec import _bell
from fastvec._lanes import Lanes
from fastvec.lane_actions import LaneActions
from fastvec.ordinary import LaneFacts
from fastvec.parcels import Raised, pack, unpack
from fastvec.parts import parts_of
from fastvec.shared_arrays import Plan, SharedArrays
from fastvec.sources import make_envs

# Commands: of a step all is in shared memory; of a request what is asked for is in the pipe.
STEP, REQUEST = 1, 2
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
        plan: shapes and dtypes of the shared arrays: the words of the bells; and, if all is shared, what ``mine`` has.
        mine: shapes and dtypes of each part of observations (dtype None: objects), these again for final observations,
            rewards, terminations, truncations and status.
        actions: for each part of actions shape and dtypes of its arrays, of which one is used; none without an array.
        shared: whether ``mine`` and ``actions`` are in shared memory.
        spins: how often to look before sleeping.
    """

    plan: Plan
    mine: list[tuple[tuple[int, ...], np.dtype[Any] | None]]
    shared: bool
    spins: int


def main(
    connection: Connection,
    life: Connection,
    inherited: Sequence[Connection],
    factories: Sequence[Callable[[], gymnasium.Env[Any, Any]]] | None,
) -> None:
    """Runs a worker until it is told to end, or its parent ends.

    Args:
        connection: the pipe to the parent.
        life: a pipe that closes when the parent ends.
        inherited: what a forked worker has of the parent's, and must close for that.
        factories: with fork, what makes the envs; else it comes through the pipe.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair, which then closes its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for each in inherited:
        each.close()
    threading.Thread(target=_end_with_parent, args=(life,), daemon=True).start()
    # The parent may go, or give this worker up.
    with contextlib.suppress(EOFError, ConnectionError):
        _serve(connection, factories)


def _end_with_parent(life: Connection) -> None:
    """Ends this process when the parent's end of the pipe closes, whatever an env is doing."""
    wait([life])
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


class _WorkerLanes:
    """The lanes of a worker, and how its commands reach them."""

    def __init__(
        self, envs: list[gymnasium.Env[Any, Any]], first: int, mode: str, label: str, room: Room, shared: list[Any]
    ) -> None:
        self.words, self.spins = shared[0], room.spins
        rest = iter(shared[1:] if room.shared else ())
        self.rows = slice(first, first + len(envs))
        results: list[Any] = [
            [None] * shape[0] if dtype is None else next(rest) if room.shared else np.zeros(shape, dtype)
            for shape, dtype in room.mine
        ]
        # Actions: after the results, for each part with an array that of each dtype; and which dtype it is.
        self.action_arrays = list(rest)
        count = (len(results) - 4) // 2
        self.observations, self.final, self.arrays = results[:count], results[count:-4], results[-4:]
        rewards, terminations, truncations, status = self.arrays
        paths = tuple(part.path for part in parts_of(envs[0].observation_space))
        self.lanes = Lanes(
            envs, first, paths, self.observations, self.final, rewards, terminations, truncations, status, mode
        )
        self.actions = LaneActions(envs[0].action_space, len(envs), label)
        self.shared = room.shared
        self.always_replies = not room.shared or any(isinstance(part, list) for part in self.observations)

    def run(self, worker: int, connection: Connection) -> None:
        """Serves commands until it is told to close."""
        done, parent = 0, os.getppid()
        while True:
            while not _bell.wait_for_command(self.words, worker, done, self.spins, PATIENCE):
                if os.getppid() != parent:
                    return
            done = int(self.words[1 + worker, 0])
            method, reply = "step", None
            try:
                if self.words[1 + worker, 1] == STEP:
                    reply = self._reply(*self.lanes.step(self._shared_actions()))
                else:
                    method, args = unpack(connection.recv_bytes())
                    reply = self._answer(method, args)
                packed = None if reply is None and method == "step" else pack(reply)
            except EOFError:
                raise
            except Exception as error:
                packed = pack(Raised.of(error))
            # The parent reads when it has been told: a reply may be larger than what a pipe holds.
            _bell.finish(self.words, worker, packed is not None)
            if packed is not None:
                connection.send_bytes(packed)
            if method == "close":
                return

    def _shared_actions(self) -> list[Any]:
        """The actions of these lanes, from shared memory."""
        kinds = self.action_arrays[-1]
        arrays = [self.action_arrays[2 * part + kind][self.rows] for part, kind in enumerate(kinds.tolist())]
        return self.actions.rows(arrays)

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

    def _reply(self, infos: list[Any], finals: list[Any], errors: list[Any]) -> Reply | None:
        if not (infos or finals or errors or self.always_replies):
            return None
        return Reply(
            infos,
            finals,
            [(lane, Raised.of(error)) for lane, error in errors],
            self._unshared(self.observations),
            self._unshared(self.final),
            [] if self.shared else [array[self.rows] for array in self.arrays],
        )

    def _unshared(self, parts: list[Any]) -> list[Any]:
        return [part[self.rows] for part in parts if not self.shared or isinstance(part, list)]
