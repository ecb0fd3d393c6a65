"""Steps fastvec and Gymnasium's SyncVectorEnv side by side and compares all that they return, bit for bit.

DIFFERENCES is the only list of exceptions. Whatever is not on it is compared as it is: arrays, dtypes, shapes, info
keys and masks, for every lane whether masked or not. The state of the lanes is compared too, in float64: a wrong last
bit in it shows in float32 observations only after many steps, if ever."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode, VectorEnv
from rollout import sample_actions

from fastvec import registry


@dataclass(frozen=True)
class Difference:
    """One way in which fastvec's infos differ from SyncVectorEnv's on purpose.

    Attributes:
        key: the info key, at any depth.
        reason: why, in one sentence.
        compare: takes (our info dict, their info dict, where), both with the key, and raises AssertionError where they
            differ in any other way than the one meant.
    """

    key: str
    reason: str
    compare: Callable[[dict[str, Any], dict[str, Any], str], None]


def _compare_final_obs(ours: dict[str, Any], theirs: dict[str, Any], where: str) -> None:
    for lane in np.flatnonzero(theirs["_final_obs"]):
        _compare_lane(ours["final_obs"], theirs["final_obs"][lane], lane, f"{where}['final_obs']")


def _compare_lane(batch: Any, single: Any, lane: int, where: str) -> None:
    """Compares one lane's row of a batched observation with a single env's observation."""
    if isinstance(single, dict):
        assert isinstance(batch, dict), f"{where} is a {type(batch).__name__}"
        assert batch.keys() == single.keys(), f"{where}: keys {list(batch)}, expected {list(single)}"
        for key in single:
            _compare_lane(batch[key], single[key], lane, f"{where}[{key!r}]")
    elif isinstance(single, tuple):
        assert isinstance(batch, tuple), f"{where} is a {type(batch).__name__}"
        for i, (part, item) in enumerate(zip(batch, single, strict=True)):
            _compare_lane(part, item, lane, f"{where}[{i}]")
    elif isinstance(single, str):  # of a Text space, which has no array
        assert_same_bits(batch[lane], single, f"{where}[{lane}]")
    else:
        assert isinstance(batch, np.ndarray), f"{where} is a {type(batch).__name__}"
        # A single env's Discrete observation is a Python int, and int64 in a batch.
        expected = np.int64(single) if isinstance(single, int) else single
        assert_same_bits(batch[lane], expected, f"{where}[{lane}]")


def _compare_prob(ours: dict[str, Any], theirs: dict[str, Any], where: str) -> None:
    """SyncVectorEnv's array is int64 where the first lane's probability is the int 1, and cuts the others off."""
    assert ours["prob"].dtype == np.float64, f"{where}['prob']: dtype {ours['prob'].dtype}, expected float64"
    assert theirs["prob"].dtype in (np.float64, np.int64), f"{where}['prob']: {theirs['prob'].dtype} in SyncVectorEnv"
    assert_same_bits(ours["prob"].astype(theirs["prob"].dtype), theirs["prob"], f"{where}['prob']")


DIFFERENCES = (
    Difference(
        "final_obs",
        "One array with a row a lane, instead of n Python objects; rows count where _final_obs is true.",
        _compare_final_obs,
    ),
    Difference(
        "prob",
        "Always float64, instead of the type that the first lane's has in that call.",
        _compare_prob,
    ),
)


def compare_infos(ours: Any, theirs: dict[str, Any], where: str) -> None:
    """Compares two info dicts, but for what DIFFERENCES lists.

    Raises:
        AssertionError: names the first key that differs.
    """
    assert type(ours) is dict, f"{where}: {type(ours).__name__}, expected dict"
    assert set(ours) == set(theirs), f"{where}: keys {sorted(ours)}, expected {sorted(theirs)}"
    differences = {difference.key: difference for difference in DIFFERENCES}
    for key, value in theirs.items():
        if key in differences:
            differences[key].compare(ours, theirs, where)
        elif isinstance(value, dict):
            compare_infos(ours[key], value, f"{where}[{key!r}]")
        else:
            assert_same_bits(ours[key], value, f"{where}[{key!r}]")


@dataclass
class Lockstep:
    """Two vector envs that get the same calls.

    Attributes:
        ours: fastvec's env.
        oracle: Gymnasium's.
        obs: the last observation.
        ended: lanes whose last step ended an episode and that were not reset since, bool (n,).
        state_names: the attributes of Gymnasium's env that hold its state.
        counts: how often things happened, so that a test can say that what it is about did.
    """

    ours: VectorEnv[Any, Any, Any]
    oracle: VectorEnv[Any, Any, Any]
    obs: Any = None
    ended: npt.NDArray[np.bool_] = field(init=False)
    state_names: tuple[str, ...] = field(init=False)
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        assert self.ours.num_envs == self.oracle.num_envs
        self.ended = np.zeros(self.ours.num_envs, np.bool_)
        # What from_tables makes has no spec, and no state but the observation; of other envs nothing is known.
        id = None if self.ours.spec is None else self.ours.spec.id.removeprefix("fastvec/")
        self.state_names = tuple(registry.NATIVE_ENVS[id].state) if id in registry.NATIVE_ENVS else ()
        self.counts = dict.fromkeys(("steps", "resets", "terminated", "truncated", "both"), 0)

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Resets both. Each gets its own copy of the options, since SyncVectorEnv takes the mask out of the dict."""
        our_options = copy.deepcopy(options)
        our_obs, our_info = self.ours.reset(seed=seed, options=our_options)
        obs, info = self.oracle.reset(seed=seed, options=copy.deepcopy(options))
        where = f"reset {self.counts['resets']} (seed={seed}, options={options})"
        assert_same_bits(our_obs, obs, f"{where}: observation")
        compare_infos(our_info, info, f"{where}: info")
        assert_same_bits(our_options, options, f"{where}: the caller's options")
        self._compare_states(where)
        self.ended &= ~options["reset_mask"] if options and "reset_mask" in options else False
        self.obs = our_obs
        self.counts["resets"] += 1

    def step(self, actions: Any) -> None:
        """Steps both."""
        ours = self.ours.step(actions)
        theirs = self.oracle.step(actions)
        where = f"step {self.counts['steps']} (after {self.counts['resets']} resets)"
        names = ("observation", "rewards", "terminations", "truncations")
        for name, our_array, their_array in zip(names, ours[:4], theirs[:4], strict=True):
            assert_same_bits(our_array, their_array, f"{where}: {name}")
        compare_infos(ours[4], theirs[4], f"{where}: info")
        self._compare_states(where)
        self.obs, _, terminations, truncations, _ = ours
        self.ended = terminations | truncations
        self.counts["steps"] += 1
        self.counts["terminated"] += int(terminations.sum())
        self.counts["truncated"] += int(truncations.sum())
        self.counts["both"] += int((terminations & truncations).sum())

    def _compare_states(self, where: str) -> None:
        for name in self.state_names:
            ours, theirs = (np.array(env.unwrapped.get_attr(name), np.float64) for env in (self.ours, self.oracle))
            assert_same_bits(ours, theirs, f"{where}: {name}")


