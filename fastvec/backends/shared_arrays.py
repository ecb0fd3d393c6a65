"""Arrays in memory that processes share. It has no name in any file system, so that nothing can be left behind."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# What arrays begin at multiples of: a cache line, so that no two processes write to one for different arrays.
ALIGNMENT = 64

Plan = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]


class SharedArrays:
    """Arrays of zeros, laid out one after the other in one piece of memory.

    Attributes:
        arrays: the arrays, in the order of the plan.
        file: the descriptor by which another process maps the same memory, until :meth:`close_file`.
    """

    def __init__(self, plan: Plan, file: int | None = None) -> None:
        """Makes the memory for these shapes and dtypes, or maps that of a descriptor, which is closed at the end of it.

        Raises:
            MemoryError: if there is not so much.
        """
        offsets, size = [], 0
        for shape, dtype in plan:
            offsets.append(size)
            size += -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        size = max(size, ALIGNMENT)
        self.file = _anonymous_file(size) if file is None else file
        memory = mmap.mmap(self.file, size)
        self.arrays: list[npt.NDArray[Any]] = [
            np.ndarray(shape, dtype, memory, offset) for (shape, dtype), offset in zip(plan, offsets, strict=True)
        ]

    def __del__(self) -> None:
        # Who is dropped without being closed must not keep the descriptor.
        if hasattr(self, "file"):
            self.close_file()

    def close_file(self) -> None:
        """Closes the descriptor; the memory stays as long as an array of it."""
        if self.file != -1:
            os.close(self.file)
            self.file = -1


def _anonymous_file(size: int) -> int:
    """The descriptor of a file of zeros without a name, all of whose memory is there: else a write to it would kill."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("fastvec", os.MFD_CLOEXEC)
    else:
        file, path = tempfile.mkstemp(prefix="fastvec-")
        os.unlink(path)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    except OSError as error:
        os.close(file)
        raise MemoryError(
            f"there are no {size:,} bytes of memory to share with workers ({error.strerror}): use fewer lanes, "
            f"smaller observations, or shared_memory=False"
        ) from error
    return file
