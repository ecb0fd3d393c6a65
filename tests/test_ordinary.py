"""Backends of ordinary Python envs: the results of SyncVectorEnv over the same envs, and what fastvec adds."""

import collections
import copy
import functools
import pickle
import threading

import gymnasium as gym
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit, TransformReward
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from lockstep import Lockstep, run_lockstep
from ordinary_envs import InfosEnv, LaneEnv, MixedInfosEnv, NestedEnv, OneArrayEnv, WordsEnv
from rollout import sample_actions

import fastvec
from fastvec.testing import check_vector_env
from fastvec.testing.checks import WRAPPER_COUNTS_SAME_STEP

N = 4
MODES = list(AutoresetMode)
# A source for fastvec.make, and its keywords; SyncVectorEnv gets the same envs.
SOURCES = {
    "CartPole": ("CartPole-v1", {"max_episode_steps": 15}),
    "FrozenLake": ("FrozenLake-v1", {}),
    "Pendulum": ("Pendulum-v1", {"max_episode_steps": 20, "g": 9.0}),
    "Blackjack": ("Blackjack-v1", {}),
    "nested": (NestedEnv, {"max_episode_steps": 12}),
    "one array": (OneArrayEnv, {"length": 4}),
    "infos": (InfosEnv, {}),
    "infos without options": (InfosEnv, {"tells_options": False}),
    "words": (WordsEnv, {}),
}


@pytest.fixture(params=["serial", "process"])
def backend(request):
    return request.param


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def mode(request):
    return request.param


def make_single(source, max_episode_steps=None, **kwargs):
    if isinstance(source, str):
        return gym.make(source, disable_env_checker=True, max_episode_steps=max_episode_steps, **kwargs)
    env = source(**kwargs)
    return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)


def make_pair(name, backend, mode, n=N, **ours):
    source, kwargs = SOURCES[name]
    own = fastvec.make(source, n, backend=backend, autoreset_mode=mode, **kwargs, **ours)
    return own, SyncVectorEnv([functools.partial(make_single, source, **kwargs)] * n, autoreset_mode=mode)


def sampler(space):
    space.seed(5)
    return lambda obs: space.sample()


# Results


@pytest.mark.parametrize("name", list(SOURCES))
def test_results_are_those_of_sync_vector_env(name, backend, mode):
    own, oracle = make_pair(name, backend, mode)
    policy = sampler(own.action_space)
    if name == "CartPole":
        rng = np.random.default_rng(2)
        policy = lambda obs: sample_actions(own.single_action_space, (N,), rng)  # noqa: E731
    if name == "one array" and mode == AutoresetMode.SAME_STEP:
        own, oracle = make_pair(name, backend, AutoresetMode.NEXT_STEP)  # SyncVectorEnv loses its final_obs
    if name == "one array":  # which writes to the actions that SyncVectorEnv gives it
        policy = lambda obs: np.zeros((N, 2), np.float32)  # noqa: E731
    if name == "FrozenLake":
        own = ProbAsFloat(own)
    counts = run_lockstep(lambda: own, lambda: oracle, seeds=(0, [5, None, 7, 2**70]), lane_steps=1200, policy=policy)
    assert counts["terminated"] + counts["truncated"] > 20


class ProbAsFloat(gym.vector.VectorWrapper):
    """FrozenLake's probabilities as native lanes have them, and so lock-step expects; int where all are, otherwise."""

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        return obs, _with_float_prob(info)

    def step(self, actions):
        *result, info = self.env.step(actions)
        return *result, _with_float_prob(info)


def _with_float_prob(info):
    return {
        key: value.astype(np.float64) if key == "prob" else _with_float_prob(value) if key == "final_info" else value
        for key, value in info.items()
    }


