"""Where the time of a CartPole step goes, and what this CPU allows: `python bench/roofline.py` (gcc; AVX2 or better).

A step of 1,024 lanes is measured as a whole and with parts of it left out. Beside it stand the parts that no exact step
can do without, each by itself, compiled with setup.py's flags (roofline.c). All take turns; shown are medians."""

from __future__ import annotations

import ctypes
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fastvec
from fastvec.machine import chosen_target
from fastvec.terminal import Column, Row, print_table

ROOT = Path(__file__).parents[1]
N, ROUNDS, SECONDS = 1024, 40, 0.01
AVX2 = ("-mavx2", "-mfma")
INSTRUCTIONS = {
    "avx2": AVX2,
    "avx512": (*AVX2, *(f"-mavx512{part}" for part in ("f", "dq", "vl", "bw")), "-mprefer-vector-width=512"),
}
Call = Callable[[], object]


def compiled(target: str) -> ctypes.CDLL:
    """roofline.c as a library, for this instruction set and with setup.py's flags."""
    flags = re.findall(r'"(-[^"]*)"', (ROOT / "setup.py").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "roofline.so")
        files = [f"-I{ROOT / 'csrc'}", str(ROOT / "bench" / "roofline.c"), "-o", library]
        own = ["-fvisibility=default", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, *INSTRUCTIONS[target], *own, *files], check=True)
        return ctypes.CDLL(library)


def parts(library: ctypes.CDLL) -> dict[str, Call]:
    """The parts of a step by themselves."""
    rng = np.random.default_rng(0)
    columns, actions = rng.uniform(-0.2, 0.2, (9, N)), rng.integers(0, 2, N)
    obs, flags = np.empty((N, 4), np.float32), np.empty((2, N), np.uint8)
    state = (ctypes.c_void_p * 4)(*(column.ctypes.data for column in columns[:4]))

    def call(name: str, *arrays: np.ndarray, lanes: int = N, first: object = None) -> Call:
        function, count = getattr(library, name), ctypes.c_int64(lanes)
        pointers = [*([] if first is None else [first]), *(ctypes.c_void_p(array.ctypes.data) for array in arrays)]
        return lambda: (arrays, function(*pointers, count))  # which keeps the arrays

    return {
        "nothing": call("sines", *columns[4:7], lanes=0),
        "sines": call("sines", *columns[4:7]),
        "divisions": call("divisions", *columns[4:8]),
        "memory": call("memory", actions, obs, columns[8], flags[0], flags[1], first=state),
    }


def steps() -> dict[str, Call]:
    """Steps as a user takes them, and with parts left out."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 2, N) for _ in range(16)]

    def steps_of(env: fastvec.VecEnv) -> Call:
        env.reset(seed=0)
        mine = [row[: env.num_envs].copy() for row in rows]

        def run() -> None:
            for row in mine:
                env.step(row)

        return run

    endless = fastvec.make("CartPole-v1", N, max_episode_steps=-1)
    for name, value in (("force_mag", 0.0), ("gravity", 0.0), ("x_threshold", np.inf)):
        endless.set_attr(name, value)  # the same arithmetic, but no pole falls
    return {
        "one lane": steps_of(fastvec.make("CartPole-v1", 1)),
        "a step": steps_of(fastvec.make("CartPole-v1", N)),
        "endless": steps_of(endless),
        "float32": steps_of(fastvec.make("CartPole-v1", N, precision="float32")),
        "counter": steps_of(fastvec.make("Counter-v0", N)),
    }


def nanoseconds(calls: dict[str, Call]) -> dict[str, float]:
    """The median time of each call, over rounds in which all take turns."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            call()
            count, began = 0, time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                call()
                count += 1
            samples[name].append((time.perf_counter() - began) * 1e9 / count)
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> None:
    """Prints the table."""
    target = chosen_target()
    if target not in INSTRUCTIONS:
        raise SystemExit(f"roofline.py needs AVX2 or AVX-512; this is {target}")
    of_steps, of_parts = steps(), parts(compiled(target))
    found = nanoseconds({**of_steps, **of_parts})
    per_lane = {name: found[name] / 16 / N for name in of_steps}
    alone = {name: (found[name] - found["nothing"]) / N for name in of_parts}
    python = found["one lane"] / 16 / N
    whole = per_lane["a step"]

    def row(name: str, value: float, weight: str = "normal") -> Row:
        return Row((name, f"{value:.2f}", f"{value / whole:.0%}", f"{1e3 / value:,.0f} M"), weight)

    columns = (Column("part"), Column("ns a lane", True), Column("of a step", True), Column("lanes/s", True))
    print_table(
        f"CartPole-v1, n = {N}, {target}",
        columns,
        [
            [
                row("env.step(actions)", whole, "strong"),
                row("  Python, and the call", python),
                row("  ends and resets", whole - per_lane["endless"]),
                row("  the step loop", per_lane["endless"] - python),
            ],
            [
                row("sine, cosine alone", alone["sines"]),
                row("4 divisions alone", alone["divisions"]),
                row("memory alone", alone["memory"]),
            ],
            [
                row("float32's step", per_lane["float32"]),
                row("Counter's step", per_lane["counter"]),
            ],
        ],
    )


if __name__ == "__main__":
    main()
