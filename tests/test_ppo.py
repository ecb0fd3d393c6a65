"""examples/ppo.py, which `fastvec train` runs: it learns, a seed is a run, and a saved run goes on as it was."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bits import assert_same_bits

import fastvec
from fastvec.cli import main

torch = pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
from fastvec.examples import ppo  # noqa: E402 # which imports torch

DEADLINE = 300  # seconds; only so that a hang is a failure
SHORT = ppo.Settings(num_envs=8, rollout=16, epochs=2, minibatch=32, steps=1024)
ENVS = ["CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0", "FrozenLake-v1", "Blackjack-v1", "Taxi-v4"]


def weights(run):
    return {name: tensor.numpy().copy() for name, tensor in run.agent.state_dict().items()}


def advanced(run, times):
    for _ in range(times):
        run.advance()
    return run


def test_it_learns_cartpole():
    """To 475, the score at which CartPole-v1 counts as solved, long before the 100,000 steps of the default."""
    run = ppo.Run(ppo.Settings(seed=1))
    test_env = ppo.make_env("CartPole-v1", 100)
    best = 0.0
    while not run.is_done and best < 475:
        run.advance()
        best = fastvec.evaluate(run.agent.greedy, test_env, episodes=100, seed=10**6).mean
    assert best >= 475
    assert run.steps_done < 80_000


@pytest.mark.parametrize("env_id", [env_id for env_id in ENVS if env_id in fastvec.registry.NATIVE_ENVS])
def test_any_env_and_the_same_run_again(env_id):
    settings = replace(SHORT, env_id=env_id, kl_penalty=0.1, entropy=0.01)
    runs = [advanced(ppo.Run(settings), 4) for _ in range(2)]
    assert_same_bits(weights(runs[1]), weights(runs[0]), "weights")
    assert all(np.isfinite(values).all() for values in weights(runs[0]).values())
    other = advanced(ppo.Run(replace(settings, seed=1)), 4)
    assert not np.array_equal(weights(other)["policy.0.weight"], weights(runs[0])["policy.0.weight"])


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_a_saved_run_goes_on_to_the_last_bit(env_id, tmp_path):
    settings = replace(SHORT, env_id=env_id)
    whole = advanced(ppo.Run(settings), 6)
    advanced(ppo.Run(settings), 3).save(tmp_path / "run.pt")
    torch.manual_seed(123)  # what else happened in between does not matter
    resumed = advanced(ppo.load(tmp_path / "run.pt"), 3)
    assert_same_bits(weights(resumed), weights(whole), "weights")
    assert_same_bits(resumed.rollouts.buffer.observation, whole.rollouts.buffer.observation, "observation")
    assert (resumed.steps_done, resumed.recent) == (whole.steps_done, whole.recent)


def test_an_update_ends_at_the_target_divergence(monkeypatch):
    steps = []
    for target in (None, 1e-12):
        run = ppo.Run(replace(SHORT, target_kl=target))
        count = 0
        step = run.optimizer.step

        def counted(step=step):
            nonlocal count
            count += 1
            step()

        monkeypatch.setattr(run.optimizer, "step", counted)
        run.advance()
        steps.append(count)
    assert steps == [2 * 4, 4]  # two epochs of four minibatches, or one


def test_a_divergence_that_costs_is_smaller():
    found = [
        np.mean([advanced(ppo.Run(replace(SHORT, kl_penalty=penalty)), 1).advance()["kl"] for _ in range(3)])
        for penalty in (0.0, 100.0)
    ]
    assert found[1] < found[0] / 2


def test_a_truncated_episode_is_worth_what_its_last_observation_promises():
    """With a value of 10 everywhere, reward 1 and gamma 0.9 no advantage is left, at a truncation neither."""
    env = ppo.fastvec.make("CartPole-v1", 4, autoreset_mode="SameStep", episode_stats=True, max_episode_steps=5)
    agent = ppo.Agent(env.single_observation_space, env.single_action_space, (8,))
    for parameter in agent.value.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(agent.value[-1].bias, 10.0)
    rollouts = ppo.Rollouts(env, 20, seed=0)
    rollouts.collect(agent, ppo.Clock())
    assert rollouts.buffer.truncations.sum() == 16
    assert not rollouts.buffer.terminations.any()
    rollouts.judge(agent, replace(SHORT, gamma=0.9))
    assert (rollouts.buffer.advantages == 0).all()
    assert (rollouts.buffer.returns == 10).all()


# The command line


def test_train_ends_with_the_return(capsys, tmp_path):
    arguments = [
        "--steps",
        "2048",
        "--num-envs",
        "8",
        "--rollout",
        "64",
        "--seed",
        "3",
        "--save",
        str(tmp_path / "a.pt"),
    ]
    assert main(["train", "CartPole-v1", *arguments]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    found = re.fullmatch(r"return ([\d.]+) \+- ([\d.]+) over 100 episodes", last)
    assert found, last
    policy = ppo.load_policy(tmp_path / "a.pt")
    result = fastvec.evaluate(policy, ppo.make_env("CartPole-v1", 100), episodes=100, seed=3 + 10**6)
    assert (f"{result.mean:.1f}", f"{result.std:.1f}") == found.groups()
    sync = fastvec.evaluate(policy, fastvec.make("CartPole-v1", 100), episodes=100, seed=3 + 10**6)
    assert np.array_equal(np.sort(sync.returns), np.sort(result.returns))


def test_resume_continues_the_run_of_the_file(capsys, tmp_path):
    common = ["--num-envs", "8", "--rollout", "16", "--minibatch", "64"]
    main(["train", "CartPole-v1", "--steps", "512", *common, "--save", str(tmp_path / "half.pt")])
    assert (
        main(["train", "--resume", str(tmp_path / "half.pt"), "--steps", "1024", "--save", str(tmp_path / "b.pt")]) == 0
    )
    assert ppo.load(tmp_path / "b.pt").steps_done == 1024
    with pytest.raises(SystemExit) as caught:
        main(["train", "--resume", str(tmp_path / "half.pt"), "--gamma", "0.5"])
    assert caught.value.code == 2
    assert "gamma=0.99" in capsys.readouterr().err


def test_log_and_video(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard", reason="needs tensorboard, which CI's tests-with-sb3 has")
    clips = []

    class ImageSequenceClip:
        def __init__(self, frames, fps):
            clips.append(len(frames))

        def write_videofile(self, path, logger=None):
            Path(path).touch()

    for name in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["moviepy.video.io.ImageSequenceClip"].ImageSequenceClip = ImageSequenceClip
    arguments = ["--steps", "1024", "--log", str(tmp_path / "log"), "--video", str(tmp_path / "video")]
    assert main(["train", "CartPole-v1", *arguments]) == 0
    assert list((tmp_path / "log").iterdir())
    assert len(clips) == 1
    assert clips[0] > 5


def test_a_run_that_stops_half_way_is_resumed_to_the_last_bit(tmp_path):
    common = ["--steps", "512", "--num-envs", "8", "--rollout", "16", "--minibatch", "64"]
    whole, half, resumed = (str(tmp_path / f"{name}.pt") for name in ("whole", "half", "resumed"))
    main(["train", "CartPole-v1", *common, "--save", whole])
    main(["train", "CartPole-v1", *common, "--until", "256", "--save", half])
    assert ppo.load(half).steps_done == 256
    main(["train", "--resume", half, "--save", resumed])
    assert_same_bits(weights(ppo.load(resumed)), weights(ppo.load(whole)), "weights")


def test_ctrl_c_saves_the_run(tmp_path, monkeypatch, capsys):
    advance = ppo.Run.advance

    def struck(run):
        if run.steps_done == 256:
            signal.raise_signal(signal.SIGINT)
        return advance(run)

    monkeypatch.setattr(ppo.Run, "advance", struck)
    path = tmp_path / "run.pt"
    assert main(["train", "--num-envs", "8", "--rollout", "16", "--save", str(path)]) == 130
    assert ppo.load(path).steps_done == 256 + 128
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["CartPol-v1"], "did you mean CartPole-v1"),
        (["--steps", "many"], "invalid int value: 'many'"),
        (["--stes", "3"], "unrecognized arguments: --stes"),
        (["--steps", "-5"], "steps is -5"),
        (["--epochs", "0"], "epochs is 0"),
        (["--minibatch", "0"], "minibatch is 0"),
        (["--gamma", "2"], "gamma is 2.0"),
        (["--clip", "nan"], "clip is nan"),
        (["--hidden", "0"], r"hidden is \(0,\)"),
        (["--torch-threads", "0"], "torch_threads is 0"),
        (["--save", "no/such/directory/a.pt"], "--save no/such/directory/a.pt"),
        (["--save", "."], "--save ."),
        (["--resume", "nothing.pt"], "nothing.pt cannot be read: FileNotFoundError"),
        (["--resume", "."], "cannot be read"),
        (["Counter-v0", "--video", "video"], "render_mode"),
    ],
)
def test_a_bad_argument_gets_a_sentence(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["train", *arguments])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.count("\n") == 1


def test_a_file_that_is_no_run_and_another_env_are_refused(tmp_path, capsys):
    junk, other = tmp_path / "junk.pt", tmp_path / "other.pt"
    junk.write_bytes(b"junk")
    torch.save({"x": 1}, other)
    taxi = tmp_path / "frozen.pt"
    ppo.Run(replace(SHORT, env_id="FrozenLake-v1")).save(taxi)
    for arguments, message in (
        (["--resume", str(junk)], "cannot be read"),
        (["--resume", str(other)], "is no saved run"),
        (["CartPole-v1", "--resume", str(taxi)], "env_id='FrozenLake-v1'"),
    ):
        with pytest.raises(SystemExit):
            main(["train", *arguments])
        assert message in capsys.readouterr().err
    assert main(["train", "fastvec/FrozenLake-v1", "--resume", str(taxi), "--until", "128"]) == 0


def test_the_file_runs_as_a_program():
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, str(root / "examples" / "ppo.py"), "--steps", "256", "--num-envs", "4", "--rollout", "16"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"return [\d.]+ \+- [\d.]+ over 100 episodes$", done.stdout.strip())
