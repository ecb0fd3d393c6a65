"""check_vector_env and check_same: silent where all is right, and each rule speaks where it alone is broken.

Walk is a small vector env that is right in every mode. Each of BROKEN changes one thing in it."""

import copy
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from rollout import make_oracle, make_single

import fastvec
from fastvec.testing import RULES, Violation, check_same, check_vector_env

NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
modes = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)
LIMIT = 9


class WalkEnv(gymnasium.Env):
    """One walker: it is pushed left or right, drifts at random, and falls beyond 2."""

    observation_space = Box(-100, 100, (2,), np.float32)
    action_space = Discrete(2)
    drift = 0.3

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.steps = self.np_random.uniform(-1, 1, 2).mean(), 0
        return self.observe(), {"drift": 0}

    def step(self, action):
        drift = self.np_random.uniform(-self.drift, self.drift)
        self.position += (0.5 if action == 1 else -0.5) + drift
        self.steps += 1
        return self.observe(), self.position, abs(self.position) > 2, self.steps >= LIMIT, {"drift": drift}

    def observe(self):
        return np.array([self.position, self.steps], np.float32)


class Walk(VectorEnv):
    """Walkers, in any mode. Subclasses break one of its methods."""

    def __init__(self, mode=NEXT_STEP, num_envs=4):
        self.num_envs = num_envs
        self.walkers = [WalkEnv() for _ in range(num_envs)]
        self.single_observation_space, self.single_action_space = WalkEnv.observation_space, WalkEnv.action_space
        self.observation_space = batch_space(WalkEnv.observation_space, num_envs)
        self.action_space = batch_space(WalkEnv.action_space, num_envs)
        self.metadata = {"autoreset_mode": mode}
        self.mode = mode
        self.pending = np.zeros(num_envs, bool)
        self.returns, self.lengths = np.zeros(num_envs), np.zeros(num_envs, int)

    def seeds(self, seed):
        if seed is None or isinstance(seed, int):
            return [None if seed is None else seed + lane for lane in range(self.num_envs)]
        return seed

    def lanes_to_reset(self, options):
        return np.ones(self.num_envs, bool) if options is None else options["reset_mask"]

    def clear_pending(self, mask, options):
        self.pending[mask] = False

    def reset(self, *, seed=None, options=None):
        mask = self.lanes_to_reset(options)
        infos = {}
        for lane, one in enumerate(self.seeds(seed)):
            if mask[lane]:
                self.add(infos, self.walkers[lane].reset(seed=one)[1], lane)
                self.returns[lane] = self.lengths[lane] = 0
        self.clear_pending(mask, options)
        return self.observe(), infos

    def autoreset(self, lane, infos):
        self.add(infos, self.walkers[lane].reset()[1], lane)
        self.returns[lane] = self.lengths[lane] = 0

    def step(self, actions):
        n = self.num_envs
        rewards, terminations, truncations, infos = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool), {}
        for lane, walker in enumerate(self.walkers):
            if self.pending[lane] and self.mode == NEXT_STEP:
                self.autoreset(lane, infos)
                rewards[lane] = self.reward_of_reset_rows
                continue
            final, rewards[lane], terminations[lane], truncations[lane], info = walker.step(actions[lane])
            self.returns[lane] += rewards[lane]
            self.lengths[lane] += 1
            if (terminations[lane] or truncations[lane]) and self.mode == SAME_STEP:
                self.add_final(infos, {"final_obs": final, "final_info": info}, lane)
                self.autoreset(lane, infos)
            else:
                self.add(infos, info, lane)
        self.pending = terminations | truncations
        return self.observe(), rewards, terminations, truncations, infos

    reward_of_reset_rows = 0.0

    def add(self, infos, info, lane):
        self.add_final(infos, {key: float(value) for key, value in info.items()}, lane)

    def add_final(self, infos, info, lane):
        infos.update(self._add_info(infos, info, lane))

    def observe(self):
        return np.stack([walker.observe() for walker in self.walkers])


@modes
def test_a_right_env_has_no_violation(mode):
    assert check_vector_env(lambda: Walk(mode), single_env=WalkEnv, steps=100) == []
    assert check_vector_env(Walk(mode), single_env=WalkEnv, seed=5, steps=50) == []