def run_lockstep(
    make_ours: Callable[[], VectorEnv[Any, Any, Any]],
    make_oracle: Callable[[], VectorEnv[Any, Any, Any]],
    *,
    seeds: Sequence[Any] = (0,),
    lane_steps: int = 2_000,
    policy: Callable[[Any], npt.NDArray[Any]] | None = None,
    interruptions: float = 0.02,
) -> dict[str, int]:
    """Runs two vector envs side by side, with random actions and now and then a reset that nothing called for.

    In DISABLED mode lanes that ended are reset by a mask, as a user would.

    Args:
        make_ours: builds fastvec's env.
        make_oracle: builds Gymnasium's.
        seeds: arguments of ``reset``, one after the other; each begins an equal share of the steps.
        lane_steps: steps times lanes, over all seeds.
        policy: observation -> actions, instead of random actions.
        interruptions: probability before each step of a reset of some or all lanes, with or without seeds.

    Returns:
        How often things happened; see :class:`Lockstep`.
    """
    pair = Lockstep(make_ours(), make_oracle())
    n = pair.ours.num_envs
    rng = np.random.default_rng(lane_steps)
    disabled = pair.ours.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    steps = -(-lane_steps // (n * len(seeds)))
    for seed in seeds:
        pair.reset(seed)
        for _ in range(steps):
            if disabled and pair.ended.any():
                pair.reset(options={"reset_mask": pair.ended.copy()})
            if rng.random() < interruptions:
                interrupt(pair, rng)
            pair.step(sample_actions(pair.ours.single_action_space, (n,), rng) if policy is None else policy(pair.obs))
    pair.ours.close()
    pair.oracle.close()
    return pair.counts


def interrupt(pair: Lockstep, rng: np.random.Generator) -> None:
    """Resets all lanes or a random part of them, with no seed, an int, or a list that leaves some streams running."""
    n = pair.ours.num_envs
    seeds = [int(seed) if rng.random() < 0.5 else None for seed in rng.integers(2**63, size=n)]
    seed = (None, int(rng.integers(2**63)), seeds)[rng.integers(3)]
    mask = rng.random(n) < 0.5
    options = {"reset_mask": mask} if mask.any() and rng.random() < 0.8 else None
    pair.reset(seed, options)
