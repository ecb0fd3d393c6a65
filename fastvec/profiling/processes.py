"""What an env's processes use: CPU time and peak memory of this one and of its workers."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fastvec.backends import starting


@contextmanager
def new_workers() -> Iterator[list[int]]:
    """A list that has, at the end, the processes that were started meanwhile, by multiprocessing or as our workers."""
    before = set(_running())
    started: list[int] = []
    yield started
    started += [pid for pid in _running() if pid not in before]


def _running() -> list[int]:
    children = [process.pid for process in multiprocessing.active_children()]
    return [pid for pid in children if pid is not None] + starting.running()


def cpu_seconds(workers: Sequence[int]) -> float:
    """CPU time of this process, all threads, and of these.

    Raises:
        OSError: for a worker that has ended, and for workers where the system is not Linux.
    """
    spent = time.process_time()
    for pid in workers:
        if sys.platform != "linux":
            raise OSError("the CPU time of another process is read on Linux only")
        # The clock of a process as clock_getcpuclockid makes it: the number's complement, and 2 for the scheduler's.
        spent += time.clock_gettime((~pid << 3) | 2)
    return spent


def peak_memory(workers: Sequence[int]) -> int:
    """Bytes that this process had in memory at most, and these, each added up: pages that they share count in each.

    Raises:
        OSError: for a worker that has ended, and for workers where there is no /proc.
    """
    if not Path("/proc/self/status").exists() and not workers:
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
    return _peak_of("self") + sum(map(_peak_of, workers))


def _peak_of(pid: int | str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"process {pid} has no VmHWM in /proc: it has ended")
