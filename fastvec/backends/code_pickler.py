"""Functions and classes as bytes for a worker: by name where it can import them, and otherwise by value.

cloudpickle goes by value for what is in ``__main__``, and for what stands in no module. Code may also be in a module
that only this process has: of a test suite that pytest imports by path, for one. That goes by value here, too."""

from __future__ import annotations

import io
import os
import sys
import threading
import types
from importlib.machinery import ModuleSpec
from typing import Any

import cloudpickle

_registering = threading.Lock()  # cloudpickle has one registry for all threads


def dumps(value: Any) -> bytes:
    """As ``cloudpickle.dumps``.

    Raises:
        Exception: what pickle raises for what cannot be.
    """
    file = io.BytesIO()
    pickler = _CodePickler(file)
    with _registering:
        try:
            pickler.dump(value)
        finally:
            for module in pickler.by_value:
                cloudpickle.unregister_pickle_by_value(module)
    return file.getvalue()


class _CodePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Tells cloudpickle which modules a worker cannot import, as they come up."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.by_value: list[types.ModuleType] = []
        self._seen: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, types.FunctionType)):
            self._look_at(obj.__module__)
        elif isinstance(obj, types.ModuleType):
            self._look_at(obj.__name__)
        return super().reducer_override(obj)

    def _look_at(self, name: str | None) -> None:
        if name in self._seen or name not in sys.modules or name == "__main__":
            return
        self._seen.add(name)
        if not _can_be_imported(name) and name not in cloudpickle.list_registry_pickle_by_value():
            module = sys.modules[name]
            cloudpickle.register_pickle_by_value(module)
            self.by_value.append(module)


def _can_be_imported(name: str) -> bool:
    """Whether a new process with this one's ``sys.path`` finds this module, which is here already, and not another."""
    path: Any = None
    spec = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = _found(".".join(parts[:end]), path)
        if spec is None:
            return False
        path = spec.submodule_search_locations or []
    own = getattr(sys.modules[name], "__file__", None)
    if spec is None or not spec.has_location or own is None or spec.origin is None:
        return True
    return bool(os.path.realpath(spec.origin) == os.path.realpath(own))


def _found(name: str, path: Any) -> ModuleSpec | None:
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None