def test_the_last_of_the_lanes_is_as_the_first(backend):
    """A lane does not depend on how many there are."""
    actions = np.random.default_rng(0).integers(0, 2, (60, 5))
    whole = fastvec.make("CartPole-v1", 5, backend=backend, max_episode_steps=15)
    alone = fastvec.make("CartPole-v1", 1, backend=backend, max_episode_steps=15)
    assert_same_bits(whole.reset(seed=10)[0][4:], alone.reset(seed=14)[0], "reset")
    for row in actions:
        for one, other in zip(whole.step(row)[:4], alone.step(row[4:])[:4], strict=True):
            assert_same_bits(one[4:], other, "step")


def test_native_lanes_are_those_of_the_backend(backend, mode):
    native = fastvec.make("CartPole-v1", N, autoreset_mode=mode, max_episode_steps=15)
    ordinary = fastvec.make("CartPole-v1", N, backend=backend, autoreset_mode=mode, max_episode_steps=15)
    assert (native.backend, ordinary.backend) == ("native", backend)
    run_lockstep(lambda: ordinary, lambda: FinalObsAsObjects(native), lane_steps=800)


class FinalObsAsObjects(gym.vector.VectorWrapper):
    """Native lanes as the oracle of a lock-step, which expects SyncVectorEnv's form of final_obs."""

    def step(self, actions):
        *result, info = self.env.step(actions)
        if "final_obs" in info:
            rows = np.full(self.num_envs, None, object)
            for lane in np.flatnonzero(info["_final_obs"]):
                rows[lane] = info["final_obs"][lane]
            info["final_obs"] = rows
        return *result, info

    def get_attr(self, name):
        return self.env.get_attr(name)


def test_final_obs_has_a_row_a_lane_that_is_zero_where_none_ended(backend):
    factories = [functools.partial(LaneEnv, length=length) for length in (2, 3)]
    env = fastvec.make(factories, backend=backend, autoreset_mode="SameStep")
    env.reset(seed=0)
    assert env.step([0, 0])[-1] == {}
    info = env.step([0, 0])[-1]
    assert_same_bits(info["final_obs"], np.array([[2], [0]], np.float32), "final_obs")
    assert_same_bits(info["_final_obs"], np.array([True, False]), "_final_obs")
    assert info["final_info"] == {}
    assert_same_bits(info["_final_info"], np.array([True, False]), "_final_info")


def test_an_env_that_reuses_its_array_has_the_right_final_obs(backend):
    env = fastvec.make(OneArrayEnv, 2, backend=backend, autoreset_mode="SameStep")
    env.reset(seed=3)
    for _ in range(5):
        obs, *_, info = env.step(np.ones((2, 2), np.float32))
    assert info["final_obs"][:, 0].tolist() == [4.0, 4.0]
    assert obs[:, 0].tolist() == [-1.0, -1.0]
    assert info["final_info"]["steps"].tolist() == [5, 5]
    assert info["steps"].tolist() == [0, 0]


def test_infos_of_one_lane_do_not_decide_the_type_of_others(backend):
    env = fastvec.make(MixedInfosEnv, 3, backend=backend)
    env.reset(seed=0)
    for actions in ([0, 1, 0], [1, 0, 0]):
        info = env.step(actions)[-1]
        assert info["number"].dtype == np.float64
        assert info["number"].tolist() == [0.25 if action else 1.0 for action in actions]
        assert info["array"].dtype == np.float64
        assert info["array"].tolist() == [[0.5, 0.75] if action else [0.0, 0.0] for action in actions]
        assert info["anything"].tolist() == [3 if action else "text" for action in actions]


@pytest.mark.parametrize(
    ("backend", "name", "stats"),
    [
        *(("serial", name, stats) for name in ("FrozenLake", "nested", "one array") for stats in (False, True)),
        ("serial", "infos without options", False),
        ("process", "nested", True),  # starts a worker for every check
    ],
)
def test_no_rule_of_the_vector_api_is_broken(name, stats, backend, mode):
    source, kwargs = SOURCES[name]
    check_vector_env(
        lambda: fastvec.make(source, 3, backend=backend, autoreset_mode=mode, episode_stats=stats, **kwargs),
        single_env=lambda: make_single(source, **kwargs),
        steps=30,
    )


