"""id -> the kernel that steps it, and the ordinary Gymnasium env whose spaces, limit and parameters it takes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium


@dataclass(frozen=True)
class Parameter:
    """How a kernel's parameter, a number, follows from an attribute of the ordinary env."""

    attribute: str
    encode: Callable[[Any], float] = float


@dataclass(frozen=True)
class NativeEnv:
    """One id that has a kernel.

    Attributes:
        id: what ``fastvec.make`` takes.
        kernel: name of the kernel in csrc/envs/.
        gymnasium_id: the ordinary env in Gymnasium's registry that the kernel reproduces.
        parameters: those kernel parameters that are not read, as a number, from an attribute of the same name.
    """

    id: str
    kernel: str
    gymnasium_id: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def read_parameters(self, env: gymnasium.Env[Any, Any], names: tuple[str, ...]) -> dict[str, float]:
        """The named kernel parameters, from the attributes of an ordinary env."""
        values = {}
        for name in names:
            parameter = self.parameters.get(name, Parameter(name))
            values[name] = parameter.encode(getattr(env.unwrapped, parameter.attribute))
        return values


CARTPOLE_PARAMETERS = {
    "kinematics_integrator": Parameter(
        "kinematics_integrator", lambda name: 0.0 if name == "euler" else 1.0
    ),
    "sutton_barto_reward": Parameter("_sutton_barto_reward", lambda flag: 1.0 if flag else 0.0),
}

NATIVE_ENVS = {
    env.id: env
    for env in (
        NativeEnv("CartPole-v1", "cartpole", "CartPole-v1", CARTPOLE_PARAMETERS),
        NativeEnv("CartPole-v0", "cartpole", "CartPole-v0", CARTPOLE_PARAMETERS),
        NativeEnv("Counter-v0", "counter", "fastvec/Counter-v0"),
    )
}

# The ordinary CounterEnv under a name, so that every native id has an env in Gymnasium's registry.
if "fastvec/Counter-v0" not in gymnasium.registry:
    gymnasium.register("fastvec/Counter-v0", entry_point="fastvec.counter:CounterEnv")


def find(id: str) -> NativeEnv:
    """The native env of that id.

    Raises:
        gymnasium.error.NameNotFound: if there is none; the message has the closest ids.
    """
    if not isinstance(id, str):
        raise TypeError(f"id is {id!r}, {type(id).__name__}: expected one of the names {', '.join(NATIVE_ENVS)}")
    if id not in NATIVE_ENVS:
        close = difflib.get_close_matches(id, NATIVE_ENVS, cutoff=0.5) or sorted(NATIVE_ENVS)
        raise gymnasium.error.NameNotFound(
            f"{id!r} has no native env; did you mean {' or '.join(close)}?"
        )
    return NATIVE_ENVS[id]