class NoLanes(Walk):
    def __init__(self, mode):
        super().__init__(mode)
        self.num_envs = "4"


class OtherBounds(Walk):
    def __init__(self, mode):
        super().__init__(mode)
        self.observation_space = Box(-50, 50, (4, 2), np.float32)


class NoMode(Walk):
    def __init__(self, mode):
        super().__init__(mode)
        self.metadata = {}


class Raising(Walk):
    def step(self, actions):
        if self.lengths[0] == 3:
            raise KeyError("a slip")
        return super().step(actions)


class FourResults(Walk):
    def step(self, actions):
        return super().step(actions)[:4]


class Float64Observations(Walk):
    def observe(self):
        return super().observe().astype(np.float64)


class ObservationsBeyondBounds(Walk):
    def observe(self):
        return super().observe() + np.float32(100)


class ObservationOfOneLane(Walk):
    def observe(self):
        return super().observe()[0]


class ListOfRewards(Walk):
    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        return obs, rewards.tolist(), *rest


class IntFlags(Walk):
    def step(self, actions):
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations.astype(int), truncations, infos


class InfoWithoutMask(Walk):
    def step(self, actions):
        *rest, infos = super().step(actions)
        return *rest, {"drift": infos["drift"]}


class InfoOfTooFewLanes(Walk):
    def step(self, actions):
        *rest, infos = super().step(actions)
        return *rest, {**infos, "drift": infos["drift"][:2]}


class WritesToActions(Walk):
    def step(self, actions):
        result = super().step(actions)
        actions[:] = 0
        return result


class TakesTheMask(Walk):
    def lanes_to_reset(self, options):
        return np.ones(self.num_envs, bool) if options is None else options.pop("reset_mask")


class WritesToTheMask(Walk):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        if options is not None:
            options["reset_mask"][:] = True
        return result


class OneArray(Walk):
    def observe(self):
        self.array = getattr(self, "array", np.empty((self.num_envs, 2), np.float32))
        self.array[:] = super().observe()
        return self.array


class RewardInResetRows(Walk):
    reward_of_reset_rows = 1.0


class OtherStart(Walk):
    def autoreset(self, lane, infos):
        super().autoreset(lane, infos)
        self.walkers[lane].position = 0.0


class ContinuesInsteadOfReset(Walk):
    def autoreset(self, lane, infos):
        self.walkers[lane].steps = 0
        self.add(infos, {"drift": 0}, lane)


class FinalObsOfOneLane(Walk):
    def add_final(self, infos, info, lane):
        if "final_obs" not in info or not infos.get("_final_obs", np.zeros(1)).any():
            super().add_final(infos, info, lane)


class NoFinalObs(Walk):
    def add_final(self, infos, info, lane):
        if "final_obs" not in info:
            super().add_final(infos, info, lane)


class ShowsFinalObs(Walk):
    def step(self, actions):
        obs, rewards, terminations, truncations, infos = super().step(actions)
        for lane in np.flatnonzero(terminations | truncations):
            obs[lane] = infos["final_obs"][lane]
        return obs, rewards, terminations, truncations, infos


class FinalObsInAnyMode(Walk):
    def step(self, actions):
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations, truncations, {**infos, "final_obs": obs, "_final_obs": truncations}


class IgnoresSeeds(Walk):
    def seeds(self, seed):
        return [None] * self.num_envs


class OneGenerator(Walk):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        for walker in self.walkers:
            walker.np_random = self.walkers[0].np_random
        return result


class DtypeOfTheFirst(Walk):
    def add(self, infos, info, lane):
        self.add_final(infos, info, lane)


class OneSeedForAll(Walk):
    def seeds(self, seed):
        return [seed] * self.num_envs if isinstance(seed, int) else super().seeds(seed)


class EverySecondSeed(Walk):
    def seeds(self, seed):
        return [seed + 2 * lane for lane in range(self.num_envs)] if isinstance(seed, int) else super().seeds(seed)