def test_copy_false_reuses_every_array(backend):
    env = fastvec.make(LaneEnv, 3, backend=backend, copy=False)
    first = env.reset(seed=0)[0]
    one, other = env.step([0, 1, 2]), env.step([2, 1, 0])
    assert all(a is b for a, b in zip(one[:4], other[:4], strict=True))
    assert other[0] is first
    assert other[0][:, 0].tolist() == [4, 4, 4]


def test_what_was_returned_stays(backend):
    env = fastvec.make(NestedEnv, 3, backend=backend, autoreset_mode="SameStep")
    policy = sampler(env.action_space)
    env.reset(seed=0)
    kept = [env.step(policy(None)) for _ in range(30)]
    copies = copy.deepcopy(kept)
    for _ in range(5):
        env.step(policy(None))
    env.close()
    assert_same_bits(kept, copies, "results")


# Statistics


@pytest.mark.parametrize("mode", [each for each in MODES if WRAPPER_COUNTS_SAME_STEP or each.name != "SAME_STEP"])
@pytest.mark.parametrize("name", ["Pendulum", "FrozenLake"])
def test_statistics_are_those_of_the_wrapper(name, backend, mode):
    own, oracle = make_pair(name, backend, mode, episode_stats=True)
    own = ProbAsFloat(own) if name == "FrozenLake" else own
    pair = Lockstep(WithoutSeconds(own), WithoutSeconds(RecordEpisodeStatistics(oracle)))
    policy, rng = sampler(own.action_space), np.random.default_rng(1)
    pair.reset(seed=1)
    ends = 0
    for _ in range(200):
        pair.step(policy(None))
        ends += int(pair.ended.sum())
        if mode == AutoresetMode.DISABLED and pair.ended.any():
            pair.reset()  # of all: SyncVectorEnv hides masks from its wrapper
        elif rng.random() < 0.03:
            pair.reset(seed=int(rng.integers(100)))
    assert ends > 4


class WithoutSeconds(gym.vector.VectorWrapper):
    def step(self, actions):
        *result, info = self.env.step(actions)
        if "episode" in info:
            assert info["episode"].pop("t").dtype == np.float64
        return *result, info

    def get_attr(self, name):
        return self.env.unwrapped.get_attr(name)


def test_a_mask_begins_the_statistics_of_its_lanes_alone(backend):
    env = fastvec.make([functools.partial(LaneEnv, lane, 4) for lane in (1, 2)], backend=backend, episode_stats=True)
    env.reset(seed=0)
    env.step([0, 0])
    env.reset(options={"reset_mask": np.array([True, False])})
    infos = [env.step([0, 0])[-1] for _ in range(4)]
    assert [sorted(info) for info in infos] == [[], [], ["_episode", "episode"], ["_episode", "episode"]]
    assert infos[2]["episode"]["r"].tolist() == [0.0, 8.0]
    assert infos[3]["episode"]["l"].tolist() == [4, 0]
    assert infos[3]["_episode"].tolist() == [True, False]


def test_statistics_beside_the_envs_own_are_refused(backend):
    wrappers = [gym.wrappers.RecordEpisodeStatistics]
    env = fastvec.make(LaneEnv, 2, backend=backend, length=1, wrappers=wrappers, episode_stats=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="episode_stats"):
        env.step([0, 0])


# Resets


def test_options_reach_the_envs_without_the_mask(backend):
    env = fastvec.make(InfosEnv, 2, backend=backend)
    assert env.reset(options={"low": 1})[1]["options"]["low"].tolist() == [1, 1]
    mask = np.array([False, True])
    options = {"low": 2, "reset_mask": mask}
    info = env.reset(options=options)[1]
    assert options == {"low": 2, "reset_mask": mask}
    assert info["_options"].tolist() == [False, True]
    assert list(info["options"]) == ["low", "_low"]


