"""What this machine can run and what is used of it: instruction set, mathematics, cores."""

from __future__ import annotations

import functools
import os

from fastvec._core import math_difference, targets

_difference = functools.cache(math_difference)


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


def chosen_math(target: str) -> str:
    """Where a target's sines, cosines and squares come from.

    Args:
        target: an instruction set that runs here.

    Returns:
        ``"vector"``, faster, if the target has functions of its own and they give the C library's bits on this machine;
        else ``"libm"``, the C library, which FASTVEC_MATH=libm asks for as well.

    Raises:
        ValueError: if FASTVEC_MATH is anything but libm or nothing.
    """
    asked = os.environ.get("FASTVEC_MATH", "")
    if asked not in ("", "libm"):
        raise ValueError(f"FASTVEC_MATH is {asked!r}: expected 'libm', or nothing for what is fastest")
    return "libm" if asked or target == "baseline" or _difference(target) is not None else "vector"


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


def config() -> dict[str, object]:
    """What envs made now would use, and why.

    Returns:
        instruction_set, instruction_set_reason, math ("vector" or "libm"), math_reason, usable_cores, num_threads.
    """
    target = chosen_target()
    math = chosen_math(target)
    if os.environ.get("FASTVEC_ISA"):
        target_reason = "FASTVEC_ISA asks for it"
    else:
        target_reason = "the best that this CPU runs of " + ", ".join(targets())
    if math == "vector":
        math_reason = "fastvec's own sines, cosines and squares give the C library's bits here"
    elif os.environ.get("FASTVEC_MATH"):
        math_reason = "FASTVEC_MATH asks for it"
    elif target == "baseline":
        math_reason = "this instruction set has no vector functions"
    else:
        name, x, ours, libm = _difference(target) or ("", 0.0, 0.0, 0.0)
        math_reason = f"{name}({x!r}) is {libm!r} in the C library and {ours!r} in fastvec's own"
    return {
        "instruction_set": target,
        "instruction_set_reason": target_reason,
        "math": math,
        "math_reason": math_reason,
        "usable_cores": usable_cores(),
        "num_threads": default_num_threads(),
    }


def show_config() -> None:
    """Prints which instruction set, mathematics and threads envs made now would use, and why."""
    for name, value in config().items():
        print(f"{name.replace('_', ' ')}: {value}")
