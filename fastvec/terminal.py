"""Tables and progress in a terminal: with rich if it is installed, as plain text if not."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Column:
    """A heading; whether what is below it are figures, which are set flush right; and whether it may be broken."""

    heading: str
    figures: bool = False
    wraps: bool = False


@dataclass(frozen=True)
class Row:
    """One text for each column, and how much it matters: "strong", "normal" or "faint"."""

    cells: tuple[str, ...]
    weight: str = "normal"


class Progress(Protocol):
    """What :func:`progress` gives."""

    def describe(self, text: str) -> None:
        """Says what is being done."""

    def advance(self, steps: int) -> None:
        """Says that so many more steps are done."""


def has_rich() -> bool:
    """Whether rich can be imported."""
    try:
        return importlib.util.find_spec("rich") is not None
    except ValueError:
        return False


def print_table(title: str, columns: Sequence[Column], sections: Sequence[Sequence[Row]]) -> None:
    """Prints one table to the standard output, its sections set apart from each other."""
    if has_rich():
        _print_rich_table(title, columns, sections)
    else:
        _print_plain_table(title, columns, sections)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A bar on the standard error that fills up in ``total`` steps and then vanishes.

    It is drawn inside of ``advance`` and ``describe`` only: a thread of its own would disturb what is being measured.
    """
    if not has_rich():
        yield _PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichBar

    bar = RichBar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        expand=True,
    )
    with bar:
        yield _RichProgress(bar, bar.add_task("", total=total))


class _RichProgress:
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar = bar
        self._task = task

    def describe(self, text: str) -> None:
        self._bar.update(self._task, description=text, refresh=True)

    def advance(self, steps: int) -> None:
        self._bar.update(self._task, advance=steps, refresh=True)


class _PlainProgress:
    def describe(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def advance(self, steps: int) -> None:
        pass


def _print_rich_table(title: str, columns: Sequence[Column], sections: Sequence[Sequence[Row]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    styles = {"strong": "bold green", "normal": "", "faint": "dim"}
    table = Table(title=title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.figures else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for section in sections:
        for row in section:
            table.add_row(*row.cells, style=styles[row.weight])
        table.add_section()
    Console().print(table)


def _print_plain_table(title: str, columns: Sequence[Column], sections: Sequence[Sequence[Row]]) -> None:
    lines = [tuple(column.heading for column in columns), *(row.cells for section in sections for row in section)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]

    def laid_out(cells: Sequence[str]) -> str:
        texts = [
            cell.rjust(width) if column.figures else cell.ljust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        ]
        return "  ".join(texts).rstrip()

    print(title, "", laid_out(lines[0]), sep="\n")
    for section in sections:
        print("-" * (sum(widths) + 2 * (len(widths) - 1)))
        for row in section:
            print(laid_out(row.cells))
