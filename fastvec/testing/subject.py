"""The env that is checked: how to come by one, what all checks compare with, and how they report."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from fastvec.testing.results import ResultCheck
from fastvec.testing.rows import AnyVectorEnv, batch_of, mixed
from fastvec.testing.run import Difference, Driver, Run, UnusableResultError, compare_runs
from fastvec.testing.violation import Report, short


class Subject:
    """An env, or a function that makes it, and its main run.

    Attributes:
        fresh: whether every check gets an env of its own.
        report: where violations go.
        steps, seed, policy: as check_vector_env was given them.
        other_seed: so far from ``seed`` that no lane has a seed of the main run.
        n, mode: the env's number of lanes and autoreset mode.
        run, actions: the main run and the actions that were taken in it.
        seed_matters: whether another seed gives other results; set by the check of seeds.
    """

    def __init__(
        self,
        make: Callable[[], AnyVectorEnv],
        fresh: bool,
        report: Report,
        steps: int,
        seed: int,
        policy: Callable[[Any], Any] | None,
    ) -> None:
        self.fresh, self.report = fresh, report
        self.steps, self.seed, self.policy = steps, seed, policy
        self.other_seed = seed + 1_000_003
        self.n = 0
        self.mode = AutoresetMode.NEXT_STEP
        self.actions: list[Any] = []
        self.run: Run
        self.seed_matters = False
        self._make = make
        self._driver: Driver | None = None  # that of the one env, where there is no factory

    # Envs

    @contextmanager
    def env(self) -> Iterator[tuple[AnyVectorEnv, Driver]]:
        """The env, a fresh one where there is a factory, and its driver."""
        env = self.new_env()
        try:
            driver = self._driver or Driver(env, self.mode, ResultCheck(env, self.mode, self.report))
            if not self.fresh:
                self._driver = driver
            yield env, driver
        finally:
            if self.fresh:
                self.close(env)

    def new_env(self) -> AnyVectorEnv:
        """What the factory makes, or the env itself; the first one has its attributes checked."""
        env = self._make()
        if not isinstance(env, VectorEnv):
            raise TypeError(f"the factory made {env!r}, {type(env).__name__}: expected a gymnasium.vector.VectorEnv")
        if self.n == 0:
            self._check_attributes(env)
        return env

    def close(self, env: AnyVectorEnv) -> None:
        """Closes an env, which may not raise."""
        try:
            env.close()
        except Exception as error:
            self.report.add("close", "close to raise nothing", f"{type(error).__name__}: {short(str(error))}")

    def _check_attributes(self, env: AnyVectorEnv) -> None:
        n = getattr(env, "num_envs", None)
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            self.report.add("attributes", "num_envs to be an int above zero", short(n))
            raise UnusableResultError
        for name in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
            if not isinstance(getattr(env, name, None), gymnasium.Space):
                self.report.add("attributes", f"{name} to be a space", short(getattr(env, name, None)))
                raise UnusableResultError
        self.n = int(n)
        for name in ("observation", "action"):
            single, batched = getattr(env, f"single_{name}_space"), getattr(env, f"{name}_space")
            right = batch_space(single, self.n)
            # SyncVectorEnv and AsyncVectorEnv may be told to have lanes whose bounds differ.
            loose = getattr(env.unwrapped, "observation_mode", "same") != "same" and name == "observation"
            if not (is_space_dtype_shape_equiv(right, batched) if loose else right == batched):
                self.report.add("spaces", f"{name}_space to be {short(right)}", short(batched))
        declared = env.metadata.get("autoreset_mode")
        try:
            self.mode = AutoresetMode(declared)
        except ValueError:
            self.mode = AutoresetMode.NEXT_STEP  # which Gymnasium's wrappers take it for
        if not isinstance(declared, AutoresetMode):
            expected = "metadata['autoreset_mode'] to be an AutoresetMode"
            self.report.add("autoreset-mode", expected, f"{short(declared)}; taken for {self.mode}")

    # Actions and runs

    def play_main_run(self) -> None:
        """Plays the run that others are compared with."""
        with self.env() as (env, driver):
            self.run = Run(driver.reset(self.seed))
            for sampled in self.sample(env, self.seed):
                actions = sampled if self.policy is None else self.policy(driver.results.observation)
                self.actions.append(copy.deepcopy(actions))
                driver.go_on(self.run, [actions])
            driver.play([])
            driver.results.finish()

    def play_to_the_end(self, driver: Driver, end: int) -> None:
        """Repeats the main run up to the first end, and does nothing about it."""
        driver.play(self.actions[:end], self.seed)
        driver.step(self.actions[end])

    def sample(self, env: AnyVectorEnv, seed: int) -> list[Any]:
        """Random actions, one row for each step."""
        space = copy.deepcopy(env.action_space)
        space.seed(seed)
        return [space.sample() for _ in range(self.steps)]

    def sample_alike(self, env: AnyVectorEnv) -> list[Any]:
        """Random actions that are the same in all lanes."""
        space = copy.deepcopy(env.single_action_space)
        space.seed(self.seed)
        return [batch_of(space, [space.sample()] * self.n) for _ in range(self.steps)]

    def with_other_actions(self, env: AnyVectorEnv, changed: Any) -> list[Any]:
        """The main run's actions, but others in the lanes of a mask."""
        others = self.sample(env, self.other_seed)
        return [mixed(env, own, other, changed) for own, other in zip(self.actions, others, strict=True)]

    # Reporting

    @property
    def infos_comparable(self) -> bool:
        """Whether lanes' infos can be the same in two runs, as far as is known."""
        return not self.report.has("info-values") and not self.report.has("same-step")

    def expect_same(
        self, rule: str, expected: str, run: Run, other: Run, lanes: Iterable[int], *, infos: bool = False
    ) -> None:
        """Reports the first difference of two runs in these lanes; ``expected`` goes on after "observation to be"."""
        found = compare_runs(run, other, lanes, infos=infos)
        if found is not None:
            values = f"{short(found.one)} in one run and {short(found.other)} in the other"
            self.report.add(rule, f"{found.what} to be {expected}", values, found.lane, found.step)

    def add(self, rule: str, expected: str, found: Difference | None) -> None:
        """Reports a difference, if there is one, of what is right from what the env gave."""
        if found is not None:
            expected = f"{expected}, with {found.what} {short(found.one)}"
            self.report.add(rule, expected, f"{found.what} {short(found.other)}", found.lane, found.step)