class FirstSeedOfAList(Walk):
    def seeds(self, seed):
        return super().seeds(seed[0] if isinstance(seed, list) and seed[0] is not None else seed)


class NoneIsZero(Walk):
    def seeds(self, seed):
        return [0 if one is None else one for one in seed] if isinstance(seed, list) else super().seeds(seed)


class SeedsAgain(Walk):
    seed = None

    def reset(self, *, seed=None, options=None):
        self.seed = seed if isinstance(seed, int) else self.seed
        return super().reset(seed=self.seed if seed is None and options is None else seed, options=options)


class SeededByItself(Walk):
    def __init__(self, mode):
        super().__init__(mode)
        self.reset(seed=0)


class StaysPending(Walk):
    def clear_pending(self, mask, options):
        if options is not None:
            super().clear_pending(mask, options)


class StaysPendingInAMask(Walk):
    def clear_pending(self, mask, options):
        if options is None:
            super().clear_pending(mask, options)


class IgnoresTheMask(Walk):
    def lanes_to_reset(self, options):
        return np.ones(self.num_envs, bool)


class RefusesTheMask(Walk):
    def lanes_to_reset(self, options):
        if options is not None:
            raise NotImplementedError("no masks")
        return super().lanes_to_reset(options)


class MaskSeedsByRank(Walk):
    def reset(self, *, seed=None, options=None):
        if isinstance(seed, int) and options is not None:
            mask = options["reset_mask"]
            seed = [seed + int(mask[:lane].sum()) for lane in range(self.num_envs)]
        return super().reset(seed=seed, options=options)


class MaskMovesOthers(Walk):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        if options is not None:
            for lane in np.flatnonzero(~options["reset_mask"]):
                self.walkers[lane].np_random.random()
        return result


class MaskTellsOfOthers(Walk):
    def reset(self, *, seed=None, options=None):
        obs, infos = super().reset(seed=seed, options=options)
        infos["_drift"][:] = True
        return obs, infos


class Counting(Walk):
    """Tells statistics of its own, under the name of the wrapper's."""

    def step(self, actions):
        self.counted = self.returns.copy(), self.lengths.copy()
        obs, rewards, terminations, truncations, infos = super().step(actions)
        ended = terminations | truncations
        if ended.any():
            returns, lengths = self.counts(*self.counted, rewards)
            infos["episode"] = {"r": np.where(ended, returns, 0), "l": np.where(ended, lengths, 0)}
            infos["_episode"] = ended
        return obs, rewards, terminations, truncations, infos

    def counts(self, returns, lengths, rewards):
        return returns + rewards, lengths + 1


class CountsOneLess(Counting):
    def counts(self, returns, lengths, rewards):
        return returns + rewards, lengths


class AMaskForgetsAllCounts(Counting):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        self.returns[:], self.lengths[:] = 0, 0
        return result


class ClosesOnce(Walk):
    def close(self, **kwargs):
        if self.closed:
            raise RuntimeError("closed already")
        super().close(**kwargs)


class StaysOpen(Walk):
    def close(self, **kwargs):
        pass


class FallsApart(Walk):
    def close_extras(self, **kwargs):
        self.walkers = None


class DoubleRewards(Walk):
    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        return obs, 2 * rewards, *rest


