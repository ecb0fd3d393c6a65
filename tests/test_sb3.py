"""fastvec.sb3 against Stable-Baselines3's own DummyVecEnv over the ordinary envs, in lock-step and all fields; and with
the algorithms and wrappers that stand on a VecEnv."""

from __future__ import annotations

import functools
import pickle
import sys
import types
import warnings

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.spaces import MultiDiscrete
from gymnasium.wrappers import TimeAwareObservation
from ordinary_envs import FlatDictEnv, InfosEnv, LaneEnv, OnceEnv, OneArrayEnv
from rollout import make_single, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3, which CI's tests-with-sb3 has")

from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecVideoRecorder,
)

from fastvec.sb3 import FastVecEnv, make_vec_env

N = 5
TUPLES = [env_id for env_id in NATIVE_ENVS if env_id.startswith("Blackjack")]


def make_ours(env_id, n=N, **kwargs):
    return FastVecEnv(fastvec.make(env_id, n, autoreset_mode="SameStep", episode_stats=True, **kwargs))


def make_dummy(env_id, n=N, **kwargs):
    return DummyVecEnv([lambda: Monitor(make_single(env_id, **kwargs))] * n)


def as_ours(obs):
    """An observation of DummyVecEnv as ours is: a tuple's numbers in one array."""
    return np.stack(obs, axis=-1) if isinstance(obs, tuple) else obs


def assert_same_infos(ours, theirs, where):
    """The same dicts, but for the time of day in Monitor's; `prob` is always a float (differences.md)."""
    assert isinstance(ours, list)
    assert len({id(info) for info in ours}) == len(ours)
    for lane, (our_info, their_info) in enumerate(zip(ours, theirs, strict=True)):
        our_info, their_info = dict(our_info), dict(their_info)
        if "episode" in their_info:
            our_episode, their_episode = dict(our_info["episode"]), dict(their_info["episode"])
            assert isinstance(our_episode.pop("t"), float)
            del their_episode["t"]
            assert (our_episode["r"], our_episode["l"]) == (their_episode["r"], their_episode["l"])
            assert type(our_episode["l"]) is type(their_episode["l"])
            del our_info["episode"], their_info["episode"]
        if "terminal_observation" in their_info and not isinstance(their_info["terminal_observation"], dict):
            their_info["terminal_observation"] = np.asarray(as_ours(their_info["terminal_observation"]))
            our_info["terminal_observation"] = np.asarray(our_info["terminal_observation"])
        if "prob" in their_info:
            their_info["prob"] = float(their_info["prob"])
        for info in (our_info, their_info):
            if "TimeLimit.truncated" in info:
                assert info["TimeLimit.truncated"] in (True, False)
                info["TimeLimit.truncated"] = bool(info["TimeLimit.truncated"])
        assert_same_bits(our_info, their_info, f"{where}, lane {lane}")


