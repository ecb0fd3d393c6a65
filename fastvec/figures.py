"""Figures as tables show them: three digits, and a unit or letter.

The same in `fastvec bench`, `fastvec profile` and the pages that they write."""

from __future__ import annotations


def in_words(value: float) -> str:
    """A rate with three digits and its thousands or millions as a letter: 2.92 M."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size * 0.9995:
            return three_digits(value / size) + letter
    return three_digits(value) + "  "


def in_time(seconds: float) -> str:
    """Seconds with three digits and a unit: 1.25 ms."""
    for size, unit in ((1.0, " s"), (1e-3, " ms")):
        if seconds >= size * 0.9995:
            return three_digits(seconds / size) + unit
    return three_digits(seconds * 1e6) + " us"


def in_bytes(size: float) -> str:
    """Bytes in whole MB, or in GB with three digits."""
    return f"{three_digits(size / 1e9)} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def three_digits(value: float) -> str:
    """1.23, 12.3 or 123."""
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"
