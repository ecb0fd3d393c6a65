"""``make(..., render_mode=...)``: every frame is, pixel for pixel, what the lane's single env draws.

The single envs are those in a SyncVectorEnv that gets the same calls."""

import copy
import dataclasses
import os
import pickle
import re
import subprocess
import sys
import types

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordVideo
from rollout import make_oracle, make_single, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS
from fastvec.vec_env import VecEnv

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # frames need no display

N = 3
STEPS = 10
RENDERED = [
    (env_id, render_mode)
    for env_id in NATIVE_ENVS
    for render_mode in make_single(env_id).metadata["render_modes"]
    if render_mode in ("rgb_array", "ansi")
]
rendered = pytest.mark.parametrize(("env_id", "render_mode"), RENDERED)
modes = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)


def make_cartpole(n=N, **kwargs):
    return fastvec.make("CartPole-v1", n, **{"render_mode": "rgb_array", **kwargs})


def assert_same_frames(ours, theirs, where):
    assert type(ours) is tuple
    assert len(ours) == len(theirs)
    for lane, (our_frame, their_frame) in enumerate(zip(ours, theirs, strict=True)):
        assert_same_bits(our_frame, their_frame, f"{where}: frame of lane {lane}")


@rendered
@modes
def test_frames_are_those_of_single_envs(env_id, render_mode, mode):
    """Through autoresets and masked resets; also where a renderer that remembers did not see every step."""
    ours = fastvec.make(env_id, N, autoreset_mode=mode, max_episode_steps=5, render_mode=render_mode)
    oracle = make_oracle(env_id, N, mode, max_episode_steps=5, render_mode=render_mode)
    envs = (ours, oracle)
    for env in envs:
        env.reset(seed=3)
    assert_same_frames(ours.render(), oracle.render(), "after the reset")
    rng = np.random.default_rng(0)
    frames = set()
    for step in range(STEPS):
        actions = sample_actions(ours.single_action_space, (N,), rng)
        oracle.step(actions)
        _, _, terminations, truncations, _ = ours.step(actions)
        mask = terminations | truncations if mode == AutoresetMode.DISABLED else np.zeros(N, bool)
        if step % 4 == 2:
            mask[step % N] = True
        if step % 3 != 1:
            assert_same_frames(ours.render(), oracle.render(), f"after step {step}")
            frames.update(np.asarray(frame).tobytes() for frame in ours.render())
        if mask.any():
            for env in envs:
                env.reset(options={"reset_mask": mask.copy()})
            assert_same_frames(ours.render(), oracle.render(), f"after the reset of {mask} after step {step}")
    assert len(frames) > 1
    oracle.close()


def test_attributes_that_are_set_are_drawn():
    ours, oracle = make_cartpole(), make_oracle("CartPole-v1", N, render_mode="rgb_array")
    for env in (ours, oracle):
        env.reset(seed=1)
    before = ours.render()
    for env in (ours, oracle):
        env.set_attr("length", [0.25, 0.5, 1.0])
    assert_same_frames(ours.render(), oracle.render(), "a length for each lane")
    assert [np.array_equal(*pair) for pair in zip(before, ours.render(), strict=True)] == [False, True, False]
    for env in (ours, oracle):
        env.set_attr("x_threshold", 4.0)
        env.set_attr("state", [np.array([0.1 * lane, 0, 0.3, 0]) for lane in range(N)])
    assert_same_frames(ours.render(), oracle.render(), "one threshold for all, and a state")


def test_keywords_of_the_env_are_those_of_what_draws():
    env = make_cartpole(sutton_barto_reward=True)
    env.reset(seed=0)
    assert len(env.render()) == N
    assert env.get_attr("render_mode") == ("rgb_array",) * N


def test_float32_lanes_are_drawn_too():
    env = make_cartpole(precision="float32")
    env.reset(seed=0)
    assert env.render()[0].shape == (400, 600, 3)


def test_chosen_lanes_are_drawn_in_their_order():
    every, some = make_cartpole(64), make_cartpole(64, render_lanes=np.array([63, 5]))
    for env in (every, some):
        env.reset(seed=2)
    frames = every.render()
    assert_same_frames(some.render(), (frames[63], frames[5]), "chosen")


