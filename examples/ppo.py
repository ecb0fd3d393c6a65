"""Proximal policy optimisation (Schulman et al., 2017) on a fastvec env, in one file: to read, to run and to change.

    python examples/ppo.py CartPole-v1 --steps 100000 --save cartpole.pt

`fastvec train` runs the same. It needs torch: pip install "fastvec[train]". From top to bottom: settings, the network,
a rollout, an update, the loop around them, files, and the command line. Single-threaded runs of one seed are the same
to the last bit, also when a run was saved and resumed in the middle.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Discrete, Tuple
from torch import nn
from torch.nn import functional

import fastvec
from fastvec.terminal import progress


@dataclass(frozen=True)
class Settings:
    """What a run is made of."""

    env_id: str = "CartPole-v1"
    steps: int = 100_000  # env-steps, over all lanes
    seed: int = 0
    num_envs: int = 32
    rollout: int = 64  # steps of every lane between updates
    epochs: int = 10  # passes over a rollout in an update
    minibatch: int = 512  # rows
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 2e-3  # falls to 0 over the run
    gamma: float = 0.99
    gae_lambda: float = 0.9
    clip: float = 0.2  # how far the probability of an action may move, as a ratio; falls to 0 over the run
    entropy: float = 0.0  # weight of the policy's entropy in the objective
    value: float = 0.5  # weight of the value's error
    gradient_norm: float = 0.5  # gradients are scaled down to this norm
    kl_penalty: float = 0.0  # weight of the divergence from the old policy
    target_kl: float | None = None  # an update ends early beyond 1.5 times this divergence
    torch_threads: int = 1

    def __post_init__(self) -> None:
        """Refuses what cannot be."""
        least = {
            **dict.fromkeys(("steps", "num_envs", "rollout", "epochs", "minibatch", "torch_threads"), 1),
            **dict.fromkeys(("learning_rate", "gamma", "gae_lambda", "clip", "entropy", "value", "kl_penalty"), 0.0),
            "gradient_norm": 1e-12,
            "target_kl": 0.0,
        }
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not value >= low:  # nor NaN
                raise ValueError(f"{name} is {value!r}: expected a number from {low}")
        for name in ("gamma", "gae_lambda"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: expected a number from 0 to 1")
        if not all(size >= 1 for size in self.hidden):
            raise ValueError(f"hidden is {self.hidden!r}: expected layers of at least one unit")


# The network


def encoder(space: gymnasium.Space[Any]) -> tuple[int, Callable[[Any], torch.Tensor]]:
    """How observations become the network's inputs: numbers as they are, Discrete ones one-hot.

    Returns:
        (number of inputs, function of a batch of observations (..., *shape) to a float32 tensor (..., inputs)).
    """
    if isinstance(space, Box) and len(space.shape) == 1:
        return space.shape[0], lambda obs: torch.from_numpy(obs).float()
    if isinstance(space, Discrete):
        count, first = int(space.n), int(space.start)
        return count, lambda obs: functional.one_hot(torch.from_numpy(obs) - first, count).float()
    if isinstance(space, Tuple):
        encoders = [encoder(part) for part in space.spaces]
        return sum(size for size, _ in encoders), lambda obs: torch.cat(
            [encode(part) for (_, encode), part in zip(encoders, obs, strict=True)], dim=-1
        )
    raise ValueError(f"observations of {space}: expected a Box with one axis, a Discrete space, or a Tuple of such")


def perceptron(inputs: int, hidden: tuple[int, ...], outputs: int, last_scale: float) -> nn.Sequential:
    """Layers with tanh between them, with orthogonal weights."""
    sizes = [inputs, *hidden, outputs]
    layers: list[nn.Module] = []
    for size, following in itertools.pairwise(sizes):
        layer = nn.Linear(size, following)
        nn.init.orthogonal_(layer.weight, last_scale if len(layers) == 2 * len(hidden) else 2**0.5)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Agent(nn.Module):
    """A policy and a value of observations, apart from each other.

    Discrete actions have logits; actions of a Box are normally distributed, with a deviation that does not depend on
    the observation, and are clipped to the Box where the env takes them.
    """

    def __init__(
        self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], hidden: tuple[int, ...]
    ) -> None:
        super().__init__()
        inputs, self.encode = encoder(observation_space)
        self.is_discrete = isinstance(action_space, Discrete)
        if isinstance(action_space, Discrete):
            outputs, self.first_action = int(action_space.n), int(action_space.start)
        elif isinstance(action_space, Box) and len(action_space.shape) == 1:
            outputs = action_space.shape[0]
            self.low, self.high = action_space.low, action_space.high
        else:
            raise ValueError(f"actions of {action_space}: expected a Discrete space or a Box with one axis")
        self.policy = perceptron(inputs, hidden, outputs, 0.01)
        self.value = perceptron(inputs, hidden, 1, 1.0)
        self.log_deviation = nn.Parameter(torch.zeros(outputs))

    def sample(self, inputs: torch.Tensor) -> torch.Tensor:
        """Random actions, as the policy has them: int64 numbers (n,), or float32 (n, size)."""
        outputs = self.policy(inputs)
        if self.is_discrete:  # the largest of the logits with Gumbel noise has the policy's distribution
            return (outputs - torch.empty_like(outputs).exponential_().log_()).argmax(-1)
        return outputs + self.log_deviation.exp() * torch.randn_like(outputs)

    def judge(self, inputs: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The logarithm of the actions' probability and the policy's entropy, both (n,)."""
        outputs = self.policy(inputs)
        if self.is_discrete:
            logarithms = functional.log_softmax(outputs, -1)
            return logarithms.gather(-1, actions[..., None])[..., 0], -(logarithms.exp() * logarithms).sum(-1)
        normal = torch.distributions.Normal(outputs, self.log_deviation.exp())
        return normal.log_prob(actions).sum(-1), normal.entropy().sum(-1).expand(len(outputs))

    def for_env(self, actions: torch.Tensor) -> npt.NDArray[Any]:
        """Actions as the env takes them."""
        array = actions.numpy()
        return array + self.first_action if self.is_discrete else np.clip(array, self.low, self.high)

    @torch.no_grad()
    def greedy(self, obs: Any) -> npt.NDArray[Any]:
        """The most probable actions: a policy for ``fastvec.evaluate``."""
        outputs = self.policy(self.encode(obs))
        return self.for_env(outputs.argmax(-1) if self.is_discrete else outputs)


