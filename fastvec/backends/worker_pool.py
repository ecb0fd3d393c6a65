"""The worker processes of one env: starting them, giving them commands, noticing when they end, and ending them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import reduction, util
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from fastvec.backends import _bell
from fastvec.backends.ordinary import LaneFacts
from fastvec.backends.parcels import Raised, pack, pack_code, unpack
from fastvec.backends.starting import start
from fastvec.backends.worker import REQUEST, Room
from fastvec.backends.worker import main as work
from fastvec.backends.worker_error import WorkerError

# How often the parent looks whether workers that it waits for are still there, in seconds.
PATIENCE = 0.1
# How long workers have to close their envs, if nobody says otherwise, in seconds.
CLOSE_TIMEOUT = 5.0


@dataclass(frozen=True)
class Lost:
    """What is there in place of the reply of a worker that has ended.

    Attributes:
        how: the end of a sentence that begins with the worker.
    """

    how: str


def span(lanes: range) -> str:
    """Lanes for a message."""
    return f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {lanes[0]}..{lanes[-1]}"


class WorkerPool:
    """Workers, each with the envs of some lanes.

    Attributes:
        lanes: those of each worker.
        facts: what each worker's envs are.
        lost: how each worker was lost; None while it is there.
        words: those of the bells.
        looks: how long the parent looks for events before it sleeps, in seconds.
    """

    def __init__(
        self,
        factories: Sequence[Callable[[], Any]],
        lanes: list[range],
        mode: str,
        label: str,
        context: str,
    ) -> None:
        """Starts a worker for each range of lanes, and waits until all have made their envs.

        Raises:
            WorkerError: if a worker ends before, or an env cannot be made.
            TypeError: if the factories cannot be sent to workers.
        """
        self.lanes = lanes
        self.lost: list[Lost | None] = [None] * len(lanes)
        self._outstanding: list[int] = []
        self.words: npt.NDArray[np.int32] = np.zeros((1 + len(lanes), _bell.WORDS), np.int32)
        self.looks = 0.0
        self._owner = os.getpid()
        self._context, self._begin = context, (mode, label)
        own = [factories[part.start : part.stop] for part in lanes]
        by_fork = context == "fork"
        self._own = own if by_fork else None
        self._packed = [b"" if by_fork else pack_code(list(part), f"what makes the envs of {label}") for part in own]
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        # Workers hold one end of a pipe, and end when the other closes, at the latest with this process.
        self._life = multiprocessing.Pipe(duplex=False)
        self._end = util.Finalize(
            self, _end, args=(self._processes, self._connections, self._life, os.getpid()), exitpriority=100
        )
        try:
            for worker in range(len(lanes)):
                self._start(worker)
            for worker in range(len(lanes)):
                self._introduce(worker)
            self.facts: list[LaneFacts] = [self._begun(worker, context) for worker in range(len(lanes))]
        except BaseException:
            self._end()
            raise

    def _start(self, worker: int) -> None:
        """Starts the process of a worker, the next one or one that was lost."""
        ours, theirs = multiprocessing.Pipe()
        life, kept = self._life
        factories = None if self._own is None else self._own[worker]
        self._connections[worker : worker + 1] = [ours]
        inherited = [*self._connections, kept] if factories is not None else []
        try:
            args = (theirs, life, os.getpid(), inherited, factories)
            process = start(self._context, work, args, f"fastvec-worker-{worker}")
        finally:
            theirs.close()
        self._processes[worker : worker + 1] = [process]

    def _introduce(self, worker: int) -> None:
        """Tells a worker that was started what its lanes are."""
        message = pack((worker, self.lanes[worker].start, *self._begin, self._packed[worker]))
        with contextlib.suppress(OSError):  # it has ended already; which is noticed next
            self._connections[worker].send_bytes(message)

    def _begun(self, worker: int, context: str = "fork") -> Any:
        """What a worker says while it begins.

        Raises:
            WorkerError: if it raised or ended.
        """
        connection, process = self._connections[worker], self._processes[worker]
        lanes = self.lanes[worker]
        ready = wait([connection, process.sentinel])
        try:
            if connection not in ready:
                raise EOFError
            said = unpack(connection.recv_bytes())
        except (EOFError, ConnectionError):
            process.join(CLOSE_TIMEOUT)
            hint = (
                ""
                if context == "fork" or process.exitcode != 1
                else f". Under {context!r} workers import the main script: what makes an env in it must stand below "
                f"`if __name__ == '__main__':`"
            )
            raise WorkerError(
                f"worker {worker} ({span(lanes)}) {_how_ended(process.exitcode)} before its envs were made{hint}",
                worker,
                tuple(lanes),
            ) from None
        if isinstance(said, Raised):
            raise WorkerError(
                f"worker {worker} ({span(lanes)}) could not make its envs: {said.text}\n\n{said.trace}",
                worker,
                tuple(lanes),
            ) from said.exception()
        return said

    def open(self, room: Room, file: int, words: npt.NDArray[np.int32], looks: float) -> None:
        """Tells workers where results and actions go: in this file, the words of the bells too."""
        self.words, self.looks = words, looks
        for worker in range(len(self.lanes)):
            self._give_room(worker, room, file)
        for worker in range(len(self.lanes)):
            self._begun(worker)

    def _give_room(self, worker: int, room: Room, file: int) -> None:
        with contextlib.suppress(OSError):  # it has ended already; which is noticed next
            self._connections[worker].send_bytes(pack(room))
            reduction.send_handle(self._connections[worker], file, self._processes[worker].pid)

    def stop(self, worker: int) -> None:
        """Ends the process of a worker, of which what it sent before can still be received."""
        self._processes[worker].kill()
        self._processes[worker].join()

    def restart(self, worker: int, room: Room, file: int) -> None:
        """Starts a worker anew, with new envs that were not reset; it may have been lost or not.

        Raises:
            WorkerError: if it ends before it is ready, or cannot make its envs. It is lost then.
        """
        self.stop(worker)
        self._connections[worker].close()
        self.words[1 + worker] = 0
        self._start(worker)
        try:
            self._introduce(worker)
            self._begun(worker)
            self._give_room(worker, room, file)
            self._begun(worker)
        except WorkerError:
            self.stop(worker)
            self._lose(worker, "could not be started again")
            raise
        self.lost[worker] = None

    def run(
        self,
        kind: int,
        requests: Sequence[bytes] | None = None,
        timeout: float | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """Gives all workers a command, or only some, and waits until all of these have finished.

        Args:
            kind: the command.
            requests: what each worker gets through its pipe.
            timeout: seconds, after which workers that have not finished are killed; None for no limit.

        Returns:
            The reply of each worker, None if it has none, a Raised or a Lost.
        """
        if self._outstanding:  # of a call that was interrupted
            self._wait(timeout)
            self._replies()
        asked = range(len(self.lanes)) if only is None else only
        self._outstanding = [worker for worker in asked if self.lost[worker] is None]
        _bell.expect(self.words, len(self._outstanding))
        for worker in self._outstanding:
            _bell.command(self.words, worker, kind)
        if requests is not None:
            for worker in self._outstanding:
                with contextlib.suppress(OSError):  # it has ended; which is noticed next
                    self._connections[worker].send_bytes(requests[worker])
        self._wait(timeout)
        return self._replies()

    def tell(self, worker: int, message: bytes) -> None:
        """Sends a worker something that it will ask for."""
        with contextlib.suppress(OSError):  # it has ended; which is noticed where it is waited for
            self._connections[worker].send_bytes(message)

    def receive(self, worker: int) -> Any:
        """What a worker sends: its reply, a Raised, or a Lost if it has ended."""
        try:
            return unpack(self._connections[worker].recv_bytes())
        except (EOFError, ConnectionError):
            self._processes[worker].join()
            self._lose(worker, _how_ended(self._processes[worker].exitcode))
            return self.lost[worker]

    def is_lost(self, worker: int, timeout: float | None) -> bool:
        """Whether a worker has ended; with a timeout, that it has exceeded, it is killed."""
        if self.lost[worker] is None:
            if not self._processes[worker].is_alive():
                self._lose(worker, _how_ended(self._processes[worker].exitcode))
            elif timeout is not None:
                self._give_up(worker, timeout)
        return self.lost[worker] is not None

    def _give_up(self, worker: int, timeout: float) -> None:
        self.stop(worker)
        self._lose(worker, f"had not answered after {timeout:g} s, and was killed")

    def _wait(self, timeout: float | None) -> None:
        """Waits until the workers that have a command have finished it or are lost."""
        if _bell.wait_for_events(self.words, self.looks, PATIENCE if timeout is None else min(PATIENCE, timeout)):
            return
        end = None if timeout is None else time.monotonic() + timeout - PATIENCE
        while True:
            busy = [worker for worker in self._outstanding if self.lost[worker] is None and not self._finished(worker)]
            for worker in busy:
                if not self._processes[worker].is_alive() and not self._finished(worker):
                    self._lose(worker, _how_ended(self._processes[worker].exitcode))
                elif end is not None and time.monotonic() >= end:
                    assert timeout is not None
                    self._give_up(worker, timeout)
            busy = [worker for worker in busy if self.lost[worker] is None and not self._finished(worker)]
            if not busy:
                return
            _bell.expect(self.words, len(busy))
            left = PATIENCE if end is None else min(PATIENCE, max(end - time.monotonic(), 0.0))
            _bell.wait_for_events(self.words, self.looks, left)

    def _finished(self, worker: int) -> bool:
        words = self.words[1 + worker]
        return bool(words[2] == words[0])

    def _lose(self, worker: int, how: str) -> None:
        self.lost[worker] = Lost(how)

    def _replies(self) -> list[Any]:
        """The replies to a command that all have finished."""
        replies: list[Any] = list(self.lost)
        has_reply = self.words[1:, 3].tolist()
        for worker in self._outstanding:
            if self.lost[worker] is None and has_reply[worker]:
                replies[worker] = self.receive(worker)
        self._outstanding = []
        return replies

    def close(self, timeout: float | None = None, terminate: bool = False) -> list[Any]:
        """Has workers close their envs and ends them, and kills those that have not ended in time.

        Returns:
            The replies, as :meth:`run` does; a worker that was killed is Lost.
        """
        if self._owner != os.getpid() or not self._end.still_active():  # a fork of their process, or they have ended
            return []
        replies: list[Any] = []
        try:
            if not terminate and all(self._finished(worker) for worker in self._outstanding):
                replies = self.run(REQUEST, [pack(("close", ()))] * len(self.lanes), timeout or CLOSE_TIMEOUT)
                for process, reply in zip(self._processes, replies, strict=True):
                    if not isinstance(reply, Lost):
                        process.join(CLOSE_TIMEOUT)
        finally:
            self._end()
        return replies


def _end(processes: list[Any], connections: list[Connection], life: tuple[Connection, Connection], owner: int) -> None:
    """Ends workers at once, and leaves nothing of them."""
    if owner != os.getpid():
        return
    for each in life:
        each.close()
    for process in processes:
        if process.is_alive():
            process.kill()
    for process in processes:
        process.join()
    for connection in connections:
        connection.close()
    # Not closed, but dropped: multiprocessing may be looking at them while the garbage collector comes here.
    processes.clear()


def _how_ended(code: int | None) -> str:
    """An exit code of multiprocessing in words."""
    if code is None:
        return "ended"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