def test_above_64_lanes_they_must_be_chosen():
    with pytest.raises(ValueError, match=r"render_mode is 'rgb_array' for 65 lanes.*render_lanes=\["):
        make_cartpole(65)
    env = make_cartpole(10_000, render_lanes=[9_999])
    env.reset(seed=0)
    single = make_cartpole(1)
    single.reset(seed=9_999)
    assert_same_frames(env.render(), single.render(), "the last lane")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"render_mode": "human"}, ValueError, "'human'.*CartPole-v1.*'rgb_array'.*HumanRendering"),
        ({"render_mode": "rgb_array_list"}, ValueError, "'rgb_array_list'.*'rgb_array'"),
        ({"render_mode": "ansi"}, ValueError, "'ansi'.*'rgb_array'"),
        ({"render_mode": 3}, ValueError, "render_mode is 3"),
        ({"render_mode": None, "render_lanes": [0]}, ValueError, "without a render_mode"),
        ({"render_lanes": [0, 3]}, ValueError, "3.*from 0 to 2"),
        ({"render_lanes": [-1]}, ValueError, "-1.*from 0 to 2"),
        ({"render_lanes": [1, 1]}, ValueError, "twice"),
        ({"render_lanes": []}, ValueError, "at least one"),
        ({"render_lanes": [0.0]}, TypeError, r"0\.0, float"),
        ({"render_lanes": [True]}, TypeError, "True, bool"),
        ({"render_lanes": 1}, TypeError, "1, int"),
        ({"render_lanes": "01"}, TypeError, "'01', str"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make_cartpole(**arguments)


def test_an_env_without_render_modes_says_so():
    with pytest.raises(ValueError, match=r"Counter-v0.*no render modes"):
        fastvec.make("Counter-v0", render_mode="rgb_array")


@pytest.mark.parametrize(("env_id", "extra"), [("CartPole-v1", "classic-control"), ("FrozenLake-v1", "toy-text")])
def test_without_pygame_the_error_has_the_command(monkeypatch, env_id, extra):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match=rf'{env_id}.*pip install "gymnasium\[{extra}\]"'):
        fastvec.make(env_id, render_mode="rgb_array")
    fastvec.make(env_id)


def test_texts_need_no_pygame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = fastvec.make("FrozenLake-v1", 2, render_mode="ansi")
    env.reset(seed=0)
    assert [type(text) for text in env.render()] == [str, str]


