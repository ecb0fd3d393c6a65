"""How worker processes are started: by multiprocessing, where it has to be told what it does not see by itself."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing import process as processes
from typing import Any

_starting = threading.Lock()
_started: weakref.WeakSet[Any] = weakref.WeakSet()


def checked_context(context: str | None) -> str:
    """The start method: what was asked for, else forkserver where there is one.

    Raises:
        ValueError: for one that there is not.
        RuntimeError: in a process that may not start others.
    """
    offered = multiprocessing.get_all_start_methods()
    if context is not None and context not in offered:
        raise ValueError(f"context is {context!r}: expected one of {', '.join(map(repr, offered))}")
    return context or ("forkserver" if "forkserver" in offered else "spawn")


def may_start() -> bool:
    """Whether this process may start others: daemonic ones, as those of multiprocessing.Pool, may not."""
    return not multiprocessing.current_process().daemon


def start(context: str, target: Callable[..., None], args: tuple[Any, ...], name: str) -> Any:
    """Starts a process.

    Multiprocessing does not know of it any more when it runs: it would wait for it at the end, or, in a fork of this
    process that ends, kill it. Who starts it has to end it.

    Raises:
        RuntimeError: in a process that may not start others.
    """
    if not may_start():
        raise RuntimeError(
            f"{multiprocessing.current_process().name} is a daemonic process, which may start no others: use "
            f"backend='serial', or start it with daemon=False"
        )
    process = multiprocessing.get_context(context).Process(target=target, args=args, name=name, daemon=False)  # type: ignore[attr-defined]
    with _starting, _main_only_where_there_is_a_file():
        if context == "forkserver":
            _use_forkserver()
        # A worker must not die of Ctrl-C before it can say that it ignores it; it begins with what is blocked here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    getattr(processes, "_children", set()).discard(process)
    _started.add(process)
    return process


def running() -> list[int]:
    """The numbers of the processes that this one has started here and that run."""
    return [process.pid for process in _started if process._parent_pid == os.getpid() and process.is_alive()]


def _use_forkserver() -> None:
    """Has the server that workers are forked from import this package, unless it runs or others have said what it does.

    Without that every worker imports NumPy and Gymnasium again.
    """
    server: Any = getattr(forkserver, "_forkserver", None)
    if getattr(server, "_forkserver_pid", 0) is None and getattr(server, "_preload_modules", []) == ["__main__"]:
        multiprocessing.get_context("forkserver").set_forkserver_preload(["__main__", "fastvec.backends.worker"])
    try:
        forkserver.ensure_running()
    except ChildProcessError:  # the server is of the process that this is a fork of
        os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = server._forkserver_address = server._forkserver_pid = None
        forkserver.ensure_running()


@contextlib.contextmanager
def _main_only_where_there_is_a_file() -> Iterator[None]:
    """Hides a main script that no worker could read, as of ``python -``: what it defines travels by value anyway."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or os.path.exists(path):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path