@pytest.mark.parametrize("lane_steps", [2_000, pytest.param(50_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_equals_dummy_vec_env(env_id, lane_steps):
    """Seeds, autoresets, a reset in the middle without a seed and one with; short episodes, so that many are cut."""
    ours, dummy = (make(env_id, max_episode_steps=37) for make in (make_ours, make_dummy))
    rng = np.random.default_rng(0)
    ended = 0
    for part, seed in enumerate((3, None, 2**31)):
        for env in (ours, dummy):
            if seed is not None:
                env.seed(seed)
        assert_same_bits(ours.reset(), as_ours(dummy.reset()), "reset")
        assert_same_infos(ours.reset_infos, dummy.reset_infos, "reset")
        for step in range(lane_steps // N // 3):
            actions = sample_actions(ours.action_space, (N,), rng)
            obs, rewards, dones, infos = ours.step(actions)
            their_obs, their_rewards, their_dones, their_infos = dummy.step(actions)
            where = f"part {part}, step {step}"
            assert_same_bits(obs, as_ours(their_obs), where)
            assert_same_bits(rewards, their_rewards, where)
            assert_same_bits(dones, their_dones, where)
            assert_same_infos(infos, their_infos, where)
            assert_same_infos(ours.reset_infos, dummy.reset_infos, f"{where}, reset_infos")
            ended += dones.sum()
    assert ended > 20


def test_spaces_and_what_else_is_read():
    for env_id in NATIVE_ENVS:
        ours, dummy = make_ours(env_id), make_dummy(env_id)
        if env_id in TUPLES:
            assert ours.observation_space == MultiDiscrete([32, 11, 2])
        else:
            assert ours.observation_space == dummy.observation_space
        assert ours.action_space == dummy.action_space
        assert ours.num_envs == dummy.num_envs
        assert ours.metadata == dummy.metadata
        assert ours.render_mode is None
        assert ours.env_is_wrapped(Monitor) == [True] * N
        assert ours.env_is_wrapped(gymnasium.wrappers.FrameStackObservation, indices=[0, 2]) == [False] * 2
        assert ours.unwrapped is ours


def test_a_fall_is_followed_by_no_empty_step():
    """F1 of the known cases: lane 0 at the limit."""
    env = make_ours("CartPole-v1", 1, max_episode_steps=5)
    env.seed(3)
    first = env.reset()
    for _ in range(4):
        _, _, dones, infos = env.step(np.array([0]))
        assert not dones.any()
        assert infos == [{"TimeLimit.truncated": False}]
    obs, rewards, dones, infos = env.step(np.array([0]))
    assert_same_bits(dones, np.array([True]), "dones")
    assert_same_bits(rewards, np.array([1.0], np.float32), "rewards")
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["terminal_observation"].shape == (4,)
    assert not np.array_equal(obs, first)
    _, rewards, dones, infos = env.step(np.array([0]))
    assert rewards.tolist() == [1.0]
    assert infos == [{"TimeLimit.truncated": False}]


def test_what_a_step_returned_stays_as_it_was():
    env = make_ours("CartPole-v1", max_episode_steps=3)
    env.reset()
    kept = [env.step(np.ones(N, np.int64)) for _ in range(10)]
    told = [{**info} for info in kept[2][3]]
    env.step(np.ones(N, np.int64))
    assert all("terminal_observation" in info for info in told)
    assert [set(info) for info in kept[2][3]] == [set(info) for info in told]
    assert len({step[0].ctypes.data for step in kept}) == len(kept)


def test_options_hold_once_and_may_differ():
    ours, dummy = make_ours("CartPole-v1"), make_dummy("CartPole-v1")
    rng = np.random.default_rng(1)
    wide = {"low": -0.2, "high": 0.2}
    for seed, options in ((1, wide), (2, [wide, {}, {"low": 0.0}, {}, wide]), (None, [{}, wide, wide, {}, {}])):
        for env in (ours, dummy):
            if seed is not None:
                env.seed(seed)
            env.set_options(options)
        assert_same_bits(ours.reset(), dummy.reset(), f"{options}")
        for _ in range(30):
            actions = rng.integers(0, 2, N)
            assert_same_bits(ours.step(actions)[0], dummy.step(actions)[0], f"after {options}")
        assert_same_bits(ours.reset(), dummy.reset(), "without options")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([{"low": -0.01}, {"low": 9.0}, {}, {}, {}], "low"),
        ([{"low": -0.01}, {"low": -0.02}], "2 dicts for 5 lanes"),
        ([{"low": -0.01}] * 6, "6 dicts for 5 lanes"),
    ],
)
def test_bad_options_reset_no_lane(options, message):
    env = make_ours("CartPole-v1")
    env.seed(0)
    env.reset()
    before = env.step(np.ones(N, np.int64))[0]
    env.set_options(options)
    with pytest.raises(ValueError, match=message):
        env.reset()
    assert_same_bits(np.stack(env.get_attr("state")).astype(np.float32), before, "state")


def test_methods_of_wrappers():
    env = make_ours("CartPole-v1")
    assert env.env_method("get_wrapper_attr", name="gravity") == [9.8] * N
    assert env.env_method("has_wrapper_attr", "gravity", indices=2) == [True]
    assert env.env_method("set_wrapper_attr", "nothing", 1.0, force=False) == [False] * N
    assert env.env_method("set_wrapper_attr", "gravity", value=1.0, indices=[1]) == [True]
    assert env.get_attr("gravity") == [9.8, 1.0, 9.8, 9.8, 9.8]
    with pytest.raises(TypeError, match="expected name"):
        env.env_method("get_wrapper_attr")


def test_attributes_of_some_lanes():
    env = make_ours("CartPole-v1")
    env.reset()
    env.set_attr("gravity", 1.5, indices=[1, 3])
    assert env.get_attr("gravity") == [9.8, 1.5, 9.8, 1.5, 9.8]
    assert env.get_attr("gravity", indices=3) == [1.5]
    env.set_attr("gravity", 2.0, indices=0)
    assert env.env.get_attr("gravity") == (2.0, 1.5, 9.8, 1.5, 9.8)
    assert env.has_attr("theta")
    assert not env.has_attr("action_masks")
    assert env.env_method("get_wrapper_attr", "gravity", indices=[0]) == [2.0]
    with pytest.raises(AttributeError, match=r"'fly'.*render"):
        env.env_method("fly")
    acrobot = make_ours("Acrobot-v1", 2)
    acrobot.set_attr("AVAIL_TORQUE", [-2.0, 0.0, 2.0])  # a list is one value here
    assert acrobot.get_attr("AVAIL_TORQUE") == [[-2.0, 0.0, 2.0]] * 2


def test_a_copy_goes_on_alike():
    env = make_ours("CartPole-v1")
    env.seed(1)
    env.reset()
    actions = np.random.default_rng(0).integers(0, 2, (60, N))
    for row in actions[:25]:
        env.step(row)
    copy = pickle.loads(pickle.dumps(env))
    for row in actions[25:]:
        for ours, theirs in zip(copy.step(row)[:3], env.step(row)[:3], strict=True):
            assert_same_bits(ours, theirs, "copy")


# What wraps it


@pytest.mark.parametrize(
    "wrap",
    [
        VecMonitor,
        VecNormalize,
        lambda env: VecNormalize(VecMonitor(env)),
        lambda env: VecFrameStack(env, 3),
        lambda env: VecCheckNan(env, raise_exception=True),
    ],
    ids=["monitor", "normalize", "normalize monitor", "frame stack", "check nan"],
)
@pytest.mark.filterwarnings("ignore:The environment is already wrapped")
def test_a_wrapper_gives_the_same(wrap):
    ours, dummy = wrap(make_ours("CartPole-v1")), wrap(make_dummy("CartPole-v1"))
    rng = np.random.default_rng(4)
    for env in (ours, dummy):
        env.seed(3)
    assert_same_bits(ours.reset(), dummy.reset(), "reset")
    for step in range(200):
        actions = rng.integers(0, 2, N)
        results, expected = ours.step(actions), dummy.step(actions)
        for one, other in zip(results[:3], expected[:3], strict=True):
            assert_same_bits(one, other, f"step {step}")
        assert_same_infos(list(results[3]), list(expected[3]), f"step {step}")


def test_frames_and_video(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "moviepy", types.ModuleType("moviepy"))  # which only writes the file in the end
    for n in (1, 4):
        ours, theirs = make_vec_env("CartPole-v1", n, seed=1), sb3_make_vec_env("CartPole-v1", n, seed=1)
        assert ours.render_mode == theirs.render_mode == "rgb_array"
        for env in (ours, theirs):
            env.reset()
            env.step(np.zeros(n, np.int64))
        assert_same_bits(list(ours.get_images()), list(theirs.get_images()), "frames")
        assert_same_bits(ours.render(), theirs.render(), "tiles")
        assert len(ours.env_method("render", indices=[0])) == 1
        normalized = VecNormalize(ours)
        assert normalized.render_mode == "rgb_array"
        recorder = VecVideoRecorder(normalized, str(tmp_path), record_video_trigger=lambda step: False)
        recorder.reset()
        recorder.step(np.zeros(n, np.int64))
        assert_same_bits(recorder.render(), ours.render(), "video")
    none = make_vec_env("CartPole-v1", 2, env_kwargs={"render_mode": None})
    with pytest.warns(UserWarning, match="render_mode=None"):
        assert none.get_images() == [None, None]
    assert make_vec_env("CartPole-v1", 100).env.render_lanes == tuple(range(64))


# What makes it


def test_the_demo_runs_with_its_import_line_changed(capsys):
    demo = """
import time
{imported}
from fastvec import CounterEnv

env = make_vec_env(CounterEnv, n_envs=4, vec_env_cls={vec_env_cls})
env.reset()
began = time.time()
for _ in range(2000):
    obs, rewards, dones, infos = env.step([env.action_space.sample() for _ in range(4)])
print(f"{{4 * 2000 / (time.time() - began):.0f}} FPS")
env.close()
"""
    for imported, vec_env_cls in (
        ("from stable_baselines3.common.env_util import make_vec_env", "None"),
        ("from fastvec.sb3 import make_vec_env", "None"),
        ("from fastvec.sb3 import make_vec_env, FastVecEnv", "FastVecEnv"),
        (
            "from stable_baselines3.common.env_util import make_vec_env; from fastvec.sb3 import FastVecEnv",
            "FastVecEnv",
        ),
    ):
        exec(demo.format(imported=imported, vec_env_cls=vec_env_cls), {})
        assert capsys.readouterr().out.strip().endswith(" FPS")


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize(
    ("env_id", "env_kwargs"),
    [
        ("CartPole-v1", None),
        ("CartPole-v1", {"sutton_barto_reward": True}),
        ("Pendulum-v1", {"g": 3.0}),
        ("FrozenLake-v1", {"desc": ["SFFG", "FFFS"], "is_slippery": True}),
        ("Acrobot-v1", None),
        (fastvec.CounterEnv, None),
        (lambda: gymnasium.make("MountainCar-v0", goal_velocity=0.01, max_episode_steps=50), None),
        (CartPoleEnv, {"sutton_barto_reward": True}),
    ],
    ids=["id", "keyword", "box", "tables", "acrobot", "class", "callable", "gymnasium's class"],
)
def test_made_in_any_way_it_is_the_same_env(env_id, env_kwargs, seed):
    theirs = sb3_make_vec_env(env_id, 3, seed=seed or 0, env_kwargs=env_kwargs)
    made = [
        make_vec_env(env_id, 3, seed=seed or 0, env_kwargs=env_kwargs),
        sb3_make_vec_env(env_id, 3, seed=seed or 0, env_kwargs=env_kwargs, vec_env_cls=FastVecEnv),
        make_vec_env(env_id, 3, seed=seed or 0, env_kwargs=env_kwargs, vec_env_cls=FastVecEnv),
    ]
    envs = [theirs, *made]
    rng = np.random.default_rng(2)
    firsts = [env.reset() for env in envs]
    for first in firsts[1:]:
        assert_same_bits(first, firsts[0], "reset")
    for _ in range(120):
        actions = sample_actions(theirs.action_space, (3,), rng)
        expected = theirs.step(actions)
        for env in made:
            for one, other in zip(env.step(actions)[:3], expected[:3], strict=True):
                assert_same_bits(one, other, f"{env_id}")


def test_factories_that_make_different_envs_are_refused():
    maps = [["SHFG"], ["SFFG"]]

    def different():
        maps.append(maps.pop(0))
        return gymnasium.make("FrozenLake-v1", desc=maps[0])

    for make in (make_vec_env, functools.partial(sb3_make_vec_env, vec_env_cls=FastVecEnv)):
        with pytest.raises(ValueError, match="factory 1 makes another env than factory 0"):
            make(different, 3, vec_env_kwargs={"backend": "native"})


def test_arrays_without_copies_are_refused():
    with pytest.raises(ValueError, match="copy=False"):
        FastVecEnv(fastvec.make("CartPole-v1", 2, autoreset_mode="SameStep", episode_stats=True, copy=False))
    with pytest.raises(ValueError, match="copy=False"):
        make_vec_env("CartPole-v1", 2, vec_env_kwargs={"copy": False})


def test_options_may_have_arrays():
    env = make_ours("CartPole-v1")
    env.set_options([{"note": np.array([1, 2])}] * N)
    env.reset()
    assert env.reset_infos == [{}] * N


def test_attributes_that_a_factory_sets_are_kept():
    def heavy():
        env = gymnasium.make("CartPole-v1")
        env.unwrapped.gravity = 20.0
        return env

    assert FastVecEnv([heavy] * 3).get_attr("gravity") == [20.0] * 3
    assert FastVecEnv([heavy, heavy, heavy]).num_envs == 3


class OtherCartPole(CartPoleEnv):
    pass


NATIVE = {"backend": "native"}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: make_vec_env("NoSuchEnv-v3"), Exception, "NoSuchEnv"),
        (lambda: make_vec_env(OtherCartPole, vec_env_kwargs=NATIVE), ValueError, "OtherCartPole has no native lanes"),
        (
            lambda: make_vec_env("CartPole-v1", wrapper_class=TimeAwareObservation, vec_env_kwargs=NATIVE),
            ValueError,
            "wrapped in TimeAwareObservation.*backend='serial' or 'process'",
        ),
        (
            lambda: make_vec_env("CartPole-v1", monitor_kwargs={"info_keywords": ("x",)}, vec_env_kwargs=NATIVE),
            ValueError,
            "Monitor keeps more than statistics",
        ),
        (lambda: make_vec_env("CartPole-v1", 0), ValueError, "n_envs is 0"),
        (lambda: FastVecEnv(fastvec.make("CartPole-v1", 2)), ValueError, "autoreset_mode='NextStep'.*'SameStep'"),
        (lambda: FastVecEnv(fastvec.make("CartPole-v1", 2, autoreset_mode="SameStep")), ValueError, "episode_stats"),
        (lambda: FastVecEnv([]), TypeError, "list of functions"),
        (lambda: FastVecEnv(3), TypeError, "list of functions"),
        (lambda: FastVecEnv(fastvec.make("CartPole-v1"), num_threads=2), TypeError, "num_threads"),
        (
            lambda: FastVecEnv(
                [functools.partial(gymnasium.make, f"CartPole-v{version}") for version in (1, 0)], **NATIVE
            ),
            ValueError,
            "factory 1 makes another env than factory 0",
        ),
        (
            lambda: FastVecEnv([lambda: TimeAwareObservation(gymnasium.make("CartPole-v1"))], **NATIVE),
            ValueError,
            "TimeAwareObservation",
        ),
        (lambda: FastVecEnv([lambda: gymnasium.make("CartPole-v1")], batch=2), TypeError, "batch.*num_threads"),
        (lambda: FastVecEnv([lambda: gymnasium.make("CartPole-v1")], backend="threads"), ValueError, "'threads'"),
        (lambda: FastVecEnv(fastvec.make(LaneEnv, 2)), ValueError, "autoreset_mode='NextStep'"),
        (lambda: FastVecEnv(fastvec.make(LaneEnv, autoreset_mode="SameStep", copy=False)), ValueError, "copy=False"),
        (lambda: make_ours("CartPole-v1").step_wait(), RuntimeError, "step_async"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=message):
            make()


# Ordinary envs


def make_monitored(source, **kwargs):
    """Functions that make envs in Monitor, and in nothing else."""
    return [lambda: Monitor(source(**kwargs))] * N


@pytest.mark.parametrize("backend", ["serial", "process"])
@pytest.mark.parametrize(
    "source",
    [lambda: gymnasium.make("Pendulum-v1", max_episode_steps=17), FlatDictEnv, InfosEnv],
    ids=["id", "dict", "infos"],
)
def test_ordinary_envs_equal_dummy_vec_env(source, backend):
    ours, dummy = FastVecEnv(make_monitored(source), backend=backend), DummyVecEnv(make_monitored(source))
    assert ours.observation_space == dummy.observation_space
    assert ours.metadata == dummy.metadata
    rng = np.random.default_rng(0)
    ended = 0
    for seed in (3, None, 5):
        for env in (ours, dummy):
            if seed is not None:
                env.seed(seed)
        assert_same_bits(ours.reset(), dict_or_array(dummy.reset()), "reset")
        assert_same_infos(ours.reset_infos, dummy.reset_infos, "reset")
        for step in range(60):
            actions = sample_actions(ours.action_space, (N,), rng)
            *results, infos = ours.step(actions)
            *expected, their_infos = dummy.step(actions)
            expected[0] = dict_or_array(expected[0])
            for one, other in zip(results, expected, strict=True):
                assert_same_bits(one, other, f"step {step}")
            assert_same_infos(infos, their_infos, f"step {step}")
            assert_same_infos(ours.reset_infos, dummy.reset_infos, f"step {step}, reset_infos")
            ended += expected[2].sum()
    assert ended > 10
    ours.close()


def dict_or_array(obs):
    """SB3's OrderedDict as a dict."""
    return dict(obs) if isinstance(obs, dict) else obs


@pytest.mark.parametrize("backend", ["serial", "process"])
def test_an_env_that_reuses_its_array_and_its_info_ends_right(backend):
    """Where DummyVecEnv shows the next episode's."""
    env = FastVecEnv(make_monitored(OneArrayEnv, length=3), backend=backend)
    env.reset()
    for _ in range(3):
        _, _, dones, infos = env.step(np.zeros((N, 2), np.float32))
    assert dones.all()
    for lane in range(N):
        assert infos[lane]["terminal_observation"][0] == 2
        assert infos[lane]["steps"] == 3
        assert infos[lane]["TimeLimit.truncated"]
        assert env.reset_infos[lane] == {"steps": 0}
    env.close()


@pytest.mark.parametrize("backend", ["auto", "serial", "process"])
def test_make_vec_env_of_ordinary_envs_is_as_sb3s(tmp_path, backend):
    """Wrappers around each env, and the files of Monitor."""

    def make(function, directory, **kwargs):
        return function(
            "CartPole-v1",
            3,
            seed=5,
            start_index=2,
            monitor_dir=str(tmp_path / directory),
            wrapper_class=TimeAwareObservation,
            wrapper_kwargs={"flatten": True},
            env_kwargs={"sutton_barto_reward": True},
            **kwargs,
        )

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = make(make_vec_env, "ours", vec_env_kwargs={"backend": backend})
    warned = any("no native lanes, since the env is wrapped in" in str(each.message) for each in caught)
    assert warned == (backend == "auto")
    theirs = make(sb3_make_vec_env, "theirs")
    assert type(ours) is FastVecEnv
    assert_same_bits(ours.reset(), theirs.reset(), "reset")
    for _ in range(100):
        actions = np.ones(3, np.int64)
        for one, other in zip(ours.step(actions)[:3], theirs.step(actions)[:3], strict=True):
            assert_same_bits(one, other, "step")
    assert ours.env_is_wrapped(TimeAwareObservation) == [True] * 3
    assert ours.env_is_wrapped(Monitor, [0, 2]) == [True] * 2
    assert ours.env_is_wrapped(gymnasium.wrappers.ClipReward) == [False] * 3
    ours.close()
    theirs.close()
    written = sorted(path.name for path in (tmp_path / "ours").iterdir())
    assert written == sorted(path.name for path in (tmp_path / "theirs").iterdir())
    for name in written:
        lines, expected = ((tmp_path / side / name).read_text().splitlines()[1:] for side in ("ours", "theirs"))
        assert [line.rsplit(",", 1)[0] for line in lines] == [line.rsplit(",", 1)[0] for line in expected]
        assert len(lines) > 5


@pytest.mark.parametrize("backend", ["serial", "process"])
def test_methods_and_attributes_of_some_ordinary_envs(backend):
    env = FastVecEnv([functools.partial(LaneEnv, lane) for lane in range(N)], backend=backend)
    env.reset()
    assert env.get_attr("lane", [1, 3]) == [1, 3]
    assert env.env_method("add", 10, other=1, indices=[4, 0]) == [15, 11]
    env.set_attr("lane", 9, indices=2)
    assert env.get_attr("lane") == [0, 1, 9, 3, 4]
    env.set_attr("lane", 7, indices=-1)
    assert env.get_attr("lane", [-1, 0]) == [7, 0]
    assert env.env_method("count_up", indices=[-2, 1, 1]) == [1, 1, 2]
    assert env.env_method("count_up") == [1, 3, 1, 2, 1]
    env.set_attr("unheard_of", "x")
    assert env.get_attr("unheard_of", 0) == ["x"]
    assert env.has_attr("lane")
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.env_method("no_such_thing")
    assert not env.env_is_wrapped(Monitor, 0)[0]
    env.close()


def test_statistics_of_fastvec_stand_in_for_monitor():
    ours = FastVecEnv(fastvec.make(LaneEnv, 2, autoreset_mode="SameStep", episode_stats=True, backend="serial"))
    assert ours.env_is_wrapped(Monitor) == [True] * 2
    dummy = DummyVecEnv([lambda: Monitor(LaneEnv())] * 2)
    assert_same_bits(ours.reset(), dummy.reset(), "reset")
    for _ in range(20):
        actions = np.zeros(2, np.int64)
        assert_same_infos(ours.step(actions)[3], dummy.step(actions)[3], "step")


def test_lanes_of_a_restarted_worker_are_done(tmp_path):
    factories = [functools.partial(OnceEnv, lane, tmp_path / "trouble" if lane else None, "kill") for lane in range(2)]
    env = FastVecEnv(factories, backend="process", num_workers=2, on_worker_error="restart")
    env.reset()
    for _ in range(2):
        before = env.step(np.zeros(2, np.int64))
    _, _, dones, infos = env.step(np.zeros(2, np.int64))
    assert dones.tolist() == [False, True]
    assert infos[1]["worker_restarted"]
    assert infos[1]["TimeLimit.truncated"]
    assert_same_bits(infos[1]["terminal_observation"], before[0][1], "the last observation that was seen")
    env.close()


# What learns on it


@pytest.mark.parametrize("algorithm", [PPO, A2C, DQN])
def test_algorithms_learn_alike_on_it(algorithm):
    """The same weights as on DummyVecEnv: everything that an algorithm reads has the same bits."""
    torch = pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    torch.set_num_threads(1)
    keywords = {"n_steps": 32} if algorithm is not DQN else {"learning_starts": 50, "train_freq": 4}
    weights = []
    for env in (make_ours("CartPole-v1", 4, max_episode_steps=60), make_dummy("CartPole-v1", 4, max_episode_steps=60)):
        model = algorithm("MlpPolicy", env, seed=5, device="cpu", **keywords).learn(1_000)
        assert model.ep_info_buffer
        weights.append({name: value.numpy() for name, value in model.policy.state_dict().items()})
    assert_same_bits(dict(weights[0]), dict(weights[1]), "weights")


def test_evaluate_policy_trusts_its_statistics(recwarn):
    model = PPO("MlpPolicy", make_ours("CartPole-v1", 4), seed=1, device="cpu")
    results = []
    for make in (make_ours, make_dummy):
        env = make("CartPole-v1", 4)
        env.seed(9)
        results.append(evaluate_policy(model, env, 20, return_episode_rewards=True))
    assert results[0] == results[1]
    assert not [w for w in recwarn if "Monitor" in str(w.message)]


def test_a_model_is_saved_with_the_env_attached(tmp_path):
    model = PPO("MlpPolicy", make_ours("CartPole-v1", 2), n_steps=8, batch_size=16, device="cpu").learn(16)
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", env=make_ours("CartPole-v1", 2), device="cpu")
    loaded.learn(16)
