"""The page that --html writes: one file without a network, of charts and tables, with its data in it as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from fastvec.figures import in_bytes, in_time, in_words
from fastvec.profiling.charts import Bar, Point, Series, lines, plain, stacked
from fastvec.profiling.report import policy_lines, range_of, sentences, title_of, title_of_one, training_rows
from fastvec.profiling.split import PARTS

STYLE = """
:root { color-scheme: light dark; --back: #fbfbfa; --card: #fff; --ink: #1d2126; --soft: #69717b; --rule: #e3e5e8;
  --c0: #2463c5; --c1: #d9730d; --c2: #1a8a5c; --c3: #a03ba8; --c4: #b08800; --c5: #c2334d;
  --c6: #168aa5; --c7: #6b6f76; --c8: #7a4b2b; --c9: #5b6b1e; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --card: #1c2026; --ink: #e6e8eb; --soft: #98a1ac;
  --rule: #2e343c; --c0: #6ea2f5; --c1: #f2a057; --c2: #57c795; --c3: #d58adb; --c4: #dfbf4e; --c5: #f07f93;
  --c6: #5fc8df; --c7: #a5abb4; --c8: #c9966f; --c9: #b3c46a; } }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 820px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 16px; margin: 0 0 8px; }
p { margin: 6px 0; } .soft, .note { color: var(--soft); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 16px 20px;
  margin-top: 16px; }
section.answer { border-left: 5px solid var(--c2); } .answer strong { font-size: 19px; }
.warning { border-left: 5px solid var(--c1); }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .tick, svg .axis { fill: var(--soft); }
.grid { stroke: var(--rule); } .line { fill: none; stroke-width: 2; } .band { fill-opacity: .16; stroke-opacity: .25; }
.legend { font-size: 13px; margin: 0 0 6px; } .legend span { margin-right: 16px; white-space: nowrap; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: right; white-space: nowrap; padding: 3px 8px; border-bottom: 1px solid var(--rule);
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; } th.text, td.text { text-align: left; }
tr.chosen td { font-weight: 650; color: var(--c2); }
"""

PART_COLOURS = dict(zip(PARTS, ("var(--c2)", "var(--c1)", "var(--c5)", "var(--c0)", "var(--c7)"), strict=True))


def page(title: str, subtitle: str, sections: Sequence[str], data: dict[str, Any]) -> str:
    """A whole page.

    Args:
        title, subtitle: plain text.
        sections: HTML.
        data: what the page shows, to be read back from its script of type application/json.
    """
    packed = json.dumps(data, allow_nan=False).replace("<", "\\u003c")  # a text in it must not end the script
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - fastvec</title><style>{STYLE}</style></head>\n"
        f'<body><main><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p>\n'
        + "\n".join(sections)
        + f'\n</main><script type="application/json" id="data">{packed}</script></body></html>\n'
    )


def section(heading: str, body: str, note: str = "", kind: str = "") -> str:
    """One card of the page; ``body`` is HTML, heading and note are plain text."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="{kind}"><h2>{escape(heading)}</h2>{body}{below}</section>'


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 0, chosen: int | None = None) -> str:
    """A table of plain texts, of which the first ``texts`` columns are set flush left."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="text"' if place < texts else "" for place in range(len(cells))]
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))

    body = "".join(
        f"<tr{' class=chosen' if place == chosen else ''}>{line(row, 'td')}</tr>" for place, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><tr>{line(headings, "th")}</tr>{body}</table></div>'


def profile_page(profile: dict[str, Any]) -> str:
    """The page of a profile, from what ``Profile.to_json`` gives."""
    configurations = profile["configurations"]
    recommendation = profile["recommendation"]
    sections = []
    if recommendation is not None:
        answer, *others = sentences(recommendation)
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in others)
        sections.append(section("Recommended", f"<p><strong>{escape(answer)}</strong></p>{said}", kind="answer"))
    warning = (profile["diversity"] or {}).get("warning")
    if warning:
        sections.append(section("More lanes may add nothing", f"<p>{escape(warning)}</p>", kind="warning"))
    sections.append(
        section(
            "Env-steps per second against n",
            lines(_speeds(configurations), "number of lanes (n)", "env-steps per second"),
            "Medians over rounds, with bootstrap 95 % intervals as bands. Both axes are logarithmic.",
        )
    )
    sections.append(
        section(
            "Where the time of a batch step goes",
            stacked([_split_bar(one) for one in configurations], PART_COLOURS, "time split"),
            "env: in the envs. ipc: to workers and back. wait: for the slowest worker. policy: inference. "
            "python: the rest.",
        )
    )
    sections.append(
        section(
            "Peak memory",
            plain([_memory_bar(one) for one in configurations], "peak memory"),
            "Of a process that does nothing else, and of its workers. Pages that they share count in each.",
        )
    )
    if profile["policy"]["inference"]:
        rows = policy_lines(profile["policy"])
        sections.append(
            section(
                f"Inference: {profile['policy']['name']}",
                table(("n", "a batch", "95 % interval", "n t(1) / t(n)"), rows),
                "The last column is what one batch of n saves over n batches of one.",
            )
        )
    sections.append(section("All configurations", _table_of(configurations, recommendation)))
    if profile["training"]:
        rows = training_rows(profile["training"])
        sections.append(
            section("Training", table(("n", "rollout", "seconds", "final return", "variance over seeds"), rows))
        )
    notes = "".join(f"<p>{escape(note)}</p>" for note in profile["notes"])
    sections.append(section("How far to trust this", notes))
    return page(profile["source"], title_of(profile), sections, profile)


def bench_page(race: dict[str, Any], title: str) -> str:
    """The page of a race, from what bench.as_json gives."""
    ran = [result for result in race["results"] if "sps" in result]
    names = dict.fromkeys(result["title"] for result in ran)
    series = []
    for name in names:
        points = []
        for result in sorted((one for one in ran if one["title"] == name), key=lambda one: one["n"]):
            sps = result["sps"]
            said = f"{name}, n = {result['n']}: {in_words(sps['median'])} ({range_of(sps)})"
            points.append(Point(result["n"], sps["median"], sps["low"], sps["high"], said))
        series.append(Series(name, tuple(points)))
    rows = []
    for result in race["results"]:
        sps, ratio = result.get("sps"), result.get("ratio")
        if sps is None:
            rows.append((result["title"], str(result["n"]), "-", result["absent"], ""))
            continue
        times = "" if ratio is None else f"{ratio['median']:.3g} x"
        rows.append((result["title"], str(result["n"]), in_words(sps["median"]), range_of(sps), times))
    return page(
        race["settings"]["env"],
        title,
        [
            section(
                "Env-steps per second against n",
                lines(series, "number of envs (n)", "env-steps per second"),
                "Medians over rounds, with quartiles as bands. Both axes are logarithmic.",
            ),
            section("All results", table(("contender", "n", "env-steps/s", "quartiles", "fastvec is"), rows, texts=1)),
        ],
        race,
    )


def _speeds(configurations: Sequence[dict[str, Any]]) -> list[Series]:
    """A line for each backend; where several numbers of workers were tried, for as many as cores and as lanes."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for one in configurations:
        by_name.setdefault(_line_of(one), []).append(one)
    series = []
    for name, members in by_name.items():
        points = [
            Point(
                one["n"],
                one["sps"]["median"],
                one["sps"]["low"],
                one["sps"]["high"],
                f"{title_of_one(one)}, n = {one['n']}: {in_words(one['sps']['median'])} ({range_of(one['sps'])})",
            )
            for one in sorted(members, key=lambda one: int(one["n"]))
        ]
        series.append(Series(name, tuple(points)))
    return series