BROKEN = [
    (NoLanes, NEXT_STEP, {"attributes"}),
    (OtherBounds, NEXT_STEP, {"spaces"}),
    (NoMode, NEXT_STEP, {"autoreset-mode"}),
    (Raising, NEXT_STEP, {"no-errors"}),
    (FourResults, NEXT_STEP, {"results"}),
    (Float64Observations, NEXT_STEP, {"observation"}),
    (ObservationsBeyondBounds, NEXT_STEP, {"observation"}),
    (ObservationOfOneLane, NEXT_STEP, {"observation"}),
    (ListOfRewards, NEXT_STEP, {"rewards"}),
    (IntFlags, NEXT_STEP, {"flags"}),
    (InfoWithoutMask, NEXT_STEP, {"infos"}),
    (InfoOfTooFewLanes, NEXT_STEP, {"infos"}),
    (WritesToActions, NEXT_STEP, {"arguments"}),
    (TakesTheMask, NEXT_STEP, {"arguments", "statistics-mask"}),
    (WritesToTheMask, NEXT_STEP, {"arguments", "statistics-mask"}),
    (OneArray, NEXT_STEP, {"fresh-data"}),
    (RewardInResetRows, NEXT_STEP, {"next-step"}),
    (OtherStart, NEXT_STEP, {"next-step-reset"}),
    (ContinuesInsteadOfReset, NEXT_STEP, {"next-step-reset"}),
    (FinalObsOfOneLane, SAME_STEP, {"same-step"}),
    (NoFinalObs, SAME_STEP, {"same-step"}),
    (ShowsFinalObs, SAME_STEP, {"same-step-reset"}),
    (FinalObsInAnyMode, NEXT_STEP, {"final-obs"}),
    (FinalObsInAnyMode, DISABLED, {"final-obs"}),
    (IgnoresSeeds, NEXT_STEP, {"same-seed"}),
    (OneGenerator, NEXT_STEP, {"lanes-independent"}),
    (DtypeOfTheFirst, NEXT_STEP, {"info-values"}),
    (OneSeedForAll, NEXT_STEP, {"seeds-differ", "seed-int"}),
    (EverySecondSeed, NEXT_STEP, {"seed-int"}),
    (FirstSeedOfAList, NEXT_STEP, {"seed-list"}),
    (NoneIsZero, NEXT_STEP, {"seed-list"}),
    (SeedsAgain, NEXT_STEP, {"reset-continues"}),
    (SeededByItself, NEXT_STEP, {"fresh-envs-differ"}),
    (StaysPending, NEXT_STEP, {"reset-forgets"}),
    (StaysPendingInAMask, NEXT_STEP, {"reset-mask-forgets"}),
    (IgnoresTheMask, NEXT_STEP, {"reset-mask"}),
    (IgnoresTheMask, DISABLED, {"reset-mask"}),
    (RefusesTheMask, SAME_STEP, {"reset-mask"}),
    (RefusesTheMask, DISABLED, {"reset-mask"}),
    (MaskSeedsByRank, SAME_STEP, {"reset-mask"}),
    (MaskMovesOthers, SAME_STEP, {"reset-mask"}),
    (MaskTellsOfOthers, SAME_STEP, {"reset-mask"}),
    (CountsOneLess, NEXT_STEP, {"statistics"}),
    (AMaskForgetsAllCounts, NEXT_STEP, {"statistics-mask"}),
    (ClosesOnce, NEXT_STEP, {"close"}),
    (StaysOpen, NEXT_STEP, {"close"}),
    (FallsApart, NEXT_STEP, {"after-close"}),
    (DoubleRewards, NEXT_STEP, {"same-as-single"}),
]


def check(env_or_factory, **kwargs):
    """The violations, of runs that are long enough for these envs, and short enough for many tests."""
    return check_vector_env(env_or_factory, **{"steps": 40, "raise_on_failure": False, **kwargs})


def rules_of(violations):
    return {violation.rule for violation in violations}


