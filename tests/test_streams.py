"""The lanes' random streams are NumPy's: known answers, seen through CartPole's resets, which draw four uniforms each.

tests/c/core_test.c reads the same file and tests every kind of draw on its own."""

import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

import fastvec

DIRECTORY = pathlib.Path(__file__).parent / "known_answers"


def read_blocks():
    """seed -> {word: the numbers of its last line} of streams.txt."""
    blocks = {}
    for line in (DIRECTORY / "streams.txt").read_text().splitlines():
        word, *numbers = line.split()
        values = [int(number, 16) for number in numbers]
        if word == "seed":
            block = blocks[sum(value << 32 * i for i, value in enumerate(values))] = {}
        block[word] = values
    return blocks


BLOCKS = read_blocks()


def doubles(seed):
    """The first draws of random() for a seed."""
    return [struct.unpack("<d", bits.to_bytes(8, "little"))[0] for bits in BLOCKS[seed]["double"]]


def as_reset(draws):
    """What CartPole makes of four draws: uniform in +-0.05, in float64, shown as float32."""
    return np.array([-0.05 + (0.05 - -0.05) * draw for draw in draws]).astype(np.float32)


def test_the_file_holds_the_seeds_that_matter():
    assert {0, 2**32 - 1, 2**32, 2**64, 2**127, 2**128, 2**200} <= set(BLOCKS)
    assert len(BLOCKS) > 20
    assert all(len(block["double"]) == 8 for block in BLOCKS.values())


def test_the_file_is_what_this_numpy_gives():
    made = subprocess.run(
        [sys.executable, str(DIRECTORY / "make_streams.py")], capture_output=True, text=True, check=True, timeout=120
    )
    assert made.stdout == (DIRECTORY / "streams.txt").read_text()


@pytest.mark.parametrize("seed", BLOCKS)
def test_two_resets_in_a_row(seed):
    env = fastvec.make("CartPole-v1")
    first, _ = env.reset(seed=seed)
    second, _ = env.reset()
    assert first[0].tobytes() == as_reset(doubles(seed)[:4]).tobytes()
    assert second[0].tobytes() == as_reset(doubles(seed)[4:]).tobytes()


def test_all_seeds_in_one_list():
    obs, _ = fastvec.make("CartPole-v1", n=len(BLOCKS)).reset(seed=list(BLOCKS))
    for row, seed in zip(obs, BLOCKS, strict=True):
        assert row.tobytes() == as_reset(doubles(seed)[:4]).tobytes()


@pytest.mark.parametrize("seed", [0, 2**32 - 2, 2**64 - 1, 2**128 - 1])
def test_an_int_counts_up_over_the_lanes(seed):
    """2**32 - 1 and 2**32, 2**64 - 1 and 2**64: the sum is a whole number, it does not wrap round."""
    obs, _ = fastvec.make("CartPole-v1", n=3).reset(seed=seed)
    for lane in range(3):
        if seed + lane in BLOCKS:
            assert obs[lane].tobytes() == as_reset(doubles(seed + lane)[:4]).tobytes()


def test_reset_rows_go_on_with_the_stream():
    """A reset that follows an end draws the next four numbers, whatever was played in between."""
    env = fastvec.make("CartPole-v1", max_episode_steps=3)
    env.reset(seed=0)
    for _ in range(3):
        env.step([0])
    obs, *_ = env.step([1])
    assert obs[0].tobytes() == as_reset(doubles(0)[4:]).tobytes()