# A rollout


class Clock:
    """Adds up the seconds that are spent in each part of a run."""

    def __init__(self) -> None:
        self.seconds = {"env": 0.0, "inference": 0.0, "update": 0.0}

    def __call__(self, part: str) -> Clock:
        self._part = part
        return self

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.seconds[self._part] += time.perf_counter() - self._began


class Rollouts:
    """Rollouts of an env, one after another in the same arrays, and what PPO needs beside them.

    Attributes:
        buffer: observations, rewards, flags, and later values, advantages and returns.
        actions: (steps, n, ...), as the policy drew them; the buffer has them as the env took them.
    """

    def __init__(self, env: fastvec.VecEnv, steps: int, seed: int) -> None:
        self.buffer = fastvec.RolloutBuffer(env, steps)
        self.buffer.reset(seed=seed)
        self.actions = torch.zeros(0)

    @torch.no_grad()
    def collect(self, agent: Agent, clock: Clock) -> list[float]:
        """Fills the buffer. Returns the returns of the episodes that ended."""
        if self.buffer.full:
            self.buffer.restart()
        actions, returns = [], []
        while not self.buffer.full:
            with clock("inference"):
                actions.append(agent.sample(agent.encode(self.buffer.observation)))
                taken = agent.for_env(actions[-1])
            with clock("env"):
                *_, info = self.buffer.step(taken)
            if "episode" in info:
                returns += info["episode"]["r"][info["_episode"]].tolist()
        self.actions = torch.stack(actions)
        return returns

    @torch.no_grad()
    def judge(self, agent: Agent, settings: Settings) -> None:
        """Advantages and returns; an episode that was cut off is worth what its last observation promises."""
        buffer = self.buffer
        buffer.values[:] = agent.value(agent.encode(buffer.observations))[..., 0].numpy()
        last, final = (
            agent.value(agent.encode(obs))[:, 0].numpy() for obs in (buffer.observation, buffer.final_observations)
        )
        buffer.finish(last, final, gamma=settings.gamma, gae_lambda=settings.gae_lambda)