def test_autoresets_have_no_options(backend):
    """B7: options hold for one reset."""
    env = fastvec.make(InfosEnv, 1, backend=backend, autoreset_mode="SameStep")
    env.reset(seed=0, options={"low": 1})
    for _ in range(100):
        info = env.step([0])[-1]
        if "final_obs" in info:
            break
    assert info["options"].tolist() == [None]


def test_envs_without_a_seed_differ(backend):
    one, other = (fastvec.make("CartPole-v1", 2, backend=backend) for _ in range(2))
    assert one.reset()[0].tolist() != other.reset()[0].tolist()


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, gym.error.Error), (np.int64(1), TypeError), ([1], ValueError), (1.5, TypeError)]
)
def test_a_bad_seed_moves_nothing(seed, error, backend):
    env = fastvec.make("CartPole-v1", 2, backend=backend)
    env.reset(seed=0)
    before = env.get_attr("state")
    with pytest.raises(error, match="seed"):
        env.reset(seed=seed)
    assert_same_bits(env.get_attr("state"), before, "state")


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False], TypeError),
        (np.ones(3, bool), ValueError),
        (np.ones(2), TypeError),
        (np.zeros(2, bool), ValueError),
    ],
)
def test_a_bad_mask_is_refused(mask, error, backend):
    env = fastvec.make("CartPole-v1", 2, backend=backend)
    env.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        env.reset(options={"reset_mask": mask})


def test_calls_in_the_wrong_order_are_refused(backend):
    """C15, A4."""
    env = fastvec.make(LaneEnv, 2, backend=backend, autoreset_mode="Disabled", length=1)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step([0, 0])
    with pytest.raises(ResetNeeded, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([True, True])})
    env.reset(seed=0)
    env.step([0, 0])
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step([0, 0])
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="lane 1"):
        env.step([0, 0])
    assert env.get_attr("total") == (1, 1)


# Actions


@pytest.mark.parametrize("actions", [[0], [0, 0, 0], 0, [], [[0], [0]]])
def test_a_wrong_number_of_actions_moves_nothing(actions, backend):
    """C1, C2."""
    env = fastvec.make(LaneEnv, 2, backend=backend)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        env.step(actions)
    assert env.step([0, 0])[0].tolist() == [[1], [1]]


FORMS = {
    "int64": lambda actions: actions,
    "int32": lambda actions: actions.astype(np.int32),
    "uint8": lambda actions: actions.astype(np.uint8),
    "big-endian": lambda actions: actions.astype(">i8"),
    "list": lambda actions: actions.tolist(),
    "tuple": lambda actions: tuple(actions.tolist()),
    "strided": lambda actions: np.repeat(actions, 2)[::2],
    "reversed": lambda actions: actions[::-1].copy()[::-1],
}


@pytest.mark.parametrize("form", list(FORMS))
def test_forms_of_actions(form, backend):
    """C5."""
    env = fastvec.make("MountainCar-v0", 3, backend=backend)
    plain = fastvec.make("MountainCar-v0", 3, backend=backend)
    assert_same_bits(env.reset(seed=0), plain.reset(seed=0), "reset")
    actions = np.array([0, 1, 2])
    given = FORMS[form](actions)
    kept = copy.deepcopy(given)
    for _ in range(3):
        assert_same_bits(env.step(given), plain.step(actions), form)
    assert_same_bits(given, kept, "actions")


def test_envs_get_the_types_that_sync_vector_env_gives():
    seen = []

    class Seeing(LaneEnv):
        def step(self, action):
            seen.append(action)
            return super().step(action)

    for env in (fastvec.make(Seeing, 2, backend="serial"), SyncVectorEnv([Seeing] * 2)):
        env.reset(seed=0)
        env.step(np.array([1, 2]))
    assert [type(action) for action in seen] == [np.int64] * 4
    assert seen[:2] == seen[2:]


