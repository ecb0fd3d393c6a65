"""Ordinary envs on each backend, beside others' vector envs: `python bench/backends.py counter`, `images`, `sleepers`
or `costs`; without one of these all four, in some ten minutes. Needs the extras cli, process and rivals."""

from __future__ import annotations

import argparse
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from plain_envs import Computing, Images, PlainCounter, UnevenlyWaiting, Waiting

import fastvec
from fastvec.backends.choosing import chosen
from fastvec.contenders import CONTENDERS, Contender, Source
from fastvec.machine import usable_cores
from fastvec.measure import Result, Spread, holding_interrupts, interleave, race, running, sample_actions
from fastvec.terminal import Column, Row, print_table

N = 8
COSTS = (1e-6, 3e-6, 10e-6, 30e-6, 100e-6, 300e-6, 1e-3, 3e-3, 10e-3, 30e-3, 100e-3, 200e-3)
SLEEPERS, BATCH = 16, 4
RIVALS = tuple(CONTENDERS[name] for name in ("sync", "dummy", "async", "subproc"))


class BackendContender(Contender):
    """``fastvec.make`` with these options, of the race's source or another, and what is done with its observations."""

    def __init__(
        self,
        name: str,
        source: Source | None = None,
        then: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        self.name = self.title = name
        self.source, self.then, self.options = source, then, options

    def make(self, source: Any, n: int, **setting: Any) -> Any:
        env = fastvec.make(self.source or source, n, **self.options)
        return env if self.then is None else Followed(env, self.then)


class Followed:
    """A vector env, and what a learner does with each observation."""

    def __init__(self, env: Any, then: Callable[[Any], Any]) -> None:
        self.then, self.reset, self.close = then, env.reset, env.close
        self.inner_step = env.step

    def step(self, actions: Any) -> Any:
        """Steps, and does that."""
        results = self.inner_step(actions)
        self.then(results[0])
        return results


class FirstReadyContender(BackendContender):
    """Batches of those that are ready first; as many of them as make a step of all lanes."""

    def make(self, source: Any, n: int, **setting: Any) -> Any:
        return InBatches(super().make(source, n))


class InBatches:
    """A first-ready env with the ``step`` of the others."""

    def __init__(self, env: Any) -> None:
        self.env, self.close = env, env.close

    def reset(self, seed: int) -> Any:
        """Asks all lanes for an episode; what they observe first comes with the first batches."""
        self.env.async_reset(seed=seed)
        return None, {}

    def step(self, actions: Any) -> Any:
        """Receives batches, and sends each of their lanes its action."""
        for _ in range(self.env.num_envs // self.env.batch_size):
            results = self.env.recv()
            lanes = results[4]["env_id"]
            self.env.send(actions[lanes], lanes)
        return results


class LoopContender(Contender):
    """The least that a loop in Python takes: each env's ``step`` with actions that are there, and ``reset`` at ends."""

    name = "loop"
    title = "a bare loop"

    def make(self, source: Any, n: int, **setting: Any) -> Any:
        return BareLoop([source() for _ in range(n)], [list(row) for row in sample_actions(source, n)])


class BareLoop:
    """Envs and their actions in lists; no results are kept."""

    def __init__(self, envs: list[Any], rows: list[list[Any]]) -> None:
        self.envs, self.rows, self.place = envs, rows, 0
        self.ended, self.never = [False] * len(envs), [False] * len(envs)

    def reset(self, seed: int) -> Any:
        """Begins the episodes."""
        return [env.reset(seed=seed + lane)[0] for lane, env in enumerate(self.envs)], {}

    def step(self, actions: Any) -> Any:
        """Steps with the next of its own actions, which are the same ones."""
        row, ended = self.rows[self.place], self.ended
        self.place = (self.place + 1) % len(self.rows)
        for lane, env in enumerate(self.envs):
            if ended[lane]:
                env.reset()
                ended[lane] = False
            else:
                _, _, terminated, truncated, _ = env.step(row[lane])
                ended[lane] = terminated or truncated
        return None, None, ended.copy(), self.never

    def close(self) -> None:
        """There is nothing to close."""


def in_workers(workers: int) -> str:
    """The name of the process backend with so many workers."""
    return f"process ({workers})"


def print_race(title: str, results: Sequence[Result], ours: Sequence[str]) -> None:
    """Env-steps a second, and how many times as fast as each one ours are: the medians of the ratios in each round."""
    spreads = {result.contender.name: result.sps for result in results}
    rows = []
    for result in results:
        if result.sps is None:
            cells = [result.contender.title, f"{result.absent}", "", *("" for _ in ours)]
        else:
            low, high = result.sps.low, result.sps.high
            cells = [result.contender.title, f"{result.sps.median:,.0f}", f"{low:,.0f} to {high:,.0f}"]
            cells += [ratio(spreads[own], result.sps) for own in ours]
        rows.append(Row(tuple(cells), "strong" if result.contender.name in ours else "normal"))
    columns = [Column("who"), Column("env-steps/s", True), Column("quartiles", True)]
    print_table(title, [*columns, *(Column(f"{own} is", True) for own in ours)], [rows])


def ratio(ours: Spread | None, theirs: Spread) -> str:
    """How many times as fast ours are."""
    if ours is None:
        return ""
    return f"{np.median([own / their for own, their in zip(ours.samples, theirs.samples, strict=True)]):.2f} x"


def counter(rounds: int) -> None:
    """Steps that take next to nothing: what is left is what the backends themselves take."""
    process = BackendContender(in_workers(2), backend="process", num_workers=2)
    contenders = (LoopContender(), BackendContender("serial", backend="serial"), process, *RIVALS)
    for source, what in ((PlainCounter, "without a check"), (fastvec.CounterEnv, "which checks its actions")):
        results = race(source, N, seconds=0.1 * rounds, rounds=rounds, contenders=contenders)
        print_race(f"{source.__name__}, {what}, n = {N}", results, ("serial", process.name))


def as_float(obs: Any) -> Any:
    """What a learner makes of images."""
    return obs.astype(np.float32) / 255


def compressed(obs: Any) -> list[bytes]:
    """What a large replay buffer may keep of them."""
    return [zlib.compress(image, 1) for image in obs]


def compressed_and_back(obs: Any) -> list[bytes]:
    """The same, and what reading them again takes."""
    return [zlib.decompress(image) for image in compressed(obs)]


def images(rounds: int) -> None:
    """Observations that are large, and what may be done with them."""
    workers = partial(BackendContender, backend="process", num_workers=2)
    base = workers("process")
    contenders = (
        base,
        workers("process, copy=False", copy=False),
        workers("process, float32 by the env", partial(Images, as_float=True)),
        workers("process, float32 by the learner", then=as_float),
        workers("process, zlib by the learner", then=compressed),
        workers("process, zlib and back", then=compressed_and_back),
        BackendContender("serial", backend="serial"),
        *RIVALS,
    )
    results = race(Images, N, seconds=0.2 * rounds, rounds=rounds, contenders=contenders)
    env = Images()
    parts = [len(zlib.compress(image, 1)) / image.nbytes for image in env.images]
    title = f"84 x 84 x 4 uint8, n = {N}, 2 workers; zlib (level 1) makes {np.mean(parts):.0%} of them"
    print_race(title, results, (base.name,))


def sleepers(rounds: int) -> None:
    """Envs that wait for 1 to 20 ms, of which the slowest need not keep all waiting."""
    together = BackendContender("all together", backend="process", num_workers=SLEEPERS)
    first = FirstReadyContender("first ready", backend="process", num_workers=SLEEPERS, batch_size=BATCH)
    results = race(UnevenlyWaiting, SLEEPERS, seconds=1.0 * rounds, rounds=rounds, contenders=(together, first))
    title = f"waiting for 1 to 20 ms, n = {SLEEPERS}, {SLEEPERS} workers, batches of {BATCH}"
    print_race(title, results, (first.name,))


def costs(rounds: int) -> None:
    """Where each backend is faster, and what auto picks: the medians, and the worst of its picks."""
    cores = usable_cores()
    sections = []
    for kind in ("computing", "waiting"):
        sections.append([cost_row(kind, seconds, cores, rounds) for seconds in COSTS])
    columns = [Column("a step"), Column("serial", True)]
    columns += [Column(in_workers(count), True) for count in (cores, N)]
    columns += [Column("fastest"), Column("auto picks"), Column("behind", True), Column("auto takes", True)]
    print_table(f"Microseconds for a step of {N} lanes, {cores} cores", columns, sections)


def cost_row(kind: str, seconds: float, cores: int, rounds: int) -> Row:
    """One cost: each backend in turns, and auto anew in every round."""
    if kind == "computing":
        source: Any = partial(Computing, Computing.turns_for(seconds))
    else:
        source = partial(Waiting, seconds)
    contenders = [BackendContender("serial", backend="serial")]
    for count in (cores, N):
        contenders.append(BackendContender(in_workers(count), backend="process", num_workers=count))
    actions = sample_actions(source, N)
    picks, took = Counter[str](), []
    times: list[list[float]] = [[] for _ in contenders]
    with ExitStack() as stack:
        runners = []
        for contender in contenders:
            with holding_interrupts():
                runners.append(stack.enter_context(running(contender, source, N, actions)))
            runners[-1].warm_up(0.1)
        for _ in range(rounds):
            for mine, runner, (spent,) in zip(times, runners, interleave(runners, 1), strict=True):
                mine.append(spent / runner.burst)
            before = time.perf_counter()
            choice = chosen([source] * N, kind, cores, None)
            took.append(time.perf_counter() - before)
            picks["serial" if choice.num_workers is None else in_workers(choice.num_workers)] += 1
    medians = {contender.name: float(np.median(mine)) for contender, mine in zip(contenders, times, strict=True)}
    fastest = min(medians, key=medians.__getitem__)
    behind = max(medians[pick] / medians[fastest] - 1 for pick in picks)
    cells = [
        f"{kind} {seconds * 1e6:,.0f} us",
        *(f"{median * 1e6:,.1f}" for median in medians.values()),
        fastest,
        ", ".join(f"{pick}: {count}/{rounds}" for pick, count in picks.most_common()),
        f"{behind:.0%}",
        f"{np.median(took) * 1e3:,.0f} ms",
    ]
    return Row(tuple(cells))


PARTS: dict[str, Callable[[int], None]] = {"counter": counter, "images": images, "sleepers": sleepers, "costs": costs}


def main() -> None:
    """Prints the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=[*PARTS, "all"], default="all", help="which table; by default all")
    parser.add_argument("--rounds", type=int, help="by default 20, or 5 of costs and sleepers")
    arguments = parser.parse_args()
    for part in PARTS if arguments.part == "all" else (arguments.part,):
        PARTS[part](arguments.rounds or (5 if part in ("costs", "sleepers") else 20))


if __name__ == "__main__":
    main()
