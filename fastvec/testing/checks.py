"""The checks that compare runs of an env with each other: one function for each, in the order of RULES.

None needs to know what the env is about. Where something was done differently that must not matter, such as other
actions in other lanes, or a reset between, the runs must come out the same."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, Error
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from fastvec.testing.rows import same_bits
from fastvec.testing.run import Driver, EnvFailureError, Run, compare_runs, compare_turns
from fastvec.testing.subject import Subject
from fastvec.testing.violation import short

# The steps for which two runs are followed after a reset that must have forgotten, or left alone, what was before.
FOLLOWED = 30
# Errors that say of a call after close what is wrong; others are what falls out of missing parts.
SPEAKING_ERRORS = (ClosedEnvironmentError, Error, RuntimeError, ValueError, AssertionError)
# Gymnasium's wrapper counts SAME_STEP episodes right from 1.4 on.
WRAPPER_COUNTS_SAME_STEP = tuple(int(part) for part in gymnasium.__version__.split(".")[:2]) >= (1, 4)


def same_seed(subject: Subject) -> None:
    """The main run again, in a fresh env where there is a factory."""
    with subject.env() as (_, driver):
        for when in ("in two runs of one seed", "in a run of one seed after others"):
            again = driver.play(subject.actions, subject.seed)
            subject.expect_same("same-seed", f"the same {when}", subject.run, again, range(subject.n))


def mask_in_an_episode(subject: Subject) -> None:
    """Resets half of the lanes in the middle of their episodes; what the call itself returns and does."""
    before, mask = _middle_of_an_episode(subject), _half(subject.n)
    with subject.env() as (_, driver):
        run = driver.play(subject.actions[:before], subject.seed)
        options = {"reset_mask": mask}
        turn = driver.reset(subject.other_seed, options)
    if options.get("reset_mask") is not mask:
        subject.report.add("arguments", "the caller's options to keep their 'reset_mask'", short(options))
    if not np.array_equal(mask, _half(subject.n)):
        subject.report.add("arguments", f"the mask to stay {short(_half(subject.n))}", short(mask))
    outside = np.flatnonzero(~_half(subject.n)).tolist()
    found = compare_turns(run.turns[-1] if run.turns else run.first, turn, outside, None)
    subject.add("reset-mask", "lanes outside of the mask to stay as they were", found)
    for lane in outside:
        if turn.infos[lane]:
            subject.report.add("reset-mask", "no infos of lanes outside of the mask", short(turn.infos[lane]), lane)


def other_lanes(subject: Subject) -> None:
    """The main run with other actions in every second lane, which the lanes between must not notice."""
    for parity in (0, 1) if subject.n > 1 else ():
        changed = np.arange(subject.n) % 2 == parity
        kept = np.flatnonzero(~changed).tolist()
        with subject.env() as (env, driver):
            run = driver.play(subject.with_other_actions(env, changed), subject.seed)
        expected = "the same whatever the other lanes do"
        subject.expect_same("lanes-independent", expected, subject.run, run, kept)
        if subject.infos_comparable and not subject.report.has("lanes-independent"):
            subject.expect_same("info-values", expected, subject.run, run, kept, infos=True)


def different_seeds(subject: Subject) -> None:
    """With the same actions in all lanes, only seeds can make a difference between them."""
    with subject.env() as (env, driver):
        actions = subject.sample_alike(env)
        run, other = driver.play(actions, subject.seed), driver.play(actions, subject.other_seed)
    subject.seed_matters = compare_runs(run, other, range(subject.n)) is not None
    if subject.seed_matters and subject.n > 1 and all(_lanes_equal(run, 0, lane) for lane in range(1, subject.n)):
        expected = "lanes to differ in a run with the same actions in all, as their seeds do"
        subject.report.add("seeds-differ", expected, f"{subject.n} equal lanes after reset(seed={subject.seed})")


def resets_without_a_seed(subject: Subject) -> None:
    """A reset without a seed goes on with the streams, wherever they are."""
    runs = []
    with subject.env() as (_, driver):
        for _ in range(2):
            driver.play(subject.actions[:FOLLOWED], subject.seed)
            runs.append(driver.play(subject.actions))
    expected = "the same each time after the same seed and steps"
    subject.expect_same("reset-continues", expected, runs[0], runs[1], range(subject.n))
    if subject.seed_matters and compare_runs(runs[0], subject.run, range(subject.n)) is None:
        found = f"the very one that reset(seed={subject.seed}) began"
        subject.report.add("reset-continues", "a new episode from a reset without a seed", found)


def list_of_an_int(subject: Subject) -> None:
    """An int seed s is the list [s, s + 1, ...]. An env that refuses lists breaks no rule."""
    seeds = _seeds(subject)
    given = list(seeds)
    with subject.env() as (_, driver):
        run = _played(driver, subject.actions, given)
    if run is None:
        return
    if given != seeds:
        subject.report.add("arguments", f"the list of seeds to stay {short(seeds)}", short(given))
    expected = f"the same with seed={subject.seed} and with seed=[{subject.seed}, {subject.seed + 1}, ...]"
    subject.expect_same("seed-int", expected, subject.run, run, range(subject.n))


def lists_of_seeds(subject: Subject) -> None:
    """Other seeds in every second lane change these alone; so does None, which lets the stream run on."""
    even, odd = range(0, subject.n, 2), range(1, subject.n, 2)
    seeds = [seed + (subject.other_seed if lane in odd else 0) for lane, seed in enumerate(_seeds(subject))]
    with subject.env() as (env, driver):
        actions = subject.sample_alike(env)
        run, other = _played(driver, actions, _seeds(subject)), _played(driver, actions, seeds)
        if run is None or other is None:
            return
        subject.expect_same("seed-list", "the same where only seeds of other lanes change", run, other, even)
        if subject.seed_matters and subject.n > 1 and compare_runs(run, other, odd) is None:
            subject.report.add("seed-list", "lanes to change with their seeds", "no change in lanes 1, 3, ...", lane=1)
        driver.play(actions[:FOLLOWED], subject.seed)
        unseeded = driver.play(actions)
        driver.play(actions[:FOLLOWED], subject.seed)
        partly = _played(driver, actions, [None if lane in even else seed for lane, seed in enumerate(seeds)])
        if partly is not None:
            expected = "the same with seed None in a list as without a seed"
            subject.expect_same("seed-list", expected, unseeded, partly, even)


def envs_without_a_seed(subject: Subject) -> None:
    """Two envs that were never seeded."""
    runs = []
    for _ in range(2):
        with subject.env() as (_, driver):
            runs.append(driver.play(subject.actions))
    if subject.seed_matters and compare_runs(runs[0], runs[1], range(subject.n)) is None:
        found = "the same run in both"
        subject.report.add("fresh-envs-differ", "two envs that were never seeded to differ", found)


def reset_after_an_end(subject: Subject) -> None:
    """The main run begun again at the moment when an autoreset may be pending."""
    end = subject.run.first_end()
    if end < subject.steps:
        with subject.env() as (_, driver):
            subject.play_to_the_end(driver, end)
            again = driver.go_on(Run(driver.reset(subject.seed)), subject.actions[:FOLLOWED])
        expected = f"the same from reset(seed={subject.seed}) on, also when an episode has just ended"
        subject.expect_same("reset-forgets", expected, subject.run, again, range(subject.n))


def reset_in_place_of_an_autoreset(subject: Subject) -> None:
    """In NEXT_STEP mode the row after an end is what an ordinary reset would have returned at that moment."""
    end = subject.run.first_end()
    if subject.mode == AutoresetMode.NEXT_STEP and end + 1 < subject.steps:
        with subject.env() as (_, driver):
            subject.play_to_the_end(driver, end)
            turn = driver.reset()
        ended = np.flatnonzero(subject.run.turns[end].ended).tolist()
        infos = subject.infos_comparable
        found = compare_turns(turn, subject.run.turns[end + 1], ended, end + 1, infos=infos)
        subject.add("next-step-reset", "what reset() would have given", found)


def after_a_mask(subject: Subject) -> None:
    """The same mask as before, with a seed: both halves of the lanes go on as if the other had not been there."""
    before, mask = _middle_of_an_episode(subject), _half(subject.n)
    rest = subject.actions[before : before + FOLLOWED]
    with subject.env() as (_, driver):
        seeded = driver.play(rest, subject.other_seed)
        driver.play(subject.actions[:before], subject.seed)
        run = driver.go_on(Run(driver.reset(subject.other_seed, {"reset_mask": mask.copy()})), rest)
    _compare_after_a_mask(subject, "reset-mask", mask, seeded, subject.run.turns[before:], run)


def mask_after_an_end(subject: Subject) -> None:
    """Resets the lanes that have just ended: no autoreset may follow."""
    end = subject.run.first_end()
    if end + 1 >= subject.steps:
        return
    mask = subject.run.turns[end].ended
    rest = subject.actions[end + 1 : end + 1 + FOLLOWED]
    with subject.env() as (_, driver):
        seeded = driver.play(rest, subject.other_seed)
        subject.play_to_the_end(driver, end)
        run = driver.go_on(Run(driver.reset(subject.other_seed, {"reset_mask": mask.copy()})), rest)
    _compare_after_a_mask(subject, "reset-mask-forgets", mask, seeded, subject.run.turns[end + 1 :], run)


def statistics(subject: Subject) -> None:
    """Episodes are counted right; in DISABLED mode there is no end without a mask."""
    if subject.mode != AutoresetMode.DISABLED:
        _count_episodes(subject, "statistics", masks=False)


def statistics_across_masks(subject: Subject) -> None:
    """Episodes are counted right when some lanes are reset in the middle of theirs."""
    _count_episodes(subject, "statistics-mask", masks=True)


def closing(subject: Subject) -> None:
    """Closes envs before and after their first reset, and twice, and goes on calling them."""
    subject.close(subject.new_env())
    env = subject.new_env()
    env.reset(seed=subject.seed)
    subject.close(env)
    subject.close(env)
    if not env.closed:
        subject.report.add("close", "closed to be True after close", short(env.closed))
    for name, call in (("step", lambda: env.step(subject.actions[0])), ("reset", lambda: env.reset(seed=subject.seed))):
        try:
            call()
        except SPEAKING_ERRORS:
            continue
        except Exception as error:
            expected = f"{name} after close to work, or to say that the env is closed"
            subject.report.add("after-close", expected, f"{type(error).__name__}: {short(str(error))}")


# What checks are made of


class _KeptOpen(VectorWrapper):
    """Passes all on to an env but the call of close that wrappers make, before Gymnasium 1.3, when they are dropped."""

    def close(self, **kwargs: Any) -> None:
        """Does nothing."""


def _half(n: int) -> Any:
    """A mask of every second lane, from lane 1 on; of the only lane if there is one."""
    return np.arange(n) % 2 == (1 if n > 1 else 0)


def _middle_of_an_episode(subject: Subject) -> int:
    """After how many steps of the main run no episode has ended yet; 0 if that is only right after the reset."""
    return min(3, subject.run.first_end())


def _seeds(subject: Subject) -> list[int]:
    return [subject.seed + lane for lane in range(subject.n)]


def _played(driver: Driver, actions: list[Any], seeds: Any) -> Run | None:
    """A run with a list of seeds; None if the env takes no such list."""
    try:
        return driver.play(actions, seeds)
    except EnvFailureError as failure:
        if failure.call == "reset":
            return None
        raise


def _lanes_equal(run: Run, one: int, other: int) -> bool:
    return all(
        same_bits(turn.observations[one], turn.observations[other])
        and (not len(turn.rewards) or same_bits(turn.rewards[one], turn.rewards[other]))
        for turn in [run.first, *run.turns]
    )


def _compare_after_a_mask(
    subject: Subject, rule: str, mask: Any, seeded: Run, undisturbed: list[Any], run: Run
) -> None:
    """Compares the run after a masked reset with one of the mask's seed, and with one in which there was no mask."""
    infos = subject.infos_comparable
    found = compare_runs(seeded, run, np.flatnonzero(mask).tolist(), infos=infos)
    subject.add(rule, f"a lane of the mask to go on as after reset(seed={subject.other_seed})", found)
    found = compare_runs(Run(run.first, undisturbed), run, np.flatnonzero(~mask).tolist())
    subject.add("reset-mask", "a lane outside of the mask to go on as if there had been no reset", found)