# An update


def update(
    agent: Agent, optimizer: torch.optim.Optimizer, rollouts: Rollouts, settings: Settings, left: float
) -> dict[str, float]:
    """Some passes of gradient descent over a rollout.

    Args:
        left: the share of the run that is left: learning rate and clip fall with it.

    Returns:
        Means over the minibatches, for the log.
    """
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * left
    clip = settings.clip * left
    rollouts.judge(agent, settings)
    rollout = rollouts.buffer.tensors()
    with torch.no_grad():
        inputs, actions = agent.encode(rollouts.buffer.flat().observations), rollouts.actions.flatten(0, 1)
        old, _ = agent.judge(inputs, actions)
    sums = {"policy": 0.0, "value": 0.0, "entropy": 0.0, "kl": 0.0, "clipped": 0.0}
    count = 0
    for _ in range(settings.epochs):
        divergence = 0.0
        order = torch.randperm(len(old))
        for rows in order.split(settings.minibatch):
            logarithms, entropy = agent.judge(inputs[rows], actions[rows])
            difference = logarithms - old[rows]
            ratio = difference.exp()
            kl = (ratio - 1 - difference).mean()
            gain = rollout.advantages[rows]
            if len(rows) > 1:
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - clip, 1 + clip)).mean()
            value_loss = (agent.value(inputs[rows])[..., 0] - rollout.returns[rows]).square().mean()
            loss = policy_loss + settings.value * value_loss - settings.entropy * entropy.mean()
            if settings.kl_penalty:
                loss = loss + settings.kl_penalty * kl
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), settings.gradient_norm)
            optimizer.step()
            divergence += float(kl.detach()) * len(rows) / len(old)
            clipped = float(((ratio - 1).abs() > clip).float().mean())
            for name, term in (("policy", policy_loss), ("value", value_loss), ("entropy", entropy.mean()), ("kl", kl)):
                sums[name] += float(term.detach())
            sums["clipped"] += clipped
            count += 1
        if settings.target_kl is not None and divergence > 1.5 * settings.target_kl:
            break
    return {name: value / count for name, value in sums.items()}


# The loop around them


