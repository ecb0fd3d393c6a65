"""NormalizeObservation and NormalizeReward: Gymnasium's bits where Gymnasium has any, and the same rule elsewhere."""

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as gymnasium_wrappers

import fastvec

MODES = ("SameStep", "NextStep", "Disabled")
STEPS = 60
RELEASE = tuple(int(part) for part in gymnasium.__version__.split(".")[:2])


def make(mode, n=3, env_id="CartPole-v1", limit=15):
    return fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit)


def make_sync(mode, n=3, env_id="CartPole-v1", limit=15):
    one = [lambda: gymnasium.make(env_id, max_episode_steps=limit)]
    return SyncVectorEnv(one * n, autoreset_mode=AutoresetMode(mode))


def results(env, steps=STEPS, seed=4, masked=True):
    """Yields (observation, rewards, flags, info) of a reset (without rewards) and of each step, all copied."""
    env.action_space.seed(seed)
    observation, info = env.reset(seed=seed)
    yield copy.deepcopy((observation, None, None, info))
    for _ in range(steps):
        observation, rewards, terminations, truncations, info = env.step(env.action_space.sample())
        ended = terminations | truncations
        yield copy.deepcopy((observation, rewards, ended, info))
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            observation, info = env.reset(options={"reset_mask": ended} if masked else None)
            yield copy.deepcopy((observation, None, ended, info))


def assert_same_results(found, expected):
    """Compares observations and rewards by their bits; both are iterables of what results() yields."""
    ends = 0
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            assert type(a) is type(b)
            if a is not None:
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes()
        ends += ours[2] is not None and ours[2].any()
    assert ends > 2


# Observations


@pytest.mark.parametrize("maker", [make, make_sync])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_observations_have_gymnasiums_bits_in_next_step_mode(env_id, maker):
    ours = fastvec.NormalizeObservation(maker("NextStep", env_id=env_id), epsilon=1e-3)
    theirs = gymnasium_wrappers.NormalizeObservation(maker("NextStep", env_id=env_id), epsilon=1e-3)
    assert_same_results(results(ours), results(theirs))
    shape = ours.env.single_observation_space.shape
    assert ours.single_observation_space == gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
    assert ours.observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (3, *shape), np.float32)
    assert ours.obs_rms.mean.tobytes() == theirs.obs_rms.mean.tobytes()
    assert ours.obs_rms.var.tobytes() == theirs.obs_rms.var.tobytes()
    assert ours.obs_rms.count == theirs.obs_rms.count
    ours.update_running_mean = theirs.update_running_mean = False
    mean = ours.obs_rms.mean.copy()
    assert_same_results(results(ours, seed=5), results(theirs, seed=5))
    assert ours.obs_rms.mean.tobytes() == mean.tobytes()


def normalized(rows, moments, epsilon=1e-8):
    return ((rows - moments.mean) / np.sqrt(moments.var + epsilon)).astype(np.float32)


@pytest.mark.parametrize("maker", [make, make_sync])
@pytest.mark.parametrize("mode", MODES)
def test_observations_and_final_observations_are_normalised_alike(mode, maker):
    """Against Gymnasium's running moments, fed by hand; those of a step are used for all that the step shows."""
    moments = gymnasium_wrappers.NormalizeObservation(make("NextStep")).obs_rms
    finals = 0
    wrapped = results(fastvec.NormalizeObservation(maker(mode)))
    for (observation, _, ended, info), (raw, rewards, _, raw_info) in zip(wrapped, results(maker(mode)), strict=True):
        is_masked_reset = rewards is None and ended is not None
        moments.update(raw[ended] if is_masked_reset else raw)
        assert observation.dtype == np.float32
        assert observation.tobytes() == normalized(raw, moments).tobytes()
        assert info.keys() == raw_info.keys()
        if "final_obs" in info:
            assert info["_final_obs"].tolist() == ended.tolist()
            assert len(info["final_obs"]) == 3
            for lane in range(3):
                final, raw_final = info["final_obs"][lane], raw_info["final_obs"][lane]
                if ended[lane]:
                    assert final.tobytes() == normalized(raw_final, moments).tobytes()
                    finals += 1
                else:
                    assert final is None if raw_final is None else final.tolist() == raw_final.tolist() == [0.0] * 4
    assert (finals > 2) == (mode == "SameStep")