def test_an_env_may_write_to_its_action(backend):
    env = fastvec.make(OneArrayEnv, 2, backend=backend)
    env.reset(seed=0)
    actions = np.ones((2, 2), np.float32)
    env.step(actions)
    assert actions.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda actions: {"move": actions["move"]}, TypeError, "'force'"),
        (lambda actions: {**actions, "force": actions["force"][:1]}, TypeError, r"actions\['force'\]"),
        (lambda actions: {**actions, "move": actions["move"][:1]}, ValueError, r"actions\['move'\]"),
        (lambda actions: {**actions, "move": actions["move"] + 0.5}, TypeError, r"actions\['move'\]"),
        (lambda actions: 0, TypeError, "dict"),
    ],
)
def test_bad_nested_actions_say_where(change, error, message, backend):
    env = fastvec.make(NestedEnv, 2, backend=backend)
    env.reset(seed=0)
    actions = env.action_space.sample()
    with pytest.raises(error, match=message):
        env.step(change(actions))
    env.step(actions)


# Attributes


def test_attributes_and_methods_reach_the_envs(backend):
    env = fastvec.make([functools.partial(LaneEnv, lane) for lane in range(3)], backend=backend)
    env.reset(seed=5)
    assert env.call("add", 10, other=5) == (15, 16, 17)
    assert env.get_attr("lane") == (0, 1, 2)
    assert env.call("lane") == (0, 1, 2)
    env.set_attr("lane", [7, 8, 9])
    assert env.step([0, 0, 0])[1].tolist() == [7, 8, 9]
    env.set_attr("lane", 4)
    assert env.get_attr("lane") == (4, 4, 4)
    assert env.np_random_seed == (5, 6, 7)
    with pytest.raises(ValueError, match="2 values for 3 lanes"):
        env.set_attr("lane", [1, 2])
    with pytest.raises(AttributeError, match="nothing_like_it"):
        env.get_attr("nothing_like_it")
    env.step([0, 0, 0])


def test_render(backend):
    env = fastvec.make(LaneEnv, 2, backend=backend, render_mode="rgb_array")
    env.set_attr("lane", [3, 4])
    assert env.render_mode == "rgb_array"
    assert [frame[0, 0, 0] for frame in env.render()] == [3, 4]


def test_wrappers_are_put_around_every_env(backend):
    wrappers = [functools.partial(TransformReward, func=_double)]
    env = fastvec.make(LaneEnv, 2, backend=backend, lane=3, max_episode_steps=2, wrappers=wrappers)
    env.reset(seed=0)
    results = [env.step([0, 0]) for _ in range(2)]
    assert results[0][1].tolist() == [6, 6]
    assert results[1][3].tolist() == [True, True]


def _double(reward):
    return 2 * reward


# Failures


def make_troubled(backend, trouble, n=4, lane=2, **kwargs):
    factories = [functools.partial(LaneEnv, i, trouble=trouble if i == lane else None) for i in range(n)]
    return fastvec.make(factories, backend=backend, **kwargs)


def notes(error):
    return "\n".join(getattr(error, "__notes__", ()))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_error_names_its_lane_and_leaves_the_others_right(mode):
    env = make_troubled("serial", "raise", autoreset_mode=mode)
    env.reset(seed=0)
    for _ in range(2):
        env.step([0, 1, 0, 2])
    with pytest.raises(ValueError, match="boom") as caught:
        env.step([0, 1, 0, 2])
    assert "lane 2" in notes(caught.value)
    assert "step" in notes(caught.value)
    assert env.failed.tolist() == [False, False, True, False]
    with pytest.raises(ResetNeeded, match="lane 2"):
        env.step([0, 0, 0, 0])
    obs, _ = env.reset(options={"reset_mask": env.failed})
    assert obs[:, 0].tolist() == [3, 6, 0, 9]
    assert env.step([0, 0, 0, 0])[0][:, 0].tolist() == [4, 7, 1, 10]