class Run:
    """A training run: everything that its future hangs on, and so everything that is saved."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        torch.set_num_threads(settings.torch_threads)
        torch.manual_seed(settings.seed)
        self.env = make_env(settings.env_id, settings.num_envs)
        self.agent = Agent(self.env.single_observation_space, self.env.single_action_space, settings.hidden)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), settings.learning_rate, eps=1e-5)
        self.rollouts = Rollouts(self.env, settings.rollout, settings.seed)
        self.steps_done = 0
        self.clock = Clock()
        self.recent: list[float] = []  # returns of the last hundred episodes

    @property
    def is_done(self) -> bool:
        """Whether all steps were taken."""
        return self.steps_done >= self.settings.steps

    def advance(self) -> dict[str, float]:
        """One rollout and one update. Returns figures for the log."""
        settings = self.settings
        self.recent = (self.recent + self.rollouts.collect(self.agent, self.clock))[-100:]
        left = max(0.0, 1.0 - self.steps_done / settings.steps)
        with self.clock("update"):
            figures = update(self.agent, self.optimizer, self.rollouts, settings, left)
        self.steps_done += settings.rollout * settings.num_envs
        return {**figures, "return": float(np.mean(self.recent)) if self.recent else float("nan")}

    def save(self, path: str | Path) -> None:
        """Writes all of the run to a file; :func:`load` continues it, :func:`load_policy` takes the policy alone."""
        obs = self.rollouts.buffer.observation
        state = {
            "settings": asdict(self.settings),
            "agent": self.agent.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "env": self.env.get_state(),
            "obs": tuple(part.copy() for part in obs) if isinstance(obs, tuple) else obs.copy(),
            "steps_done": self.steps_done,
            "recent": self.recent,
            "generator": torch.get_rng_state(),
        }
        torch.save(state, path)


def as_tuple(obs: Any) -> tuple[Any, ...]:
    """The arrays of an observation: those of a tuple, or the one that it is."""
    return obs if isinstance(obs, tuple) else (obs,)


def make_env(env_id: str, n: int, **kwargs: Any) -> fastvec.VecEnv:
    """The env that is trained on: it resets in the step that ends an episode, and keeps statistics."""
    return fastvec.make(env_id, n, autoreset_mode="SameStep", episode_stats=True, **kwargs)


def read(path: str | Path) -> dict[str, Any]:
    """What :meth:`Run.save` wrote. Like any pickle, such a file may run code: read only what you trust.

    Raises:
        ValueError: for a file that is none.
    """
    try:
        state = torch.load(path, weights_only=False)
    except Exception as error:  # of many kinds, by what is wrong with it
        raise ValueError(f"{path} cannot be read: {type(error).__name__}: {str(error).splitlines()[0]}") from None
    if not isinstance(state, dict) or not {"settings", "agent", "env"} <= state.keys():
        raise ValueError(f"{path} is no saved run")
    return state


def load(path: str | Path) -> Run:
    """Continues a run that was saved, bit for bit as if it had gone on."""
    state = read(path)
    run = Run(Settings(**state["settings"]))
    run.agent.load_state_dict(state["agent"])
    run.optimizer.load_state_dict(state["optimizer"])
    run.env.set_state(state["env"])
    for row, saved in zip(as_tuple(run.rollouts.buffer.observation), as_tuple(state["obs"]), strict=True):
        row[:] = saved  # the buffer's own first row
    run.steps_done, run.recent = state["steps_done"], state["recent"]
    torch.set_rng_state(state["generator"])
    return run


def load_policy(path: str | Path) -> Callable[[Any], npt.NDArray[Any]]:
    """The greedy policy of a saved run: from observations (n, ...) to actions, for ``fastvec.evaluate`` and any env."""
    state = read(path)
    settings = Settings(**state["settings"])
    env = fastvec.make(settings.env_id)
    agent = Agent(env.single_observation_space, env.single_action_space, settings.hidden)
    agent.load_state_dict(state["agent"])
    env.close()
    return agent.greedy


def train(run: Run, log: Callable[[int, dict[str, float]], None] | None = None, until: int | None = None) -> bool:
    """Takes the steps that are left, or those until ``until``, with a progress bar on the standard error.

    Ctrl-C ends it after the update that is being made, so that the run can be saved; a second one at once.

    Returns:
        Whether it was ended by Ctrl-C.
    """
    settings = run.settings
    asked_to_stop = False

    def stop(signum: int, frame: object) -> None:
        nonlocal asked_to_stop
        asked_to_stop = True
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, stop)
    size = settings.rollout * settings.num_envs
    try:
        with progress(-(-(settings.steps - run.steps_done) // size)) as bar:
            bar.describe(settings.env_id)
            while not run.is_done and not asked_to_stop and (until is None or run.steps_done < until):
                figures = run.advance()
                if log is not None:
                    log(run.steps_done, figures)
                bar.describe(f"{settings.env_id}, return {figures['return']:.1f}")
                bar.advance(1)
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
    return asked_to_stop


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a run: one for every field of Settings, and files."""
    parser.add_argument("env_id", metavar="ID", nargs="?", help=f"a native id; default {Settings.env_id}")
    hints = {"target_kl": float, "hidden": lambda text: tuple(int(size) for size in text.split(","))}
    for each in fields(Settings):
        if each.name != "env_id":
            kind = hints.get(each.name, type(each.default))
            shown = ",".join(map(str, each.default)) if each.name == "hidden" else each.default
            name = "--" + each.name.replace("_", "-")
            parser.add_argument(name, dest=each.name, type=kind, default=None, metavar="X", help=f"default {shown}")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the run to this file in the end")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with a saved run; --steps may be raised")
    parser.add_argument("--until", type=int, metavar="X", help="stop after so many steps, to be resumed")
    parser.add_argument("--log", type=Path, metavar="DIRECTORY", help="write figures for TensorBoard")
    parser.add_argument("--video", type=Path, metavar="DIRECTORY", help="film an episode of the trained policy")


