"""Prints the coefficients of csrc/sincos32.h: polynomials with the least greatest relative error, by Remez' algorithm.

Run by hand, and only if a polynomial is to get another degree or range:
`python csrc/tools/fit_sincos32.py` (needs mpmath).
"""

from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mpf

Function = Callable[[mpf], mpf]

LIMIT = mpf("0.79")  # pi/4, and room for the rounding of reduced arguments
POINTS = 4000  # where an error is looked at


def fit(function: Function, weight: Function, degree: int) -> tuple[list[mpf], mpf]:
    """Fits a polynomial in z on (0, LIMIT^2].

    Args:
        function: of z, what is approximated.
        weight: of z, what the error is multiplied with.
        degree: of the polynomial.

    Returns:
        (coefficients, the constant one first; the greatest weighted error).
    """
    highest = LIMIT**2
    grid = [highest * (i + 1) / POINTS for i in range(POINTS)]
    count = degree + 2
    at = [highest * (1 + mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * count))) / 2 for i in reversed(range(count))]
    while True:
        # The polynomial whose weighted error is the same at all these places, with signs that alternate.
        rows = [[*(z**power for power in range(degree + 1)), (-1) ** i / weight(z)] for i, z in enumerate(at)]
        solution = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([function(z) for z in at]))
        coefficients, level = list(solution)[:-1], abs(solution[degree + 1])
        errors = [(function(z) - mpmath.polyval(coefficients[::-1], z)) * weight(z) for z in grid]
        # Next, where the error is greatest between two changes of its sign.
        at, begin = [], 0
        for end in range(1, POINTS + 1):
            if end == POINTS or (errors[end] > 0) != (errors[begin] > 0):
                at.append(grid[max(range(begin, end), key=lambda i: abs(errors[i]))])
                begin = end
        greatest = max(map(abs, errors))
        if greatest < level * mpf("1.0001"):
            return coefficients, greatest


def show(name: str, coefficients: list[mpf], error: mpf) -> None:
    """Prints the coefficients rounded to float32, and the error in units in the last place of a number below 1."""
    print(f"{name}: greatest error {mpmath.nstr(error * 2**24, 2)} units")
    for coefficient in coefficients:
        rounded = float(np.float32(float(coefficient)))
        print(f"    {rounded.hex()}  {rounded!r}")


def main() -> None:
    """Fits both: sin(r) = r + r z p(z) and cos(r) = 1 - z/2 + z^2 p(z), where z is r^2."""
    mpmath.mp.prec = 200
    root = mpmath.sqrt

    def sine(z: mpf) -> mpf:
        return (mpmath.sin(root(z)) / root(z) - 1) / z

    def cosine(z: mpf) -> mpf:
        return (mpmath.cos(root(z)) - 1 + z / 2) / z**2

    show("sine", *fit(sine, lambda z: z * root(z) / mpmath.sin(root(z)), 2))
    show("cosine", *fit(cosine, lambda z: z**2 / mpmath.cos(root(z)), 2))


if __name__ == "__main__":
    main()