def test_an_error_in_reset_names_its_lane():
    env = make_troubled("serial", "reset")
    with pytest.raises(OSError, match="no reset") as caught:
        env.reset(seed=0)
    assert "lane 2" in notes(caught.value)
    env.envs[2].trouble = None
    env.reset(options={"reset_mask": env.failed})
    assert env.step([0] * 4)[0][:, 0].tolist() == [1, 1, 1, 1]


def test_after_an_interrupt_everything_is_reset():
    env = make_troubled("serial", "interrupt")
    env.reset(seed=0)
    env.step([0] * 4)
    env.step([0] * 4)
    with pytest.raises(KeyboardInterrupt):
        env.step([0] * 4)
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step([0] * 4)
    env.reset(seed=0)
    assert env.step([0] * 4)[0][:, 0].tolist() == [1, 1, 1, 1]


class WrongEnv(LaneEnv):
    """Returns what does not fit."""

    def step(self, action):
        good = super().step(action)
        return {1: (np.zeros(3, np.float32), *good[1:]), 2: good[:4], 0: (*good[:4], None)}[int(action)]


class OddEnv(LaneEnv):
    """Returns what it is made with, where other envs return 1.0 as reward, {} as info, and a tuple of all."""

    def __init__(self, reward=1.0, info=None, form=tuple):
        super().__init__()
        self.reward, self.info, self.form = reward, info or {}, form

    def step(self, action):
        return self.form((np.zeros(1, np.float32), self.reward, False, False, self.info))


@pytest.mark.parametrize("reward", [None, "much", [1.0]])
def test_a_reward_that_is_no_number_is_told(reward):
    env = fastvec.make(OddEnv, 2, reward=reward)
    env.reset(seed=0)
    with pytest.raises(TypeError, match="step returned the reward"):
        env.step([0, 0])


def test_what_is_as_good_as_a_tuple_and_a_dict_is_taken(backend):
    for info in (collections.OrderedDict(a=1), collections.defaultdict(int, a=1), {"b": collections.Counter("aab")}):
        env = fastvec.make(OddEnv, 2, backend=backend, info=info, form=list)
        oracle = SyncVectorEnv([functools.partial(OddEnv, info=info, form=list)] * 2)
        assert_same_bits(env.reset(seed=0), oracle.reset(seed=0), "reset")
        assert_same_bits(env.step([0, 0]), oracle.step([0, 0]), "step")
        env.close()


class EmptyEnv(gym.Env):
    """Observations of which a part has no numbers."""

    observation_space = gym.spaces.Dict(
        {"empty": gym.spaces.Box(-1, 1, (0,), np.float32), "rest": gym.spaces.Box(-1e9, 1e9, (2,), np.float64)}
    )
    action_space = gym.spaces.Discrete(1000)

    def reset(self, *, seed=None, options=None):
        return {"empty": np.zeros(0, np.float32), "rest": np.zeros(2)}, {}

    def step(self, action):
        return {"empty": np.zeros(0, np.float32), "rest": np.full(2, float(action))}, float(action), False, False, {}


@pytest.mark.parametrize("n", [1, 4, 64])
def test_empty_observations_leave_everything_else_alone(backend, n):
    env, oracle = fastvec.make(EmptyEnv, n, backend=backend), SyncVectorEnv([EmptyEnv] * n)
    assert_same_bits(env.reset(seed=0), oracle.reset(seed=0), "reset")
    for row in np.random.default_rng(0).integers(0, 1000, (20, n)):
        assert_same_bits(env.step(row), oracle.step(row), "step")
    env.close()


def test_an_env_that_is_there_already_is_refused():
    for source, message in (
        (LaneEnv(), "an env itself: give what makes it"),
        ([], "list or tuple of such functions"),
        (["CartPole-v1"], "list or tuple of such functions"),
        ((LaneEnv for _ in range(2)), "generator"),
    ):
        with pytest.raises(TypeError, match=message):
            fastvec.make(source, 2)