def run_of(arguments: argparse.Namespace) -> Run:
    """The run that the command line asks for.

    Raises:
        ValueError: for an option that a resumed run cannot change, and for an env that the network does not fit.
    """
    asked = {each.name: getattr(arguments, each.name) for each in fields(Settings)}
    asked = {name: value for name, value in asked.items() if value is not None}
    if arguments.resume is None:
        return Run(Settings(**asked))
    run = load(arguments.resume)
    kept = asdict(run.settings)
    if "env_id" in asked:
        asked["env_id"] = asked["env_id"].removeprefix("fastvec/")
    kept["env_id"] = kept["env_id"].removeprefix("fastvec/")
    wrong = [name for name, value in asked.items() if name != "steps" and value != kept[name]]
    if wrong:
        raise ValueError(f"{arguments.resume} was made with {', '.join(f'{name}={kept[name]!r}' for name in wrong)}")
    if "steps" in asked:
        run.settings = Settings(**{**kept, "steps": asked["steps"]})
    return run


def check_files(arguments: argparse.Namespace, run: Run) -> None:
    """Raises ValueError for what could not be written or filmed in the end: training should not be lost to it."""
    if arguments.save is not None and (arguments.save.is_dir() or not arguments.save.absolute().parent.is_dir()):
        raise ValueError(f"--save {arguments.save}: expected a file in a directory that is there")
    for name in ("log", "video"):
        path = getattr(arguments, name)
        if path is not None and path.exists() and not path.is_dir():
            raise ValueError(f"--{name} {path}: expected a directory")
    if arguments.video is not None:
        make_env(run.settings.env_id, 1, render_mode="rgb_array").close()
        if "moviepy" not in sys.modules and importlib.util.find_spec("moviepy") is None:
            raise ValueError("--video needs MoviePy; run: pip install moviepy")


def film(run: Run, directory: Path) -> None:
    """Films one greedy episode."""
    env = fastvec.make(run.settings.env_id, 1, render_mode="rgb_array")
    video = gymnasium.wrappers.vector.RecordVideo(env, str(directory), episode_trigger=lambda episode: episode == 0)
    obs, _ = video.reset(seed=run.settings.seed)
    ended = False
    while not ended:
        obs, _, terminations, truncations, _ = video.step(run.agent.greedy(obs))
        ended = bool(terminations[0] | truncations[0])
    video.close()


def main(argv: list[str] | None = None) -> int:
    """Trains, and says what came of it."""
    parser = argparse.ArgumentParser(prog="ppo", description="Trains a policy by PPO on lanes of a native env.")
    parser.error = lambda message: parser.exit(2, f"ppo: {message}\n")  # type: ignore[method-assign,assignment]
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        run = run_of(arguments)
        check_files(arguments, run)
    except (ValueError, gymnasium.error.Error) as error:
        parser.exit(2, f"ppo: {error}\n")
    log = None
    if arguments.log is not None:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(arguments.log)

        def log(step: int, figures: dict[str, float]) -> None:
            for name, value in figures.items():
                writer.add_scalar(name, value, step)

    began = time.perf_counter()
    first = run.steps_done
    was_interrupted = train(run, log, arguments.until)
    if arguments.save is not None:
        run.save(arguments.save)
    if log is not None:
        writer.close()
    if was_interrupted:
        print(f"interrupted after {run.steps_done} steps", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - began
    if arguments.video is not None:
        film(run, arguments.video)
    shares = ", ".join(f"{part} {spent / seconds:.0%}" for part, spent in run.clock.seconds.items()) if seconds else ""
    print(f"{run.steps_done - first} steps in {seconds:.1f} s ({shares})")
    test_env = make_env(run.settings.env_id, 100)
    result = fastvec.evaluate(run.agent.greedy, test_env, episodes=100, seed=run.settings.seed + 10**6)
    print(f"return {result.mean:.1f} +- {result.std:.1f} over 100 episodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
