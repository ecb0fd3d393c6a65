"""Properties over random calls: whatever n, seeds, modes, limits and order of calls, fastvec stays in lock-step with
Gymnasium's SyncVectorEnv.

The examples are the same in every run (see conftest.py); ``--hypothesis-profile=full`` draws many new ones."""

import copy
import pickle

import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode
from hypothesis import given, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lockstep import Lockstep
from rollout import lanes_of, make_oracle, play, proceed

import fastvec

IDS = st.sampled_from(["CartPole-v1", "Counter-v0"])
MODES = st.sampled_from(list(AutoresetMode))
LIMITS = st.none() | st.just(-1) | st.integers(1, 30)
SEED = st.one_of(
    st.integers(0, 2**32), st.integers(2**32 - 3, 2**32 + 3), st.integers(2**64 - 3, 2**64 + 3), st.integers(0, 2**256)
)


def seeds_for(n):
    return SEED | st.lists(SEED, min_size=n, max_size=n)


def actions_for(*shape):
    """Actions of two-action envs, from one seed: hypothesis need not shrink each of them."""
    return st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).integers(0, 2, shape))


@given(data=st.data(), env_id=IDS, n=st.integers(1, 6), mode=MODES, limit=LIMITS, copy_outputs=st.booleans())
def test_lockstep(data, env_id, n, mode, limit, copy_outputs):
    pair = Lockstep(
        fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit, copy=copy_outputs),
        make_oracle(env_id, n, mode, max_episode_steps=limit),
    )
    for seed in (data.draw(seeds_for(n)), data.draw(st.none() | seeds_for(n))):
        pair.reset(seed)
        for row in data.draw(actions_for(40, n)):
            if mode == AutoresetMode.DISABLED and pair.ended.any():
                pair.reset(options={"reset_mask": pair.ended.copy()})
            pair.step(row)


@given(data=st.data(), env_id=IDS, n=st.integers(1, 2200), mode=MODES, limit=LIMITS, seed=SEED)
def test_any_lane_alone_is_the_same(data, env_id, n, mode, limit, seed):
    lane = data.draw(st.integers(0, n - 1))
    actions = data.draw(actions_for(40, n))
    kwargs = {"autoreset_mode": mode, "max_episode_steps": limit}
    together = play(fastvec.make(env_id, n=n, **kwargs), actions, seed=seed)
    alone = play(fastvec.make(env_id, n=1, **kwargs), actions[:, lane : lane + 1], seed=seed + lane)
    assert_same_bits(alone, lanes_of(together, [lane]), f"lane {lane} of {n}")


@given(data=st.data(), env_id=IDS, mode=MODES, limit=st.integers(1, 40))
def test_no_episode_exceeds_the_limit_and_ends_only_where_flagged(data, env_id, mode, limit):
    """The lengths that the statistics tell are the steps between one end and the next."""
    n = 8
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit, episode_stats=True)
    env.reset(seed=data.draw(SEED))
    length, waiting = np.zeros(n, np.int64), np.zeros(n, bool)
    for row in data.draw(actions_for(120, n)):
        _, _, terminations, truncations, info = env.step(row)
        length[~waiting] += 1
        ended = terminations | truncations
        assert not (ended & waiting).any()
        assert_same_bits(truncations, (length == limit) & ~waiting, "truncations")
        assert ("episode" in info) == ended.any()
        if ended.any():
            assert_same_bits(info["_episode"], ended, "_episode")
            assert_same_bits(info["episode"]["l"], np.where(ended, length, 0), "lengths")
            if mode == AutoresetMode.DISABLED:
                env.reset(options={"reset_mask": ended})
        length[ended] = 0
        waiting = ended & (mode == AutoresetMode.NEXT_STEP)


@given(data=st.data(), env_id=IDS, n=st.integers(1, 5), mode=MODES, limit=LIMITS, before=st.integers(0, 30))
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
def test_a_copy_goes_on_alike_and_on_its_own(data, duplicate, env_id, n, mode, limit, before):
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit)
    play(env, data.draw(actions_for(before, n)), seed=data.draw(SEED)) if before else env.reset(seed=data.draw(SEED))
    twin = duplicate(env)
    actions = data.draw(actions_for(40, n))
    first = proceed(env, actions)
    assert_same_bits(proceed(twin, actions), first, "the copy")
    assert_same_bits(twin.reset()[0], env.reset()[0], "the copy's next reset")


class Calls(RuleBasedStateMachine):
    """Any calls in any order, good and bad ones, against SyncVectorEnv, which never sees the bad ones."""

    @initialize(data=st.data(), env_id=IDS, n=st.integers(1, 5), mode=MODES, limit=LIMITS)
    def begin(self, data, env_id, n, mode, limit):
        self.n, self.mode = n, mode
        self.pair = Lockstep(
            fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit),
            make_oracle(env_id, n, mode, max_episode_steps=limit),
        )
        self.pair.reset(data.draw(seeds_for(n)))

    def may_step(self):
        return self.mode != AutoresetMode.DISABLED or not self.pair.ended.any()

    @precondition(may_step)
    @rule(data=st.data(), steps=st.integers(1, 25))
    def step(self, data, steps):
        for row in data.draw(actions_for(steps, self.n)):
            if self.may_step():
                self.pair.step(row)

    @rule(data=st.data())
    def reset_all(self, data):
        self.pair.reset(data.draw(st.none() | seeds_for(self.n)))

    @rule(data=st.data())
    def reset_some(self, data):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=self.n, max_size=self.n).filter(any)))
        seed = data.draw(st.none() | SEED | st.lists(st.none() | SEED, min_size=self.n, max_size=self.n))
        self.pair.reset(seed, {"reset_mask": mask})

    @precondition(lambda self: self.pair.ended.any())
    @rule()
    def reset_the_ended(self):
        self.pair.reset(options={"reset_mask": self.pair.ended.copy()})

    @rule(data=st.data(), value=st.sampled_from([-1, 2, 2**40, -(2**63)]))
    def step_with_a_value_out_of_range(self, data, value):
        actions = np.zeros(self.n, np.int64)
        actions[data.draw(st.integers(0, self.n - 1))] = value
        self.refused(lambda: self.pair.ours.step(actions))

    @rule(extra=st.sampled_from([-1, 1, 3]))
    def step_with_a_wrong_count(self, extra):
        self.refused(lambda: self.pair.ours.step(np.zeros(max(0, self.n + extra), np.int64)))

    @rule(data=st.data(), bad=st.sampled_from([-1, 1.0, "0"]))
    def reset_with_a_bad_seed(self, data, bad):
        seeds = data.draw(st.lists(SEED, min_size=self.n, max_size=self.n))
        seeds[data.draw(st.integers(0, self.n - 1))] = bad
        self.refused(lambda: self.pair.ours.reset(seed=seeds))

    @rule()
    def reset_with_a_bad_mask(self):
        self.refused(lambda: self.pair.ours.reset(seed=1, options={"reset_mask": np.zeros(self.n, bool)}))

    def refused(self, call):
        try:
            call()
        except Exception as error:  # which error it is, the contract tests say
            note(repr(error))
        else:
            raise AssertionError("the bad call was taken")

    @invariant()
    def shows_what_it_last_returned(self):
        if hasattr(self, "pair"):
            assert self.pair.ours.num_envs == self.n
            assert not self.pair.ours.closed


TestCalls = Calls.TestCase