def test_an_unknown_version_of_an_id_names_those_that_there_are():
    gym.register("tests/Known-v3", LaneEnv)
    try:
        with pytest.raises(gym.error.NameNotFound, match="tests/Known-v3"):
            fastvec.make("tests/Known-v4")
    finally:
        gym.registry.pop("tests/Known-v3")


def test_closing_while_another_thread_steps_is_refused(backend):
    env = fastvec.make(LaneEnv, 2, backend=backend, trouble="nap", at=1)
    env.reset(seed=0)
    thread = threading.Thread(target=env.step, args=([0, 0],))
    thread.start()
    while env._running is None:
        pass
    with pytest.raises(RuntimeError, match="a step of this LaneEnv env is running"):
        env.close()
    thread.join()
    env.close()


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [(1, ValueError, r"\(3,\).*\(1,\)"), (2, ValueError, "4 values; expected 5"), (0, TypeError, "NoneType")],
)
def test_results_of_another_form_are_refused(action, error, message):
    env = fastvec.make(WrongEnv, 1, backend="serial")
    env.reset(seed=0)
    with pytest.raises(error, match=message) as caught:
        env.step([action])
    assert "lane 0" in notes(caught.value)


def test_an_error_of_a_factory_names_its_lane_and_closes_the_others():
    made = []

    def make_good():
        made.append(LaneEnv())
        return made[0]

    def make_bad():
        raise RuntimeError("no env")

    with pytest.raises(RuntimeError, match="no env") as caught:
        fastvec.make([make_good, make_bad], backend="serial")
    assert "lane 1" in notes(caught.value)
    assert made[0].was_closed


def test_envs_that_do_not_go_together_are_refused(backend):
    with pytest.raises(ValueError, match=r"lane 1.*observation_space"):
        fastvec.make([LaneEnv, OneArrayEnv], backend=backend)
    with pytest.raises((TypeError, fastvec.WorkerError), match=r"lane 0.*int.*gymnasium\.Env"):
        fastvec.make([int], backend=backend)


def test_one_env_for_two_lanes_is_refused():
    env = LaneEnv()
    with pytest.raises(ValueError, match="lane 1"):
        fastvec.make(lambda: env, 2, backend="serial")


def test_close(backend):
    """E6."""
    env = fastvec.make(LaneEnv, 2, backend=backend)
    env.reset(seed=0)
    env.close()
    env.close()
    calls = (
        lambda: env.step([0, 0]),
        lambda: env.reset(seed=0),
        lambda: env.render(),
        lambda: env.get_attr("lane"),
        lambda: env.set_attr("lane", 1),
        lambda: env.call("add", 1),
    )
    for call in calls:
        with pytest.raises(ClosedEnvironmentError, match="LaneEnv"):
            call()


def test_close_closes_all_envs():
    env = fastvec.make(LaneEnv, 3, backend="serial")
    env.close()
    assert all(one.was_closed for one in env.envs)


def test_a_second_thread_is_refused():
    begun, go_on = threading.Event(), threading.Event()

    class Waiting(LaneEnv):
        def step(self, action):
            begun.set()
            assert go_on.wait(60)
            return super().step(action)

    env = fastvec.make(Waiting, 2, backend="serial")
    env.reset(seed=0)
    thread = threading.Thread(target=env.step, args=([0, 0],))
    thread.start()
    assert begun.wait(60)
    with pytest.raises(RuntimeError, match="step of this Waiting env is running"):
        env.step([0, 0])
    go_on.set()
    thread.join(60)
    assert env.step([0, 0])[0].tolist() == [[2], [2]]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_alike_and_alone(duplicate):
    """E10."""
    env = fastvec.make("CartPole-v1", 3, backend="serial", episode_stats=True, max_episode_steps=30)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(20):
        env.step(rng.integers(0, 2, 3))
    other = duplicate(env)
    actions = rng.integers(0, 2, (60, 3))
    pair = WithoutSeconds(env), WithoutSeconds(other)
    ours, theirs = ([one.step(row) for row in actions] for one in pair)
    assert_same_bits(ours, theirs, "a copy")