@pytest.mark.parametrize("copied", [lambda env: env, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_map_that_was_drawn_at_random_is_the_one_that_is_shown(copied):
    env = fastvec.make("FrozenLake-v1", 56, desc=None, map_name=None, is_slippery=False, render_mode="ansi")
    env.reset(seed=0)
    env = copied(env)
    shown = re.sub(r"\x1b\[\d+m|\s", "", env.render()[0])
    assert len(shown) == 64
    env.set_attr("s", list(range(56)))
    _, _, terminations, _, _ = env.step(np.ones(56, np.int64))  # each lane moves down a row, unless it has ended
    tiles = zip(shown[:56], shown[8:], strict=True)
    assert terminations.tolist() == [here in "HG" or below in "HG" for here, below in tiles]


def test_frames_are_the_callers_own():
    env = make_cartpole()
    env.reset(seed=0)
    frames = env.render()
    kept = copy.deepcopy(frames)
    for _ in range(10):
        env.step(np.ones(N, np.int64))
    assert not np.array_equal(env.render()[0], kept[0])
    assert_same_frames(frames, kept, "drawn earlier")
    frames[0][:] = 0
    assert_same_frames(env.render(), env.render(), "after writing to a frame")


def test_a_renderer_may_draw_into_one_array(monkeypatch):
    canvas = np.zeros((2, 2, 3))

    def render(env):
        canvas[:] = env.state[0]
        return canvas

    monkeypatch.setattr(type(gymnasium.make("CartPole-v1").unwrapped), "render", render)
    env = make_cartpole()
    env.reset(seed=0)
    assert [frame[0, 0, 0] for frame in env.render()] == env.state["x"].tolist()


@modes
def test_rendering_changes_nothing(mode):
    rendered_env, plain = make_cartpole(autoreset_mode=mode), fastvec.make("CartPole-v1", N, autoreset_mode=mode)
    rng = np.random.default_rng(0)
    assert_same_bits(rendered_env.reset(seed=0), plain.reset(seed=0), "reset")
    for step in range(40):
        rendered_env.render()
        actions = rng.integers(2, size=N)
        result, expected = rendered_env.step(actions), plain.step(actions)
        assert_same_bits(result, expected, f"step {step}")
        ended = result[2] | result[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            resets = [env.reset(options={"reset_mask": ended}) for env in (rendered_env, plain)]
            assert_same_bits(*resets, f"reset after step {step}")
    assert_same_bits(rendered_env.state["theta"], plain.state["theta"], "state")


def test_call_renders_too():
    env = make_cartpole()
    env.reset(seed=0)
    assert_same_frames(env.call("render"), env.render(), "call")


def test_calls_out_of_turn_are_refused():
    env = make_cartpole()
    with pytest.raises(ResetNeeded, match="render"):
        env.render()
    env.reset(seed=0)
    env.render()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="render"):
        env.render()
    env.close()


def test_closing_closes_what_draws(monkeypatch):
    env = make_cartpole()
    env.reset(seed=0)
    env.render()
    closed = []
    monkeypatch.setattr(type(gymnasium.make("CartPole-v1").unwrapped), "close", lambda self: closed.append(self))
    env.close()
    env.close()
    assert len(closed) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_renders(copied):
    env = make_cartpole(render_lanes=[2, 0])
    env.reset(seed=0)
    env.set_attr("length", 1.0)
    frames = env.render()
    again = copied(env)
    env.close()
    assert_same_frames(again.render(), frames, "copy")


def test_gymnasium_makes_it_and_makes_it_again():
    env = gymnasium.make_vec("fastvec/CartPole-v1", num_envs=80, render_mode="rgb_array", render_lanes=(3, 1))
    again = gymnasium.make_vec(env.spec)
    for each in (env, again):
        assert each.render_mode == "rgb_array"
        assert each.metadata["render_fps"] == 50
        assert "rgb_array" in each.metadata["render_modes"]
        each.reset(seed=0)
    assert_same_frames(again.render(), env.render(), "made again")
    assert len(env.render()) == 2


@modes
@pytest.mark.filterwarnings("ignore:.*autoreset mode is same-step")
def test_gymnasiums_video_wrapper_records_it(monkeypatch, tmp_path, mode):
    """With moviepy in name only: what it would be given are the frames, side by side."""
    clips = []

    class ImageSequenceClip:
        def __init__(self, frames, fps):
            clips.append((frames, fps))

        def write_videofile(self, path, logger=None):
            pass

    for name in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["moviepy.video.io.ImageSequenceClip"].ImageSequenceClip = ImageSequenceClip
    env, twin = make_cartpole(2, autoreset_mode=mode), make_cartpole(2, autoreset_mode=mode)
    video = RecordVideo(
        env, str(tmp_path / "videos"), video_aspect_ratio=(2, 1), video_length=4, step_trigger=lambda step: step == 0
    )
    video.reset(seed=0)
    twin.reset(seed=0)
    expected = []
    for _ in range(6):
        video.step(np.array([0, 1]))
        twin.step(np.array([0, 1]))
        expected.append(np.concatenate(twin.render(), axis=1))
    video.close()
    [(frames, fps)] = clips
    assert fps == 50
    assert_same_bits(np.stack(frames[:4]), np.stack(expected[:4]), "video")


@modes
def test_a_renderer_is_told_of_the_last_action_until_a_reset(monkeypatch, mode):
    """``NativeEnv.render_state``: the action of the lane's last step, and a memory that a reset empties."""
    told = []

    def render_state(env, lane):
        lane.memory["frames"] = lane.memory.get("frames", 0) + 1
        told.append((lane.action, lane.memory["frames"], lane.state["theta"]))

    native = dataclasses.replace(NATIVE_ENVS["CartPole-v1"], render_state=render_state)
    monkeypatch.setitem(NATIVE_ENVS, "CartPole-v1", native)
    env = make_cartpole(2, autoreset_mode=mode, max_episode_steps=3)
    actions = np.array([0, 1])

    def seen():
        told.clear()
        env.render()
        assert [theta for _, _, theta in told] == env.state["theta"].tolist()
        return [(None if action is None else int(action), frames) for action, frames, _ in told]

    env.reset(seed=0)
    assert seen() == [(None, 1), (None, 1)]
    env.step(actions)
    actions[:] = 1, 0  # the caller may write the next actions into the same array
    assert seen() == [(0, 2), (1, 2)]
    env.reset(options={"reset_mask": np.array([True, False])})
    assert seen() == [(None, 1), (1, 3)]
    env.step(actions)
    assert seen() == [(1, 2), (0, 4)]
    env.step(actions)  # lane 1 ends
    if mode == AutoresetMode.SAME_STEP:
        assert seen() == [(1, 3), (None, 1)]
    else:
        assert seen() == [(1, 3), (0, 5)]
        if mode == AutoresetMode.NEXT_STEP:
            env.step(actions)  # lane 1 is reset, and lane 0 ends
            assert seen() == [(1, 4), (None, 1)]
    again = pickle.loads(pickle.dumps(env))
    env.set_state(again.get_state())
    assert seen() == [(None, 1), (None, 1)]


def test_nothing_is_done_when_off():
    env = fastvec.make("CartPole-v1", 2)
    assert type(env) is VecEnv
    program = (
        "import sys, fastvec, numpy as np; env = fastvec.make('CartPole-v1', 2); env.reset(seed=0); "
        "env.step(np.zeros(2, np.int64)); env.close(); print('pygame' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"
