"""What this machine can run and what is used of it: instruction set, cores."""

from __future__ import annotations

import os

from fastvec._core import targets


def chosen_target() -> str:
    """The instruction set that envs are made for: the best of this CPU, or what FASTVEC_ISA says.

    Raises:
        ValueError: if FASTVEC_ISA names none, or one that this CPU lacks.
    """
    runs_here = targets()
    asked = os.environ.get("FASTVEC_ISA", "")
    if not asked:
        return next(name for name, runs in runs_here.items() if runs)
    if asked not in runs_here:
        raise ValueError(f"FASTVEC_ISA is {asked!r}: expected one of {', '.join(runs_here)}, or nothing for the best")
    if not runs_here[asked]:
        usable = ", ".join(name for name, runs in runs_here.items() if runs)
        raise ValueError(f"FASTVEC_ISA is {asked!r}, which this CPU lacks: it runs {usable}")
    return asked


def usable_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def default_num_threads() -> int:
    """What FASTVEC_NUM_THREADS says, else 1.

    Raises:
        ValueError: if it says anything but an int from 1.
    """
    asked = os.environ.get("FASTVEC_NUM_THREADS", "1")
    if not (asked.isascii() and asked.isdigit() and int(asked) >= 1):
        raise ValueError(f"FASTVEC_NUM_THREADS is {asked!r}: expected an int from 1")
    return int(asked)
