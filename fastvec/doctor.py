"""What is installed, how it was built, whether it gives Gymnasium's bits here: for `fastvec doctor` and bug reports."""

from __future__ import annotations

import json
import platform
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np

import fastvec
from fastvec import machine, registry
from fastvec._core import build_info, precisions
from fastvec.parity import first_difference
from fastvec.terminal import Column, Row, print_table


def report() -> dict[str, Any]:
    """Versions, machine, build and, for each native id, None or the first difference from Gymnasium.

    Takes about a second: it steps every env beside Gymnasium's.
    """
    return {
        "fastvec": fastvec.__version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "gymnasium": gymnasium.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "c_library": " ".join(platform.libc_ver()).strip() or "unknown",
        **build_info(),
        **machine.config(),
        "precision": f"float64; float32, if make() is asked for it, has other bits: {_with_float32()}",
        "differences": _differences(),
    }


def _with_float32() -> str:
    return ", ".join(id for id, native in registry.NATIVE_ENVS.items() if "float32" in precisions(native.kernel))


def _differences() -> dict[str, str | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium's, of ids that have a successor
        return {id: first_difference(id) for id in registry.NATIVE_ENVS}


def run(as_json: bool) -> int:
    """Prints the report.

    Returns:
        The exit code: 0 if every env gives Gymnasium's bits, 1 if one does not.
    """
    found = report()
    differences = found["differences"]
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        facts = [Row((name.replace("_", " "), str(value))) for name, value in found.items() if name != "differences"]
        parity = [
            Row((id, difference or "same bits as Gymnasium"), "normal" if difference is None else "strong")
            for id, difference in differences.items()
        ]
        print_table("fastvec doctor", (Column("what"), Column("found", wraps=True)), (facts, parity))
    return 1 if any(differences.values()) else 0
