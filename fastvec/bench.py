"""The command `fastvec bench`: races at several n, then one table, and a JSON file if asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastvec import measure, terminal
from fastvec.contenders import CONTENDERS, NOT_INSTALLED, REFERENCE, SEED
from fastvec.figures import in_words, three_digits
from fastvec.measure import Result
from fastvec.terminal import Column, Row

COLUMNS = (
    Column("n", figures=True),
    Column("contender"),
    Column("env-steps/s", figures=True),
    Column("quartiles", figures=True, wraps=True),
    Column("fastvec is", figures=True),
)

MEANING = {
    "sps": "env-steps per second without NEXT_STEP reset rows: median, quartiles (low, high) and one sample a round",
    "ratio": "fastvec's sps over this contender's, taken round by round",
}


@dataclass(frozen=True)
class Settings:
    """What was asked for; the fields are the options of the command."""

    env: str
    n: tuple[int, ...]
    seconds: float
    rounds: int
    only: tuple[str, ...]


def run(settings: Settings, json_file: Path | None, html_file: Path | None = None) -> int:
    """Races, prints the table and writes the files. Returns the exit code: 130 if Ctrl-C ended it early."""
    # Asked before the race, which is itself a load.
    machine = measure.machine_facts()
    contenders = [CONTENDERS[name] for name in settings.only]
    results: list[Result] = []
    interrupted = False
    total = sum(measure.planned_slices(settings.env, n, settings.rounds, contenders) for n in settings.n)
    try:
        with terminal.progress(total) as bar:
            for n in settings.n:
                bar.describe(f"{settings.env}, n = {n}")
                results += measure.race(
                    settings.env,
                    n,
                    seconds=settings.seconds,
                    rounds=settings.rounds,
                    contenders=contenders,
                    advance=bar.advance,
                )
    except KeyboardInterrupt:
        interrupted = True
    if results:
        terminal.print_table(_title(settings, machine), COLUMNS, _sections(results))
        for note in notes(machine, results):
            print("", note, sep="\n")
    if json_file is not None and not interrupted:
        json_file.write_text(json.dumps(as_json(settings, machine, results), indent=2) + "\n")
    if html_file is not None and not interrupted:
        from fastvec.profiling.page import bench_page

        html_file.write_text(
            bench_page(as_json(settings, machine, results), _title(settings, machine)), encoding="utf-8"
        )
    if interrupted:
        print("fastvec bench: interrupted; what was not finished is not shown", file=sys.stderr)
        return 130
    return 0


def as_json(settings: Settings, machine: dict[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    """What ``--json`` writes: the machine, the settings, and a result, or why there is none, per n and contender."""
    return {
        "machine": machine,
        "settings": {
            "env": settings.env,
            "n": list(settings.n),
            "seconds": settings.seconds,
            "rounds": settings.rounds,
            "only": list(settings.only),
            "seed": SEED,
        },
        "meaning": MEANING,
        "results": [result.to_json() for result in results],
    }


def _title(settings: Settings, machine: dict[str, Any]) -> str:
    cores = f"{machine['cores']} core{'s' if machine['cores'] != 1 else ''}"
    return f"{settings.env}, random actions, {machine['cpu']} ({cores}), Python {machine['python']}"


def _sections(results: Sequence[Result]) -> list[list[Row]]:
    """The rows for each n, fastest first, then those that did not run."""
    sections = []
    for n in dict.fromkeys(result.n for result in results):
        speeds = [(result.sps.median, result) for result in results if result.n == n and result.sps is not None]
        ran = [result for _, result in sorted(speeds, key=lambda pair: -pair[0])]
        absent = [result for result in results if result.n == n and result.sps is None]
        sections.append([_row(result, first=place == 0) for place, result in enumerate(ran + absent)])
    return sections


def _row(result: Result, first: bool) -> Row:
    n = str(result.n) if first else ""
    if result.sps is None:
        return Row((n, result.contender.title, "-", result.absent or "", ""), "faint")
    title = result.contender.title
    threads = result.setting.get("num_threads")
    if threads is not None:
        title += f" ({threads} thread{'s' if threads != 1 else ''})"
    is_reference = result.contender.name == REFERENCE
    return Row(
        (
            n,
            title,
            in_words(result.sps.median),
            f"{in_words(result.sps.low)} to {in_words(result.sps.high)}",
            "" if result.ratio is None or is_reference else f"{three_digits(result.ratio.median)} x as fast",
        ),
        "strong" if is_reference else "normal",
    )


def notes(machine: dict[str, Any], results: Sequence[Result]) -> list[str]:
    """What a reader of the table should know: whether the machine was busy, and how to install who was missing."""
    said = []
    if machine["load_average"] > machine["cores"] / 2:
        said.append(
            f"The machine was busy before the race (load average {machine['load_average']:.1f}, "
            f"{machine['cores']} cores): those with a process per env suffer most."
        )
    missing = [result.contender for result in results if result.absent == NOT_INSTALLED]
    packages = [contender.package for contender in missing if contender.package is not None]
    if packages:
        said.append(f"To race those that are not installed: pip install {' '.join(dict.fromkeys(packages))}")
    return said