def _count_episodes(subject: Subject, rule: str, masks: bool) -> None:
    """Compares RecordEpisodeStatistics, or what the env itself tells under that name, with a count of our own.

    With masks, every second lane is reset once in the time of the shortest episode, for half of the steps.
    """
    n, mode = subject.n, subject.mode
    if mode == AutoresetMode.SAME_STEP and not WRAPPER_COUNTS_SAME_STEP:
        return
    every = max(subject.run.first_end() + 1, 3)
    returns, lengths, waiting = np.zeros(n), np.zeros(n, int), np.zeros(n, np.bool_)
    own = any({"r", "l"} <= info.get("episode", {}).keys() for turn in subject.run.turns for info in turn.infos)
    with subject.env() as (env, driver):
        driver.env = env if own else RecordEpisodeStatistics(_KeptOpen(env))
        try:
            driver.play([], subject.seed)
            for step, actions in enumerate(subject.actions):
                turn = driver.step(actions)
                returns[waiting], lengths[waiting] = 0, 0
                returns[~waiting] += turn.rewards[~waiting]
                lengths[~waiting] += 1
                for lane in range(n):
                    told = turn.infos[lane].get("episode")
                    if not _counted(told, bool(turn.ended[lane]), returns[lane], lengths[lane]):
                        right = f"return {returns[lane]} and length {lengths[lane]} at the episode's end"
                        expected = right if turn.ended[lane] else "statistics of episodes that ended alone"
                        subject.report.add(rule, expected, short(told), lane, step)
                if subject.report.has(rule):
                    return
                mask = turn.ended if mode == AutoresetMode.DISABLED else np.zeros(n, np.bool_)
                if masks and step % every == every // 2 and step < subject.steps // 2:
                    mask = mask | _half(n)
                if mask.any():
                    driver.reset(options={"reset_mask": mask.copy()})
                began = mask | (turn.ended if mode == AutoresetMode.SAME_STEP else False)
                returns[began], lengths[began] = 0, 0
                waiting = turn.ended & ~mask if mode == AutoresetMode.NEXT_STEP else np.zeros(n, np.bool_)
        finally:
            driver.env = env


def _counted(told: Any, ended: bool, total: float, length: int) -> bool:
    """Whether a lane's statistics are right; returns may have been added up in float32."""
    if not ended or told is None:
        return told is None and not ended
    return bool(np.isclose(told["r"], total, rtol=1e-5, atol=1e-6)) and bool(told["l"] == length)
