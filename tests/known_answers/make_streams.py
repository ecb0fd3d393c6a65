"""Writes streams.txt: what NumPy's generators give for many seeds, for the tests of fastvec's own.

    python tests/known_answers/make_streams.py > tests/known_answers/streams.txt

Each seed has a block of lines, a word and its numbers, all in hexadecimal. Every line begins with a new generator:

    seed     the integer as little-endian 32-bit words, no zero word on top (but one for 0)
    next64   64-bit draws
    next32   32-bit draws
    double   random(), as the bits of the float64
    below    an exclusive bound and draws below it; several lines
    mixed    64-bit, 32-bit, 32-bit, double, 32-bit, below 10, and so on round: what each kind leaves to the others"""

from __future__ import annotations

import numpy as np

SEEDS = (
    *(0, 1, 2, 3, 42, 1000, 123456789),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 2**32),
    *(2**96 - 1, 2**96, 2**127, 2**128 - 1, 2**128, 2**128 + 1, 2**160, 2**200, 2**200 + 12345, 3**200),
)
BOUNDS = (1, 2, 3, 4, 10, 13, 300, 2**16, 2**31, 2**31 + 1, 3 * 2**30 + 1, 2**32 - 1)
DRAWS = 8
MIXED_ROUNDS = 4


class Draws:
    """The draws of one new generator, through NumPy's own C functions where it has no method for them."""

    def __init__(self, seed: int) -> None:
        self.bits = np.random.PCG64(np.random.SeedSequence(seed))
        self.generator = np.random.Generator(self.bits)

    def next64(self) -> int:
        return self.bits.ctypes.next_uint64(self.bits.ctypes.state_address)

    def next32(self) -> int:
        return self.bits.ctypes.next_uint32(self.bits.ctypes.state_address)

    def double(self) -> int:
        return int(np.float64(self.generator.random()).view(np.uint64))

    def below(self, bound: int) -> int:
        return int(self.generator.integers(0, bound))


def words_of(seed: int) -> list[int]:
    words = [seed & 0xFFFFFFFF]
    while seed := seed >> 32:
        words.append(seed & 0xFFFFFFFF)
    return words


def mixed(draws: Draws) -> list[int]:
    values = []
    for _ in range(MIXED_ROUNDS):
        values += [draws.next64(), draws.next32(), draws.next32(), draws.double(), draws.next32(), draws.below(10)]
    return values


def lines_of(seed: int) -> list[tuple[str, list[int]]]:
    """The block of one seed: words and their numbers."""
    lines = [("seed", words_of(seed))]
    for word in ("next64", "next32", "double"):
        draw = getattr(Draws(seed), word)
        lines.append((word, [draw() for _ in range(DRAWS)]))
    for bound in BOUNDS:
        draws = Draws(seed)
        lines.append(("below", [bound, *(draws.below(bound) for _ in range(DRAWS))]))
    lines.append(("mixed", mixed(Draws(seed))))
    return lines


if __name__ == "__main__":
    for seed in SEEDS:
        for word, values in lines_of(seed):
            print(word, *(f"{value:x}" for value in values))