# What make takes


def test_every_kind_of_source(backend):
    spec = gym.spec("CartPole-v1")
    sources = {
        "CartPole-v1": "CartPole-v1",
        "LaneEnv": LaneEnv,
        "make_lane": make_lane,
        "a list of functions": [LaneEnv, make_lane],
    }
    for label, source in (*sources.items(), ("CartPole-v1", spec)):
        env = fastvec.make(source, 2, backend=backend)
        assert (env.label, env.num_envs, env.backend) == (label, 2, backend)
        assert label in repr(env)
        env.reset(seed=0)
        env.step([0, 0])
        env.close()


def make_lane(**kwargs):
    return LaneEnv(**kwargs)


def test_what_has_no_kernel_goes_to_ordinary_envs():
    gym.register("tests/Lane-v0", LaneEnv, max_episode_steps=7)
    try:
        for source in ("tests/Lane-v0", "ordinary_envs:tests/Lane-v0", LaneEnv, gym.spec("CartPole-v1")):
            env = fastvec.make(source, 2, render_mode="rgb_array")
            assert env.backend == "serial"
        env = fastvec.make("tests/Lane-v0", 1, lane=4)
        env.reset(seed=0)
        results = [env.step([0]) for _ in range(7)]
        assert [result[3].item() for result in results] == [False] * 6 + [True]
        assert results[0][1].item() == 4
        assert env.spec.id == "tests/Lane-v0"
    finally:
        gym.registry.pop("tests/Lane-v0")


def test_a_list_says_how_many_lanes_there_are():
    assert fastvec.make([LaneEnv] * 3).num_envs == 3
    assert fastvec.make([LaneEnv] * 3, 3).num_envs == 3
    with pytest.raises(ValueError, match="n is 2 for a list of 3"):
        fastvec.make([LaneEnv] * 3, 2)
    with pytest.raises(TypeError, match="lane"):
        fastvec.make([LaneEnv] * 3, lane=1)


def test_wrappers_on_a_native_id():
    with pytest.warns(UserWarning, match="serial"):
        env = fastvec.make("CartPole-v1", 2, wrappers=[functools.partial(TransformReward, func=_double)])
    assert env.backend == "serial"
    env.reset(seed=0)
    assert env.step([0, 0])[1].tolist() == [2, 2]
    with pytest.raises(ValueError, match="wrappers"):
        fastvec.make("CartPole-v1", 2, wrappers=[TimeLimit], backend="native")
    assert fastvec.make("CartPole-v1", 2, wrappers=[]).backend == "native"


@pytest.mark.parametrize(
    ("source", "kwargs", "error", "message"),
    [
        ("CartPole-v1", {"backend": "gpu"}, ValueError, "'gpu'.*'auto'"),
        (LaneEnv, {"backend": "native"}, ValueError, "native"),
        ("tests/Unknown-v0", {"backend": "serial"}, gym.error.NameNotFound, "tests/Unknown-v0"),
        (LaneEnv, {"num_threads": 2}, ValueError, "num_threads"),
        (LaneEnv, {"precision": "float32"}, ValueError, "precision"),
        (LaneEnv, {"max_episode_steps": -1}, ValueError, "max_episode_steps"),
        (LaneEnv, {"max_episode_steps": 0}, ValueError, "max_episode_steps"),
        (LaneEnv, {"wrappers": TimeLimit}, TypeError, "wrappers"),
        (LaneEnv, {"n": 0}, ValueError, "num_envs"),
        (LaneEnv, {"autoreset_mode": "Sometimes"}, ValueError, "autoreset_mode"),
        (LaneEnv, {"gravity": 1}, TypeError, "gravity"),
        ([], {}, TypeError, "id"),
        ([LaneEnv()], {}, TypeError, "id"),
    ],
)
def test_what_cannot_be_is_refused(source, kwargs, error, message):
    with pytest.raises(error, match=message):
        fastvec.make(source, **kwargs)
