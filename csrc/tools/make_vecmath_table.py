"""Writes csrc/vecmath_table.h: sine and cosine at the multiples of 1/128, each as a sum of two doubles.

Run by hand, and only if the table's layout changes: `python csrc/tools/make_vecmath_table.py` (needs mpmath).
"""

from pathlib import Path

import mpmath

STEPS_PER_UNIT = 128
LAST_STEP = 129  # no reduced argument rounds to a later multiple
ROWS = 256  # an index is eight bits of a double, and of an argument out of range it may be any eight

HEADER = """\
/* Sine and cosine of k/128 for vecmath.h, as a double and the double nearest to the rest. Made by
 * tools/make_vecmath_table.py. Rows after the last are zero: read by lanes out of range, whose result is not used. */
#ifndef FV_VECMATH_TABLE_H
#define FV_VECMATH_TABLE_H

/* Sine, rest, cosine, rest: the numbers of one k are neighbours, so that a lane finds them in one cache line. */
"""


def split(value: mpmath.mpf) -> tuple[float, float]:
    """Returns the double nearest to `value` and the double nearest to what it leaves."""
    head = mpmath.fadd(value, 0, prec=53, rounding="n")
    rest = mpmath.fadd(value - head, 0, prec=53, rounding="n")
    return float(head), float(rest)


def table() -> str:
    """Returns the text of the header."""
    lines = [HEADER, f"static const double fv_sincos_table[{ROWS} * 4] = {{\n"]
    with mpmath.workprec(300):
        for k in range(LAST_STEP + 1):
            angle = mpmath.mpf(k) / STEPS_PER_UNIT
            numbers = (*split(mpmath.sin(angle)), *split(mpmath.cos(angle)))
            lines.append(f"    {', '.join(number.hex() for number in numbers)},\n")
    lines.append("};\n\n#endif\n")
    return "".join(lines)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "vecmath_table.h").write_text(table(), encoding="ascii")
