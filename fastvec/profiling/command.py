"""The command `fastvec profile`: what is asked for, progress, tables and files."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import gymnasium

from fastvec import registry, terminal
from fastvec.contenders import Source, is_native
from fastvec.profiling.planning import checked_request, plan_of
from fastvec.profiling.profile import measured


def source_of(text: str) -> Source:
    """What an argument names: an id, or with a colon a class or function in a module, or an id that a module registers.

    Raises:
        ValueError: if it is none of these; the message says what to do.
    """
    if is_native(text) or text in gymnasium.registry:
        return text
    module, _, name = text.rpartition(":")
    if not module:
        try:
            return registry.find(text).id
        except gymnasium.error.Error as error:
            raise ValueError(f"{error}; expected an id, or MODULE:CLASS for an env of your own") from None
    if os.getcwd() not in sys.path:  # as `python -m` has it, and a command has not
        sys.path.insert(0, os.getcwd())
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        raise ValueError(f"{text!r}: importing {module} failed with {type(error).__name__}: {error}") from None
    made: Any = getattr(imported, name, None)
    if callable(made):
        found: Source = made
        return found
    if name in gymnasium.registry:
        return gymnasium.spec(name)  # which other processes need not have registered
    raise ValueError(f"{text!r}: {module} has no class or function {name!r}, and registers no id of that name")


def run(source: str, json_file: Path | None, html_file: Path | None, **asked: Any) -> int:
    """Measures, prints and writes. Returns the exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    try:
        plan = plan_of(checked_request(source_of(source), **asked))
    except (ValueError, TypeError, ImportError, RuntimeError, gymnasium.error.Error) as error:
        print(f"fastvec profile: {error}", file=sys.stderr)
        return 2
    try:
        with terminal.progress(plan.planned) as bar:
            plan.progress = bar
            found = measured(plan)
    except RuntimeError as error:
        traceback.print_exception(error.__cause__)
        print(f"fastvec profile: {error}", file=sys.stderr)
        return 2
    if found.configurations:
        found.print()
        if json_file is not None:
            json_file.write_text(json.dumps(found.to_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        if html_file is not None:
            html_file.write_text(found.to_html(), encoding="utf-8")
    if found.interrupted:
        print("fastvec profile: interrupted; what was not finished is not shown", file=sys.stderr)
        return 130
    return 0