def test_the_env_keeps_its_own_arrays():
    """With copy=False they are the env's: what it shows next must not be normalised twice."""
    plain = fastvec.NormalizeObservation(make("SameStep"))
    reusing = fastvec.NormalizeObservation(
        fastvec.make("CartPole-v1", n=3, autoreset_mode="SameStep", max_episode_steps=15, copy=False)
    )
    assert_same_results(results(reusing), results(plain))


def test_the_statistics_are_those_of_the_observations():
    """Of all that was shown, and of nothing else: no final observation is in them."""
    env = fastvec.NormalizeObservation(make("SameStep"))
    list(results(env))
    moments = gymnasium_wrappers.NormalizeObservation(make("NextStep")).obs_rms
    for observation, *_ in results(make("SameStep")):
        moments.update(observation)
    assert env.obs_rms.count == moments.count
    assert env.obs_rms.mean.tobytes() == moments.mean.tobytes()
    assert env.obs_rms.var.tobytes() == moments.var.tobytes()


# Rewards


if RELEASE >= (1, 4):  # before, Gymnasium's knew nothing of autoreset modes

    @pytest.mark.parametrize("maker", [make, make_sync])
    @pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
    @pytest.mark.parametrize("mode", MODES)
    def test_rewards_have_gymnasiums_bits(mode, env_id, maker):
        ours = fastvec.NormalizeReward(maker(mode, env_id=env_id), gamma=0.9, epsilon=1e-3)
        theirs = gymnasium_wrappers.NormalizeReward(maker(mode, env_id=env_id), gamma=0.9, epsilon=1e-3)
        assert_same_results(results(ours, masked=False), results(theirs, masked=False))
        assert ours.return_rms.mean == theirs.return_rms.mean
        assert ours.return_rms.var == theirs.return_rms.var
        assert ours.return_rms.count == theirs.return_rms.count
        ours.update_running_mean = theirs.update_running_mean = False
        assert_same_results(results(ours, seed=5, masked=False), results(theirs, seed=5, masked=False))

    def test_rewards_have_gymnasiums_bits_when_a_mask_has_all_lanes():
        ours = fastvec.NormalizeReward(make("Disabled", n=1))
        theirs = gymnasium_wrappers.NormalizeReward(make("Disabled", n=1))
        assert_same_results(results(ours), results(theirs))


@pytest.mark.parametrize("mode", MODES)
def test_rewards_by_the_stated_rule(mode):
    """One lane after another in plain Python: the rewards of CartPole are 1, those of reset rows 0 and not counted."""
    env = fastvec.NormalizeReward(make(mode), gamma=0.5, epsilon=0.25)
    returns, pending, terminated = [0.0] * 3, [False] * 3, np.zeros(3, bool)
    moments = {"mean": np.float64(0), "var": np.float64(1), "count": 1e-4}
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(STEPS):
        _, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        for lane in range(3):
            if not pending[lane]:
                returns[lane] = (0.0 if terminated[lane] else returns[lane] * 0.5) + 1
        rows = np.float32([returns[lane] for lane in range(3) if not pending[lane]])
        if len(rows):
            k, total, shift = len(rows), moments["count"] + len(rows), rows.mean() - moments["mean"]
            squares = moments["var"] * moments["count"] + rows.var() * k + shift**2 * moments["count"] * k / total
            moments = {"mean": moments["mean"] + shift * k / total, "var": squares / total, "count": total}
        raw = np.array([0.0 if each else 1.0 for each in pending])
        assert rewards.tolist() == (raw / np.sqrt(moments["var"] + 0.25)).tolist()
        ended = terminated | truncated
        if mode == "NextStep":
            pending = ended.tolist()
        else:
            returns = [0.0 if end else kept for end, kept in zip(ended, returns, strict=True)]
            if mode == "Disabled" and ended.any():
                env.reset(options={"reset_mask": ended})


