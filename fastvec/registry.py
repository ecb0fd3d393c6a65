"""id -> the kernel that steps it, and the ordinary Gymnasium env whose spaces, limit and parameters it takes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium


def number(value: Any) -> float:
    """The value as a kernel's parameter.

    Raises:
        TypeError: if it is not one number.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{value!r} is not a number") from None


@dataclass(frozen=True)
class Parameter:
    """How a kernel's parameter, a number, follows from an attribute of the ordinary env."""

    attribute: str
    encode: Callable[[Any], float] = number


@dataclass(frozen=True)
class NativeEnv:
    """One id that has a kernel.

    Attributes:
        id: what ``fastvec.make`` takes.
        kernel: name of the kernel in csrc/envs/.
        gymnasium_id: the ordinary env in Gymnasium's registry that the kernel reproduces.
        parameters: those kernel parameters that are not a number in an attribute of the same name.
        state: attributes of the ordinary env that hold the state: the columns each is made of, and its type.
        entry_point: the ordinary env's class, where it is fastvec's own.
    """

    id: str
    kernel: str
    gymnasium_id: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    state: Mapping[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = field(default_factory=dict)
    entry_point: str | None = None

    def parameter(self, name: str) -> Parameter:
        """How the kernel parameter of that name follows from the ordinary env."""
        return self.parameters.get(name, Parameter(name))


CARTPOLE: dict[str, Any] = {
    "parameters": {
        "kinematics_integrator": Parameter("kinematics_integrator", lambda name: 0.0 if name == "euler" else 1.0),
        "sutton_barto_reward": Parameter("_sutton_barto_reward", lambda flag: 1.0 if flag else 0.0),
    },
    "state": {"state": (("x", "x_dot", "theta", "theta_dot"), lambda values: values)},
}

NATIVE_ENVS = {
    env.id: env
    for env in (
        NativeEnv("CartPole-v1", "cartpole", "CartPole-v1", **CARTPOLE),
        NativeEnv("CartPole-v0", "cartpole", "CartPole-v0", **CARTPOLE),
        NativeEnv(
            "Counter-v0",
            "counter",
            "fastvec/Counter-v0",
            state={"count": (("count",), int)},
            entry_point="fastvec.counter:CounterEnv",
        ),
    )
}


def find(id: str) -> NativeEnv:
    """The native env of that id, with or without ``fastvec/`` in front.

    Raises:
        gymnasium.error.NameNotFound: if there is none; the message has the closest ids.
    """
    if not isinstance(id, str):
        raise TypeError(f"id is {id!r}, {type(id).__name__}: expected one of the names {', '.join(NATIVE_ENVS)}")
    name = id.removeprefix("fastvec/")
    if name not in NATIVE_ENVS:
        folded = {known.lower(): known for known in NATIVE_ENVS}
        close = [folded[found] for found in difflib.get_close_matches(name.lower(), folded, cutoff=0.6)]
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(NATIVE_ENVS)}"
        raise gymnasium.error.NameNotFound(f"{id!r} has no native env; {hint}")
    return NATIVE_ENVS[name]
