"""Start-up time and peak memory of a configuration, in a process of its own.

What others have left in memory, and servers of workers that run already, would be taken for this one's."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from fastvec.backends.parcels import pack_code, unpack
from fastvec.backends.starting import checked_context, start
from fastvec.contenders import Source
from fastvec.measure import holding_interrupts, sample_actions
from fastvec.profiling.configurations import Participant
from fastvec.profiling.processes import new_workers, peak_memory

# How long it steps before its memory is read, in seconds, and how often at least.
STEPPED, FEWEST_STEPS = 0.05, 1
# Seconds after which a process is given up.
PATIENCE = 120.0
# Seconds that it has to end after its answer.
LEAVES = 5.0


@dataclass(frozen=True)
class Start:
    """What a configuration takes to begin with.

    Attributes:
        seconds: from the call of ``make`` to the return of the first ``reset``.
        peak_rss_bytes: what its processes together had in memory at most, while they began and made some steps; None
            where it cannot be read.
    """

    seconds: float
    peak_rss_bytes: int | None


def start_of(participant: Participant, source: Source, seed: int) -> Start:
    """Makes, resets and steps a configuration in a new process, which has imported fastvec before.

    Raises:
        RuntimeError: if that process fails; the message says how.
        TypeError: if the source cannot be sent to it.
    """
    packed = pack_code((participant, source, seed), "what makes the envs")
    method = checked_context(None)
    ours, theirs = multiprocessing.Pipe()
    with holding_interrupts():
        process = start(method, _begin, (theirs, packed), "fastvec-profile")
    theirs.close()
    try:
        if not ours.poll(PATIENCE):
            raise RuntimeError(f"no start in {PATIENCE:g} s")
        answer = ours.recv()
    except EOFError:
        process.join(LEAVES)
        raise RuntimeError(f"the process ended with code {process.exitcode}") from None
    except BaseException:  # Ctrl-C
        process.kill()
        raise
    finally:
        ours.close()
        process.join(LEAVES)
        if process.is_alive():
            process.kill()
            process.join()
    if isinstance(answer, str):
        raise RuntimeError(answer)
    found: Start = answer
    return found


def _begin(connection: Connection, packed: bytes) -> None:
    """What runs in the new process."""
    try:
        participant, source, seed = unpack(packed)
        connection.send(_measured(participant, source, seed))
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


def _measured(participant: Participant, source: Source, seed: int) -> Start:
    contender, n = participant.contender, participant.configuration.n
    began = time.perf_counter()
    with new_workers() as workers:
        env = contender.make(source, n, **participant.setting)
    contender.reset(env, seed)
    seconds = time.perf_counter() - began
    try:
        actions = itertools.cycle(sample_actions(source, n, seed))
        began, steps = time.perf_counter(), 0
        while steps < FEWEST_STEPS or time.perf_counter() - began < STEPPED:
            env.step(next(actions))
            steps += 1
        try:
            peak = peak_memory(workers)
        except OSError:
            peak = None
    finally:
        contender.abandon(env)
    return Start(seconds, peak)
