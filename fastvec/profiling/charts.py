"""Charts as inline SVG, drawn by hand: lines with bands on logarithmic axes, stacked bars, bars.

Colours are CSS variables of page.py, so that one picture is right in light and in dark; hovering shows <title>s."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 44
LINE_HEIGHT = 340
ROW, LABEL, VALUE = 24, 190, 104


@dataclass(frozen=True)
class Point:
    """A median with its interval at some x, and what hovering says."""

    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True)
class Series:
    """One line: its name and its points from left to right."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Bar:
    """One row of bars: what stands before it, behind it, and its parts as (name, size, what hovering says)."""

    label: str
    value: str
    parts: tuple[tuple[str, float, str], ...]


def lines(series: Sequence[Series], x_name: str, y_name: str) -> str:
    """Medians as lines and intervals as bands, on logarithmic axes."""
    points = [point for one in series for point in one.points]
    if not points:
        return ""
    xs = sorted({point.x for point in points})
    left, right = math.log(xs[0]), math.log(xs[-1])
    bottom = math.log10(min(point.low for point in points)) - 0.08
    top = math.log10(max(point.high for point in points)) + 0.08
    width, height = WIDTH - LEFT - RIGHT, LINE_HEIGHT - TOP - BOTTOM

    def across(x: float) -> float:
        return LEFT + (width / 2 if right == left else 12 + (width - 24) * (math.log(x) - left) / (right - left))

    def down(y: float) -> float:
        return TOP + height * (top - math.log10(y)) / (top - bottom)

    drawn = [_begin(LINE_HEIGHT, f"{y_name} against {x_name}")]
    for tick in _ticks(bottom, top):
        y = down(tick)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="tick" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{in_short(tick)}</text>')
    for x in xs:
        drawn.append(
            f'<text class="tick" text-anchor="middle" x="{across(x):.1f}" y="{TOP + height + 18}">{x:g}</text>'
        )
    drawn.append(
        f'<text class="axis" text-anchor="end" x="{WIDTH - RIGHT}" y="{LINE_HEIGHT - 6}">{escape(x_name)}</text>'
    )
    for place, one in enumerate(series):
        if not one.points:
            continue
        colour = f"var(--c{place % 10})"
        upper = [f"{across(point.x):.1f},{down(point.high):.1f}" for point in one.points]
        lower = [f"{across(point.x):.1f},{down(point.low):.1f}" for point in reversed(one.points)]
        drawn.append(
            f'<polygon class="band" style="fill:{colour};stroke:{colour}" points="{" ".join(upper + lower)}"/>'
        )
        middle = " ".join(f"{across(point.x):.1f},{down(point.y):.1f}" for point in one.points)
        drawn.append(f'<polyline class="line" style="stroke:{colour}" points="{middle}"/>')
        for point in one.points:
            x = across(point.x)
            drawn.append(
                f'<g><title>{escape(point.title)}</title><line style="stroke:{colour}" x1="{x:.1f}" x2="{x:.1f}" '
                f'y1="{down(point.low):.1f}" y2="{down(point.high):.1f}"/>'
                f'<circle style="fill:{colour}" cx="{x:.1f}" cy="{down(point.y):.1f}" r="4"/></g>'
            )
    drawn.append("</svg>")
    return legend([(one.name, f"var(--c{place % 10})") for place, one in enumerate(series)]) + "".join(drawn)


def stacked(bars: Sequence[Bar], colours: dict[str, str], name: str) -> str:
    """Bars of equal length, each divided into its parts."""
    drawn = [_begin(ROW * len(bars) + 8, name)]
    room = WIDTH - LABEL - VALUE
    for place, bar in enumerate(bars):
        y, x = ROW * place + 4, float(LABEL)
        whole = sum(size for _, size, _ in bar.parts) or 1.0
        drawn.append(_label(bar.label, y))
        for part, size, title in bar.parts:
            length = room * size / whole
            if length > 0.05:
                drawn.append(
                    f'<rect style="fill:{colours[part]}" x="{x:.1f}" y="{y}" width="{length:.1f}" height="{ROW - 7}">'
                    f"<title>{escape(title)}</title></rect>"
                )
            x += length
        drawn.append(_value(bar.value, WIDTH - VALUE + 8, y))
    drawn.append("</svg>")
    return legend(list(colours.items())) + "".join(drawn)


def plain(bars: Sequence[Bar], name: str) -> str:
    """Bars as long as their one part is large."""
    largest = max((size for bar in bars for _, size, _ in bar.parts), default=1.0)
    drawn = [_begin(ROW * len(bars) + 8, name)]
    room = WIDTH - LABEL - VALUE
    for place, bar in enumerate(bars):
        y = ROW * place + 4
        drawn.append(_label(bar.label, y))
        for _, size, title in bar.parts:
            length = max(1.0, room * size / largest)
            drawn.append(
                f'<rect style="fill:var(--c0)" x="{LABEL}" y="{y}" width="{length:.1f}" height="{ROW - 7}" rx="2">'
                f"<title>{escape(title)}</title></rect>"
            )
            drawn.append(_value(bar.value, LABEL + length + 8, y))
    drawn.append("</svg>")
    return "".join(drawn)


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Names beside their colours."""
    items = "".join(f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in entries)
    return f'<p class="legend">{items}</p>'


def in_short(value: float) -> str:
    """A tick in as few signs as possible: 20k, 1M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _ticks(bottom: float, top: float) -> list[float]:
    """Round numbers between two powers of ten, closer together where the range is small."""
    steps = (1,) if top - bottom > 3 else (1, 3) if top - bottom > 1.4 else (1, 2, 5)
    powers = range(math.floor(bottom), math.ceil(top) + 1)
    return [step * 10.0**power for power in powers for step in steps if bottom <= math.log10(step * 10.0**power) <= top]


def _begin(height: int, name: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(name, quote=True)}">'


def _label(text: str, y: float) -> str:
    return f'<text class="label" text-anchor="end" x="{LABEL - 10}" y="{y + 13}">{escape(text)}</text>'


def _value(text: str, x: float, y: float) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y + 13}">{escape(text)}</text>'
