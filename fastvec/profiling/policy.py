"""The policy whose inference is measured: a small network, in PyTorch if it is installed, else in NumPy.

It costs what a real one of its size costs; its actions are not used, so that every policy walks the same episodes."""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.spaces.utils import flatdim
from gymnasium.vector.utils import batch_space

from fastvec.backends.parts import Part, parts_of

try:
    from threadpoolctl import threadpool_limits
except ImportError:
    threadpool_limits = None

Act: TypeAlias = Callable[[Any], Any]

EXPECTED = "expected 'none', or 'mlp:' and the sizes of hidden layers, such as 'mlp:64,64'"


@dataclass(frozen=True)
class Policy:
    """How actions are inferred from a batch of observations.

    Attributes:
        name: what was asked for, and with what it computes.
        act: the function; None if there is no policy.
    """

    name: str
    act: Act | None


def hidden_sizes(text: str) -> tuple[int, ...] | None:
    """The hidden layers of ``"mlp:64,64"``; None for ``"none"``.

    Raises:
        ValueError: for any other text.
    """
    if text == "none":
        return None
    kind, _, sizes = text.partition(":")
    parts = sizes.split(",")
    if kind != "mlp" or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"policy is {text!r}: {EXPECTED}")
    return tuple(int(part) for part in parts)


def make_policy(
    asked: str | Act, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], seed: int
) -> Policy:
    """The policy for envs with these spaces.

    Args:
        asked: ``"none"``, ``"mlp:64,64"``, or a function of the observations of all lanes.
        observation_space, action_space: those of one env.
        seed: of the weights.

    Raises:
        ValueError: for a text that is none of these, and for spaces that no network takes.
        TypeError: for anything else.
    """
    if callable(asked):
        return Policy(getattr(asked, "__name__", type(asked).__name__), asked)
    if not isinstance(asked, str):
        raise TypeError(f"policy is {asked!r}: {EXPECTED}, or a function of observations")
    hidden = hidden_sizes(asked)
    if hidden is None:
        return Policy("none", None)
    parts = parts_of(observation_space)
    objects = [part for part in parts if part.dtype is None]
    if objects:
        raise ValueError(f"policy is {asked!r}, and observations{objects[0].place} are {objects[0].space}: use 'none'")
    try:
        outputs = flatdim(action_space)
    except (NotImplementedError, ValueError):  # flatdim's words for spaces that cannot be flattened
        raise ValueError(f"policy is {asked!r}, and actions are {action_space}: use 'none'") from None
    sizes = [sum(int(np.prod(part.shape)) for part in parts), *hidden, outputs]
    greedy = isinstance(action_space, Discrete)
    weights = _weights(sizes, seed)
    if importlib.util.find_spec("torch") is not None:
        return Policy(f"{asked} (PyTorch, one thread)", _torch_act(parts, weights, greedy))
    return Policy(f"{asked} (NumPy)", _numpy_act(parts, weights, greedy))


def _weights(sizes: Sequence[int], seed: int) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.standard_normal((size, following)) / max(1.0, size**0.5)).astype(np.float32)
        for size, following in itertools.pairwise(sizes)
    ]


def _inputs(parts: Sequence[Part], observations: Any) -> npt.NDArray[np.float32]:
    """The observations of all lanes as rows of numbers (n, inputs)."""
    rows = []
    for part in parts:
        value = observations
        for key in part.path:
            value = value[key]
        rows.append(value.reshape(len(value), -1).astype(np.float32, copy=False))
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def _torch_act(parts: Sequence[Part], weights: Sequence[npt.NDArray[np.float32]], greedy: bool) -> Act:
    import torch
    from torch import nn

    layers: list[Any] = []
    for matrix in weights:
        layer = nn.Linear(*matrix.shape)
        layer.weight.data = torch.from_numpy(matrix.T.copy())
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    network = nn.Sequential(*layers[:-1])

    def act(observations: Any) -> Any:
        with torch.inference_mode():
            outputs = network(torch.from_numpy(_inputs(parts, observations)))
            return (outputs.argmax(-1) if greedy else outputs).numpy()

    return act


def _numpy_act(parts: Sequence[Part], weights: Sequence[npt.NDArray[np.float32]], greedy: bool) -> Act:
    def act(observations: Any) -> Any:
        outputs = _inputs(parts, observations) @ weights[0]
        for matrix in weights[1:]:
            outputs = np.tanh(outputs) @ matrix
        return outputs.argmax(-1) if greedy else outputs

    return act


def one_thread(policy: Policy) -> AbstractContextManager[Any]:
    """Has PyTorch or NumPy compute in one thread, as others would take the cores that envs are measured on."""
    if "PyTorch" in policy.name:
        return _one_torch_thread()
    if threadpool_limits is not None and policy.name.endswith("(NumPy)"):
        limited: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
        return limited
    return nullcontext()


@contextmanager
def _one_torch_thread() -> Any:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Inference:
    """Inference alone, on a batch of n observations: it takes turns like a runner of envs.

    Attributes:
        n: rows of the batch.
        burst: inferences that fill a slice.
        slice_takes: seconds of a slice, when it was prepared.
    """

    def __init__(
        self,
        act: Act,
        observation_space: gymnasium.Space[Any],
        n: int,
        seed: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Draws a batch of observations from the space."""
        self.n, self.burst, self.slice_takes = n, 1, 0.0
        self._act, self._clock = act, clock
        space = batch_space(observation_space, n)
        space.seed(seed)
        self._observations = space.sample()

    def step(self, k: int) -> float:
        """Infers k times and returns the seconds that took."""
        act, observations = self._act, self._observations
        start = self._clock()
        for _ in range(k):
            act(observations)
        return self._clock() - start

    def prepare(self, seconds: float) -> None:
        """Infers some times, and sets ``burst`` to the number that fills so many seconds."""
        self.step(2)
        self.burst = max(1, round(seconds * 4 / max(self.step(4), 1e-9)))
        self.slice_takes = seconds
