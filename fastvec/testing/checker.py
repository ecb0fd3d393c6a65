"""check_vector_env: whether any vector env keeps the rules of Gymnasium's vector API.

Here is the order of the checks, and which rules must hold for each to be worth doing; checks.py has the checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from fastvec.testing import checks, same
from fastvec.testing.rows import AnyVectorEnv
from fastvec.testing.run import EnvFailureError, UnusableResultError
from fastvec.testing.subject import Subject
from fastvec.testing.violation import Report, Violation, short

# Each check, and the rules without which what it finds would only be their consequence.
CHECKS: tuple[tuple[Callable[[Subject], None], tuple[str, ...]], ...] = (
    (checks.same_seed, ()),
    (checks.mask_in_an_episode, ()),
    (checks.other_lanes, ()),
    (checks.different_seeds, ()),
    (checks.resets_without_a_seed, ()),
    (checks.list_of_an_int, ("lanes-independent",)),
    (checks.lists_of_seeds, ("lanes-independent", "reset-continues")),
    (checks.reset_after_an_end, ()),
    (checks.reset_in_place_of_an_autoreset, ("lanes-independent", "reset-continues", "reset-forgets")),
    (checks.after_a_mask, ("lanes-independent", "reset-mask")),
    (checks.mask_after_an_end, ("lanes-independent", "reset-mask")),
    (checks.statistics, ()),
    (checks.statistics_across_masks, ("statistics", "reset-mask", "reset-mask-forgets")),
)
CHECKS_OF_FRESH_ENVS = ((checks.envs_without_a_seed, ()), (checks.closing, ()))


def check_vector_env(
    env_or_factory: AnyVectorEnv | Callable[[], AnyVectorEnv],
    *,
    single_env: Callable[[], gymnasium.Env[Any, Any]] | None = None,
    steps: int = 200,
    seed: int = 0,
    policy: Callable[[Any], Any] | None = None,
    skip: Collection[str] = (),
    raise_on_failure: bool = True,
) -> list[Violation]:
    """Checks a vector env, of whatever library, against the rules of Gymnasium's vector API (``RULES``).

    Args:
        env_or_factory: an env, which is reset and stepped and stays open; or better a function that makes one, the
            same each time: then every check has a fresh env, and closing and unseeded envs are checked too. Give it
            at least 3 lanes and, since most rules are about the ends of episodes, short episodes.
        single_env: makes the ordinary env that each lane should equal, if there is one; see
            :func:`fastvec.testing.check_same`.
        steps: of each run; there are about a dozen.
        seed: of resets and random actions.
        policy: observation -> actions, both batched, for the main run instead of random actions, where these do not
            reach an episode's end.
        skip: names of rules that the env breaks on purpose, such as ``"fresh-data"`` for one that reuses its arrays.
        raise_on_failure: whether to raise if there are violations, rather than only return them.

    Returns:
        The violations, the first of each rule; empty if there are none.

    Raises:
        AssertionError: lists the violations.
        TypeError: if there is no ``gymnasium.vector.VectorEnv`` to check.
        ValueError: for a name in ``skip`` that is no rule, and for ``steps`` below 1.

    Warns:
        UserWarning: if no episode ended, or there is one lane only, so that some rules could not be checked.
    """
    report = Report(skip)
    if steps < 1:
        raise ValueError(f"steps is {steps}: expected an int from 1; the default is 200")
    if isinstance(env_or_factory, VectorEnv):
        env = env_or_factory
        subject = Subject(lambda: env, False, report, steps, seed, policy)
    elif callable(env_or_factory):
        subject = Subject(env_or_factory, True, report, steps, seed, policy)
    else:
        raise TypeError(
            f"{env_or_factory!r} is {type(env_or_factory).__name__}: expected a gymnasium.vector.VectorEnv or a "
            f"function that makes one"
        )
    if _guarded(subject, Subject.play_main_run):
        _warn(subject)
        _check(subject)
        if single_env is not None:
            _compare_with_single_envs(subject, single_env)
    if report.violations and raise_on_failure:
        raise AssertionError("\n".join([f"{len(report.violations)} violations", *map(str, report.violations)]))
    return report.violations


def _check(subject: Subject) -> None:
    # All compare runs; and in DISABLED mode no run gets far without masks.
    always = ("same-seed", "reset-mask") if subject.mode == AutoresetMode.DISABLED else ("same-seed",)
    for check, needed in (*CHECKS, *(CHECKS_OF_FRESH_ENVS if subject.fresh else ())):
        if not any(subject.report.has(rule) for rule in (*always, *needed)):
            _guarded(subject, check)


def _guarded(subject: Subject, check: Callable[[Subject], None]) -> bool:
    """Runs a check, and says whether it came to its end; what the env raises or returns may not let it."""
    try:
        check(subject)
    except UnusableResultError:
        return False
    except EnvFailureError as failure:
        rule = "reset-mask" if "reset_mask" in failure.call else "no-errors"
        found = f"{type(failure.error).__name__}: {short(str(failure.error))}"
        subject.report.add(rule, f"{failure.call} to work", found, step=failure.step)
        return False
    return True


def _compare_with_single_envs(subject: Subject, single_env: Callable[[], gymnasium.Env[Any, Any]]) -> None:
    needed = ("autoreset-mode", "no-errors", *(("reset-mask",) if subject.mode == AutoresetMode.DISABLED else ()))
    if any(subject.report.has(rule) for rule in needed):
        return
    with subject.env() as (env, _):
        found = same.first_difference(single_env, env, steps=subject.steps, seed=subject.seed, policy=subject.policy)
    if found is not None:
        expected = f"{found.what} {short(found.single)}, as in the single env, in {found.when}"
        subject.report.add("same-as-single", expected, short(found.vector), found.lane)


def _warn(subject: Subject) -> None:
    unchecked = []
    if subject.run.first_end() == subject.steps:
        unchecked.append(
            f"no episode ended in {subject.steps} steps, so that the rules about ends were not checked; give steps= "
            f"or policy=, or an env with a step limit"
        )
    if subject.n == 1:
        unchecked.append("there is one lane, so that the rules about several were not checked; give an env with more")
    for sentence in unchecked:
        warnings.warn(f"check_vector_env: {sentence}", stacklevel=3)
