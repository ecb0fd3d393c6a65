"""What parent and workers of the process backend send each other through pipes, beside shared memory."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

try:
    from fastvec.backends import code_pickler
except ImportError:  # cloudpickle is not installed
    code_pickler = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Raised:
    """An exception that was raised in a worker.

    Attributes:
        text: its type and message.
        trace: its traceback as text, with its notes.
        pickled: the exception itself, if it can be pickled.
    """

    text: str
    trace: str
    pickled: bytes | None

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """What of an exception can travel."""
        try:
            pickled = pack(error)
            pickle.loads(pickled)  # many an exception can be pickled, and then not be made again
        except Exception:
            pickled = None
        text = traceback.format_exception_only(type(error), error)[0].strip()
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        for note in getattr(error, "__notes__", ()):
            if note not in trace:  # as before Python 3.11
                trace += f"{note}\n"
        return cls(text, trace, pickled)

    def exception(self) -> BaseException | None:
        """The exception, where it could be pickled."""
        try:
            return None if self.pickled is None else pickle.loads(self.pickled)
        except Exception:  # its module is only in the worker, for one
            return None


def pack(value: Any) -> bytes:
    """Pickles what goes often, or is made of what both sides have imported; functions and classes too, if need be.

    Raises:
        Exception: what pickle raises for what cannot be.
    """
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        if code_pickler is None:
            raise
        packed: bytes = code_pickler.dumps(value)
        return packed


def pack_code(value: Any, what: str) -> bytes:
    """Pickles functions and classes by value where they are in no module that a worker could import.

    Raises:
        TypeError: if it cannot be; the message says what to do.
    """
    try:
        packed: bytes = (pickle if code_pickler is None else code_pickler).dumps(value)
        return packed
    except Exception as error:
        way = (
            "install cloudpickle, which pickles functions and classes that were made anywhere"
            if code_pickler is None
            else "make what it holds in the env's constructor, or use backend='serial' or context='fork'"
        )
        raise TypeError(
            f"{what} cannot be sent to a worker process ({type(error).__name__}: {error}): {way}"
        ) from error


def unpack(packed: bytes) -> Any:
    """What :func:`pack` or :func:`pack_code` was given."""
    return pickle.loads(packed)