def _line_of(one: dict[str, Any]) -> str:
    if one["backend"] != "process":
        return title_of_one(one)
    return "process, a worker for each lane" if one["workers"] == one["n"] > 2 else "process"


def _split_bar(one: dict[str, Any]) -> Bar:
    split = one["split_us"]
    whole = sum(split.values())
    parts = tuple(
        (part, us, f"{part}: {in_time(us / 1e6)}, {us / whole:.0%}" if whole else part) for part, us in split.items()
    )
    return Bar(f"{title_of_one(one)}, n = {one['n']}", in_time(whole / 1e6), parts)


def _memory_bar(one: dict[str, Any]) -> Bar:
    label, size = f"{title_of_one(one)}, n = {one['n']}", one["peak_rss_bytes"]
    if size is None:
        return Bar(label, "not known", (("memory", 0.0, label),))
    return Bar(label, in_bytes(size), (("memory", size, f"{label}: {in_bytes(size)}"),))


def _table_of(configurations: Sequence[dict[str, Any]], recommendation: dict[str, Any] | None) -> str:
    rows, chosen = [], None
    for place, one in enumerate(configurations):
        if recommendation is not None and all(one[key] == recommendation[key] for key in ("backend", "n", "workers")):
            chosen = place
        cpu, memory, start = one["cpu_percent"], one["peak_rss_bytes"], one["startup_s"]
        rows.append(
            (
                title_of_one(one),
                str(one["n"]),
                in_words(one["sps"]["median"]),
                range_of(one["sps"]),
                *(f"{one['split_us'][part]:,.1f}" for part in PARTS),
                "-" if cpu is None else f"{cpu:.0f}",
                "-" if memory is None else in_bytes(memory),
                "-" if start is None else in_time(start),
            )
        )
    headings = (
        "backend",
        "n",
        "env-steps/s",
        "95 % interval",
        *(f"{part} us" for part in PARTS),
        "CPU %",
        "memory",
        "start",
    )
    return table(headings, rows, texts=1, chosen=chosen)