@pytest.mark.parametrize(("broken", "mode", "rules"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_broken_is_found_and_nothing_else(broken, mode, rules):
    single_env = WalkEnv if rules == {"same-as-single"} else None
    found = check(lambda: broken(mode), single_env=single_env)
    assert rules_of(found) == rules, "\n".join(map(str, found))
    assert len(found) == len(rules)


def test_every_rule_can_be_broken():
    assert set().union(*(rules for _, _, rules in BROKEN)) == set(RULES)


def test_the_page_lists_the_rules():
    page = (Path(__file__).parents[1] / "docs" / "checker.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (.*)\. \|$", page, re.M))
    assert {rule: text[0].upper() + text[1:] for rule, text in RULES.items()} == listed
    assert list(listed) == list(RULES)


def test_counting_right_is_no_violation():
    assert check(lambda: Counting(NEXT_STEP)) == []


WITHOUT_A_FACTORY = {"fresh-envs-differ", "close", "after-close"}


@pytest.mark.parametrize(("broken", "mode", "rules"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_an_env_that_is_given_is_checked_and_stays_open(broken, mode, rules):
    single_env = WalkEnv if rules == {"same-as-single"} else None
    env = broken(mode)
    found = check(env, single_env=single_env)
    assert rules_of(found) == rules - WITHOUT_A_FACTORY, "\n".join(map(str, found))
    assert not env.closed


def test_the_error_lists_all_violations():
    with pytest.raises(AssertionError) as caught:
        check_vector_env(lambda: TakesTheMask(NEXT_STEP), steps=40)
    message = str(caught.value)
    assert message.startswith("2 violations\n")
    assert re.search(
        r"^arguments: expected the caller's options to keep their 'reset_mask'; found \{\}$", message, re.M
    )
    assert re.search(
        r"^statistics-mask \(step \d+, lane \d+\): expected return .*length \d+.*; found .*$", message, re.M
    )


def test_a_violation_says_where_it_was():
    [found] = check(lambda: RewardInResetRows(NEXT_STEP))
    env = Walk(NEXT_STEP)
    env.reset(seed=0)
    env.action_space.seed(0)
    terminations = truncations = np.zeros(4, bool)
    step = 0
    while not (terminations | truncations).any():
        step += 1
        _, _, terminations, truncations, _ = env.step(env.action_space.sample())
    assert (found.step, found.lane) == (step + 1, int(np.flatnonzero(terminations | truncations)[0]))
    assert isinstance(found, Violation)
    assert (
        str(found)
        == f"next-step (step {found.step}, lane {found.lane}): expected {found.expected}; found {found.found}"
    )


def test_rules_may_be_skipped():
    assert check_vector_env(lambda: OneArray(NEXT_STEP), skip=["fresh-data"], steps=40) == []
    assert check_vector_env(lambda: fastvec.make("CartPole-v1", 4, copy=False), skip={"fresh-data"}, steps=40) == []
    for unknown in (["fresh-date"], "fresh-data"):
        with pytest.raises(ValueError, match=r"skip is .*fresh-data"):
            check_vector_env(Walk(), skip=unknown)


def test_a_run_has_steps():
    with pytest.raises(ValueError, match="steps is 0"):
        check_vector_env(Walk(), steps=0)
    with pytest.warns(UserWarning, match="no episode ended"):
        assert check_vector_env(lambda: Walk(), steps=1) == []


@pytest.mark.parametrize("thing", [None, gymnasium.make("CartPole-v1"), lambda: WalkEnv()])
def test_only_vector_envs_are_taken(thing):
    with pytest.raises(TypeError, match="VectorEnv"):
        check_vector_env(thing)


def test_what_could_not_be_checked_is_said():
    with pytest.warns(UserWarning, match="no episode ended in 5 steps"):
        check_vector_env(lambda: fastvec.make("CartPole-v1", 3), steps=5)
    with pytest.warns(UserWarning, match="one lane"):
        check_vector_env(lambda: Walk(num_envs=1))


def test_a_policy_leads_to_ends_that_random_actions_do_not_reach():
    seen = []

    def always_right(obs):
        seen.append(obs.shape)
        return np.ones(4, np.int64)

    [found] = check(lambda: RewardInResetRows(NEXT_STEP), policy=always_right)
    assert found.rule == "next-step"
    assert found.step <= 8
    assert set(seen) == {(4, 2)}


# Gymnasium's own vector envs. What they get wrong, and no more, is found.


def gymnasiums(cls, env_id, mode, **kwargs):
    def make():
        return cls([lambda: gymnasium.make(env_id, max_episode_steps=25)] * 4, autoreset_mode=mode, **kwargs)

    return make


def mask_taken(mode):
    """What comes of taking the mask out of the options: wrappers do not see it, and forget all lanes' statistics."""
    uncounted = mode == SAME_STEP and gymnasium.__version__ < "1.4"  # counted wrong by that wrapper in any case
    return {"arguments"} if uncounted else {"arguments", "statistics-mask"}


SYNC_IDS = ("CartPole-v1", "Blackjack-v1")
MORE_SYNC_IDS = ("Acrobot-v1", "Pendulum-v1", "CliffWalking-v1")


@modes
@pytest.mark.parametrize(
    ("cls", "env_id"),
    [
        *((SyncVectorEnv, env_id) for env_id in SYNC_IDS),
        *(pytest.param(SyncVectorEnv, env_id, marks=pytest.mark.full) for env_id in MORE_SYNC_IDS),
        (AsyncVectorEnv, "CartPole-v1"),
    ],
)
def test_sync_and_async_take_the_mask_and_are_right_otherwise(cls, env_id, mode):
    found = check(gymnasiums(cls, env_id, mode))
    assert rules_of(found) == mask_taken(mode), "\n".join(map(str, found))


@modes
def test_the_first_lane_decides_the_dtype_of_infos(mode):
    found = check(gymnasiums(SyncVectorEnv, "FrozenLake-v1", mode))
    assert rules_of(found) == mask_taken(mode) | (set() if mode == DISABLED else {"info-values"})
    if mode != DISABLED:
        [wrong] = [violation for violation in found if violation.rule == "info-values"]
        assert "'prob': np.int64(0)" in wrong.found
        assert "'prob': np.float64(0.333" in wrong.found


def test_async_without_shared_memory_resets_again_after_a_reset():
    make = gymnasiums(AsyncVectorEnv, "CartPole-v1", NEXT_STEP, shared_memory=False)
    found = check(make)
    assert rules_of(found) == {"arguments", "reset-forgets", "reset-mask-forgets"}, "\n".join(map(str, found))


def test_the_numpy_cartpole_ignores_masks_and_has_one_generator():
    def make():
        return gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="vector_entry_point")

    found = check(make)
    # Its close does not say that it is closed either.
    assert rules_of(found) == {"reset-mask", "lanes-independent", "close"}, "\n".join(map(str, found))


class NestedEnv(WalkEnv):
    """WalkEnv with observations, actions and infos in which most kinds of spaces and values are."""

    observation_space = spaces.Dict(
        {
            "both": spaces.Tuple((Box(-100, 100, (2,), np.float32), Discrete(50, start=-3))),
            "text": spaces.Text(3),
            "bits": spaces.MultiBinary(2),
        }
    )
    action_space = spaces.Tuple((Discrete(2), spaces.MultiDiscrete([2, 3]), Box(-1, 1, (1, 2), np.float64)))

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0], {"text": "begin"}

    def step(self, action):
        push, (_, third), force = action
        obs, reward, terminated, truncated, info = super().step(push)
        self.position += force[0, 1] + third / 8
        return obs, reward, terminated, truncated, {"nested": {"drift": info["drift"], "force": force}, "text": "on"}

    def observe(self):
        return {
            "both": (super().observe(), self.steps - 3),
            "text": "abc"[: 1 + self.steps % 3],
            "bits": np.array([self.steps % 2, 1], np.int8),
        }


@modes
def test_spaces_and_infos_of_all_kinds_are_understood(mode):
    found = check(SyncVectorEnv([NestedEnv] * 3, autoreset_mode=mode), single_env=NestedEnv)
    assert rules_of(found) == mask_taken(mode), "\n".join(map(str, found))


def test_lanes_may_have_other_bounds_where_the_env_says_so():
    class WiderEnv(WalkEnv):
        observation_space = Box(-200, 200, (2,), np.float32)

    found = check(SyncVectorEnv([WalkEnv, WiderEnv, WalkEnv], observation_mode="different"))
    assert rules_of(found) == mask_taken(NEXT_STEP) | {"info-values"}, "\n".join(
        map(str, found)
    )  # drift is an int at first


def test_a_sync_env_that_reuses_its_arrays_is_found():
    found = check(gymnasiums(SyncVectorEnv, "CartPole-v1", NEXT_STEP, copy=False))
    assert rules_of(found) == mask_taken(NEXT_STEP) | {"fresh-data"}


def test_wrapped_envs_are_checked_too():
    found = check(lambda: RecordEpisodeStatistics(fastvec.make("CartPole-v1", 4)))
    assert rules_of(found) <= {"arguments"}  # this wrapper takes the mask itself, from Gymnasium 1.3 on


# check_same


@modes
def test_lanes_that_are_the_same_pass(mode):
    assert check_same(WalkEnv, Walk(mode), steps=200) is None
    check_same(lambda: make_single("Blackjack-v1"), make_oracle("Blackjack-v1", 3, mode), steps=100, seed=4)
    check_same(lambda: make_single("FrozenLake-v1"), fastvec.make("FrozenLake-v1", 3, autoreset_mode=mode), steps=100)
    check_same(lambda: make_single("CartPole-v1"), fastvec.make("CartPole-v1", 3, autoreset_mode=mode), steps=100)


class OtherObservation(Walk):
    def observe(self):
        obs = super().observe()
        if self.lengths[2] == 5:
            obs[2, 0] = np.nextafter(obs[2, 0], np.float32(np.inf))
        return obs


class OtherReward(Walk):
    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        rewards[1] = np.nextafter(rewards[1], np.inf)
        return obs, rewards, *rest


class OtherFlag(Walk):
    def step(self, actions):
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations, truncations & ~truncations, infos


class OtherInfo(Walk):
    def add(self, infos, info, lane):
        super().add(infos, {**info, "extra": 1} if lane == 3 else info, lane)


class OtherFinalObs(Walk):
    def add_final(self, infos, info, lane):
        if "final_obs" in info:
            info["final_obs"] = -info["final_obs"]
        super().add_final(infos, info, lane)


class OtherFinalInfo(Walk):
    def add_final(self, infos, info, lane):
        if "final_info" in info:
            info["final_info"] = {"drift": 9.0}
        super().add_final(infos, info, lane)


@pytest.mark.parametrize(
    ("different", "mode", "message"),
    [
        (
            OtherObservation,
            NEXT_STEP,
            r"step 5, lane 2: observation is array\(.*\) in the vector env and array\(.*\) in",
        ),
        (OtherReward, SAME_STEP, r"step 1, lane 1: reward is .* in the vector env and .* in the single env"),
        (OtherFlag, DISABLED, r"step \d+, lane \d: truncated is .*False.* and .*True"),
        (OtherInfo, NEXT_STEP, r"reset, lane 3: info is \{.*'extra'.*\} in the vector env and \{'drift': 0\} in"),
        (OtherFinalObs, SAME_STEP, r"step \d+, lane \d: info 'final_obs' is"),
        (OtherFinalInfo, SAME_STEP, r"step \d+, lane \d: info 'final_info' is"),
        (NoFinalObs, SAME_STEP, r"step \d+, lane \d: info 'final_obs' is 'missing'"),
        (FinalObsOfOneLane, SAME_STEP, r"step \d+, lane \d: info '_final_obs' is .*False"),
        (RewardInResetRows, NEXT_STEP, r"step \d+, lane \d: reward is .*1\.0.*0\.0"),
        (OtherStart, NEXT_STEP, r"step \d+, lane \d: observation"),
        (OtherStart, SAME_STEP, r"step \d+, lane \d: observation"),
        (EverySecondSeed, NEXT_STEP, r"reset, lane 1: observation"),
        (MaskMovesOthers, DISABLED, r"step \d+, lane \d: (reward|observation)"),
        (IgnoresTheMask, DISABLED, r"reset after step \d+, lane \d: (info|observation)"),
        (DtypeOfTheFirst, NEXT_STEP, r"step \d+, lane \d: info 'drift' is np\.int64\(0\)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_first_difference_is_named(different, mode, message):
    with pytest.raises(AssertionError, match=message):
        check_same(WalkEnv, different(mode), steps=100)


def test_a_policy_chooses_the_actions_and_the_vector_env_stays_open():
    env = Walk()
    given = []

    def always_left(obs):
        given.append(obs)
        return np.zeros(4, np.int64)

    check_same(WalkEnv, env, steps=20, policy=always_left)
    assert len(given) == 20
    assert not env.closed


def test_single_envs_are_closed_whatever_happens():
    closed = []

    class Closing(WalkEnv):
        def close(self):
            closed.append(self)

    check_same(Closing, Walk(), steps=3)
    with pytest.raises(AssertionError):
        check_same(Closing, copy.deepcopy(DoubleRewards(NEXT_STEP)), steps=3)
    assert len(closed) == 8