# State, switches and refusals


@pytest.mark.parametrize("wrapper", [fastvec.NormalizeObservation, fastvec.NormalizeReward])
@pytest.mark.parametrize("mode", MODES)
def test_state_goes_on_bit_for_bit(wrapper, mode):
    first = wrapper(make(mode))
    list(results(first, steps=41))
    state, env_state = first.get_state(), first.unwrapped.get_state()
    kept = copy.deepcopy(state)
    second = wrapper(make(mode))
    second.set_state(state)
    second.unwrapped.set_state(env_state)
    for step in range(30):
        actions = np.full(3, step % 2)
        ours, theirs = second.step(actions), first.step(actions)
        for a, b in zip(ours[:4], theirs[:4], strict=True):
            assert a.tobytes() == b.tobytes()
        if mode == "Disabled" and (ours[2] | ours[3]).any():
            for env in (first, second):
                env.reset(options={"reset_mask": ours[2] | ours[3]})
    for name, value in kept.items():  # the state is a copy
        assert np.array_equal(state[name], value), name


@pytest.mark.parametrize("wrapper", [fastvec.NormalizeObservation, fastvec.NormalizeReward])
def test_a_wrong_state_is_refused_and_changes_nothing(wrapper):
    env = wrapper(make("SameStep"))
    list(results(env))
    state = env.get_state()
    wrong = [
        None,
        {},
        {name: value for name, value in state.items() if name != "mean"},
        {**state, "more": 1},
        {**state, "mean": np.zeros(7)},
        {**state, "var": np.zeros(np.shape(state["var"]), int)},
    ]
    if wrapper is fastvec.NormalizeReward:
        wrong += [{**state, "returns": np.zeros(2, np.float32)}, {**state, "ended": np.zeros(3)}]
    for each in wrong:
        with pytest.raises(ValueError, match="set_state"):
            env.set_state(each)
        for name, value in env.get_state().items():
            assert np.array_equal(value, state[name]), name


@pytest.mark.parametrize("mode", MODES)
def test_both_together_train_and_evaluate(mode):
    env = fastvec.NormalizeReward(fastvec.NormalizeObservation(make(mode)))
    buffer = fastvec.RolloutBuffer(env, 40)
    observation, _ = buffer.reset(seed=0)
    shown = [observation.copy()]
    while not buffer.full:
        shown.append(buffer.step([1, 0, 1])[0].copy())
    assert buffer.observations.tolist() == np.stack(shown[:-1]).tolist()
    buffer.finish(np.zeros(3), np.zeros(len(buffer.final_observations)))
    env.env.update_running_mean = False
    count = env.env.obs_rms.count
    result = fastvec.evaluate(lambda observation: (observation[:, 2] > 0).astype(int), env.env, episodes=5, seed=0)
    assert env.env.obs_rms.count == count
    assert result.mean == 15


def test_refusals():
    env = make("SameStep")
    for wrapper in (fastvec.NormalizeObservation, fastvec.NormalizeReward):
        for epsilon in (0, -1e-8, float("nan")):
            with pytest.raises(ValueError, match=f"epsilon is {epsilon}; expected a number above 0"):
                wrapper(env, epsilon=epsilon)
    with pytest.raises(ValueError, match=r"gamma is 1\.5; expected a number from 0 to 1"):
        fastvec.NormalizeReward(env, gamma=1.5)
    with pytest.raises(TypeError, match=r"observation space is Discrete\(16\); expected a Box"):
        fastvec.NormalizeObservation(fastvec.make("FrozenLake-v1"))
    env.metadata = {}
    with pytest.raises(ValueError, match=r"metadata\['autoreset_mode'\] is None"):
        fastvec.NormalizeReward(env)
