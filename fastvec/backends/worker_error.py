"""WorkerError: what went wrong in a worker of the process backend, in lanes or in the worker as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class WorkerError(RuntimeError):
    """An env in a worker raised, or a worker ended or did not answer. Where there was an exception, it is the cause.

    Attributes:
        worker: the number of the worker.
        lanes: the lanes concerned: those whose envs raised, or all of the worker.
        results: what ``step`` would have returned, or ``reset``; None for other calls.
        valid: bool (num_envs,), the lanes whose rows in ``results`` are right; None where there are no results.
    """

    def __init__(self, message: str, worker: int, lanes: tuple[int, ...]) -> None:
        super().__init__(message)
        self.worker, self.lanes = worker, lanes
        self.results: Any = None
        self.valid: npt.NDArray[np.bool_] | None = None

    def __reduce__(self) -> Any:
        """For pickle, which would otherwise call it with the message alone."""
        return type(self), (str(self), self.worker, self.lanes), {"results": self.results, "valid": self.valid}
