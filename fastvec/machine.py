"""What this machine can run and what is used of it: instruction set, mathematics, cores."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fastvec._core import math_difference, targets


class Difference(NamedTuple):
    """Where two implementations of a function first have other bits.

    Attributes:
        function: ``"sin"``, ``"cos"``, ``"square"`` and so on.
        x: the argument.
        result: the result of the one.
        libm: the C library's result.
    """

    function: str
    x: float
    result: float
    libm: float


@functools.cache
def vector_difference(target: str) -> Difference | None:
    """Where a target's own functions first have other bits than the C library's; None if nowhere.

    Args:
        target: an instruction set that runs here.
    """
    found = math_difference(target)
    return None if found is None else Difference(*found)


@functools.cache
def numpy_difference() -> Difference | None:
    """Where NumPy's scalar functions, which Gymnasium's envs call, first have other bits than the C library's; None if
    nowhere. A look at some hundred arguments of each; the tests take millions."""
    functions: dict[str, tuple[Callable[[np.float64], np.float64], Callable[[float], float]]] = {
        "sin": (np.sin, math.sin),
        "cos": (np.cos, math.cos),
        "square": (lambda x: x**2, lambda x: math.pow(x, 2.0)),
    }
    for name, (numpys, libms) in functions.items():
        for x in np.ldexp(np.arange(1.0, 2.0, 0.06180339887), np.arange(-12, 5)):
            for signed in (x, -x):
                result, libm = float(numpys(signed)), libms(float(signed))
                if result != libm:
                    return Difference(name, float(signed), result, libm)
    return None


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
        ``"vector"``, faster, if the target has functions of its own and they give the bits of the C library and of
        NumPy on this machine; else ``"libm"``, the C library, which FASTVEC_MATH=libm asks for as well.

    Raises:
        ValueError: if FASTVEC_MATH is anything but libm or nothing.
    """
    asked = os.environ.get("FASTVEC_MATH", "")
    if asked not in ("", "libm"):
        raise ValueError(f"FASTVEC_MATH is {asked!r}: expected 'libm', or nothing for what is fastest")
    if asked or target == "baseline" or vector_difference(target) or numpy_difference():
        return "libm"
    return "vector"


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
    mathematics = chosen_math(target)
    if os.environ.get("FASTVEC_ISA"):
        target_reason = "FASTVEC_ISA asks for it"
    else:
        target_reason = "the best that this CPU runs of " + ", ".join(targets())
    if mathematics == "vector":
        math_reason = "fastvec's own sines, cosines and squares give the bits of the C library and of NumPy here"
    elif os.environ.get("FASTVEC_MATH"):
        math_reason = "FASTVEC_MATH asks for it"
    elif target == "baseline":
        math_reason = "this instruction set has no vector functions"
    else:
        found = vector_difference(target) or numpy_difference()
        assert found is not None
        whose = "fastvec's own" if vector_difference(target) else "NumPy"
        call = f"{found.function}({found.x!r})"
        math_reason = f"{call} is {found.libm!r} in the C library and {found.result!r} in {whose}"
    return {
        "instruction_set": target,
        "instruction_set_reason": target_reason,
        "math": mathematics,
        "math_reason": math_reason,
        "usable_cores": usable_cores(),
        "num_threads": default_num_threads(),
    }


def show_config() -> None:
    """Prints which instruction set, mathematics and threads envs made now would use, and why."""
    for name, value in config().items():
        print(f"{name.replace('_', ' ')}: {value}")
