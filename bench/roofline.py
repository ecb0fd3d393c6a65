"""Where the time of a step goes, and what this CPU allows: `python bench/roofline.py` (gcc; AVX2 or better).

A step of 1,024 CartPoles is measured as a whole and with parts of it left out. Beside it stand the parts that no exact
step can do without, each by itself, compiled with setup.py's flags (roofline.c); and then every kernel that computes in
vectors, beside the sum of its parts. All take turns; shown are medians."""

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
from gymnasium.spaces import Discrete

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
# What a step of a lane does that takes long: parts of roofline.c, and how often. Acrobot's has four stages, and shows
# two angles.
KERNELS = {
    "CartPole-v1": {"sines": 1, "divisions": 1, "memory": 1},
    "MountainCar-v0": {"any sines": 1, "memory": 1},
    "MountainCarContinuous-v0": {"any sines": 1, "memory": 1},
    "Pendulum-v1": {"any sines": 2, "squares": 2, "memory": 1},
    "Acrobot-v1": {
        "any sines": 4 * 3 + 2,
        "squares": 4 * 3,
        "divisions": 3,
        "memory": 1,
    },
    "Counter-v0": {"memory": 1},
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
    angles = rng.uniform(-4.0, 4.0, N)
    obs, flags = np.empty((N, 4), np.float32), np.empty((2, N), np.uint8)
    state = (ctypes.c_void_p * 4)(*(column.ctypes.data for column in columns[:4]))

    def call(name: str, *arrays: np.ndarray, lanes: int = N, first: object = None) -> Call:
        function, count = getattr(library, name), ctypes.c_int64(lanes)
        pointers = [*([] if first is None else [first]), *(ctypes.c_void_p(array.ctypes.data) for array in arrays)]
        return lambda: (arrays, function(*pointers, count))  # which keeps the arrays

    return {
        "nothing": call("sines", *columns[4:7], lanes=0),
        "sines": call("sines", *columns[4:7]),
        "any sines": call("any_sines", angles, *columns[5:7]),
        "squares": call("squares", *columns[4:7]),
        "divisions": call("divisions", *columns[4:8]),
        "memory": call("memory", actions, obs, columns[8], flags[0], flags[1], first=state),
    }


def steps() -> dict[str, Call]:
    """Steps as a user takes them, and with parts left out."""
    rng = np.random.default_rng(1)

    def steps_of(env: fastvec.VecEnv) -> Call:
        env.reset(seed=0)
        shape, space = (16, env.num_envs), env.single_action_space
        if isinstance(space, Discrete):
            mine = list(rng.integers(0, space.n, shape))
        else:
            mine = list(rng.uniform(space.low, space.high, (*shape, 1)).astype(np.float32))

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
        **{env_id: steps_of(fastvec.make(env_id, N)) for env_id in KERNELS},
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
                row("  of any angle", alone["any sines"]),
                row("a square of pow's", alone["squares"]),
                row("4 divisions alone", alone["divisions"]),
                row("memory alone", alone["memory"]),
            ],
            [
                row("float32's step", per_lane["float32"]),
            ],
        ],
    )
    kernels = [
        Row((env_id, f"{per_lane[env_id]:.2f}", f"{sum(count * alone[part] for part, count in needs.items()):.2f}"))
        for env_id, needs in KERNELS.items()
    ]
    print_table("Kernels", (Column("id"), Column("ns a lane", True), Column("parts alone", True)), [kernels])


if __name__ == "__main__":
    main()
