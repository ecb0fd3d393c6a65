"""What tests look at to see that nothing is left: processes, and the files of this one."""

import os
import sys
import time
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def is_there(process):
    """Whether there is a process of that number, even a dead one that nobody has asked for."""
    return Path(f"/proc/{process}").exists() if sys.platform == "linux" else _answers(process)


def _answers(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(processes, seconds=30):
    end = time.monotonic() + seconds
    while any(map(is_there, processes)):
        assert time.monotonic() < end, f"{[each for each in processes if is_there(each)]} are still there"
        time.sleep(0.02)


def children():
    """The processes that this one has started itself and that are there."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


def files():
    return len(os.listdir("/proc/self/fd"))
