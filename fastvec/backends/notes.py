"""Notes on exceptions: where an env raised, beside what it raised itself."""

from __future__ import annotations


def add_note(error: BaseException, note: str) -> None:
    """As ``BaseException.add_note`` of Python 3.11; before, ``__notes__`` has the note, but tracebacks do not."""
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
