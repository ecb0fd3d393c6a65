"""id -> the kernel that steps it, and the ordinary Gymnasium env whose spaces, limit and parameters it takes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from fastvec import render_state
from fastvec.render_state import DrawnLane
from fastvec.tables import Tables, tables_of_env, tables_of_taxi


def number(value: Any) -> float:
    """The value as a kernel's parameter.

    Raises:
        TypeError: if it is not one number.
        ValueError: if it is beyond the range of float64.
    """
    try:
        if not isinstance(value, (str, bytes, bytearray)):  # which float() would read a number from
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        raise ValueError("the number is beyond the range of float64") from None
    raise TypeError(f"{value!r} is not a number")


@dataclass(frozen=True)
class Parameter:
    """How a kernel's parameter, a number, follows from an attribute of the ordinary env.

    Attributes:
        attribute: its name.
        encode: from its value to the number.
        default: the value where the env has no such attribute, as in some version of Gymnasium; None if all have it.
    """

    attribute: str
    encode: Callable[[Any], float] = number
    default: Any = None

    def read(self, env: Any) -> float:
        """The kernel's number for this ordinary env."""
        return self.encode(
            getattr(env, self.attribute) if self.default is None else getattr(env, self.attribute, self.default)
        )


@dataclass(frozen=True)
class NativeEnv:
    """One id that has a kernel.

    Attributes:
        id: what ``fastvec.make`` takes.
        kernel: name of the kernel in csrc/envs/.
        gymnasium_id: the ordinary env in Gymnasium's registry that the kernel reproduces.
        parameters: those kernel parameters that are not a number in an attribute of the same name.
        state: attributes of the ordinary env that hold the state: the columns each is made of, and its type.
        render_state: gives the ordinary env what its renderer reads beside the attributes of `state` and the numbers
            that it was made with, such as the last action. None where there is nothing more.
        entry_point: the ordinary env's class, where it is fastvec's own.
        float32_column: the state column that is 1 in lanes whose attribute ``state`` is a float32 array in the ordinary
            env, and 0 where it is float64; None if it is always float64.
        tables: from the ordinary env to the arrays that all lanes of the kernel read.
        state_ranges: from the ordinary env to the least and greatest value of those state columns that hold integers
            with a meaning, such as the number of a state; no other value can be set in them.
    """

    id: str
    kernel: str
    gymnasium_id: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    state: Mapping[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = field(default_factory=dict)
    render_state: Callable[[gymnasium.Env[Any, Any], DrawnLane], None] | None = None
    entry_point: str | None = None
    float32_column: str | None = None
    tables: Callable[[Any], Tables] = lambda env: ()
    state_ranges: Callable[[Any], Mapping[str, tuple[int, int]]] = lambda env: {}

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


def truth(value: Any) -> float:
    """What a flag is as a kernel's parameter."""
    return 1.0 if value else 0.0


def states_in_range(env: Any) -> dict[str, tuple[int, int]]:
    """The range of ``s``, the number of a state."""
    return {"s": (0, int(env.observation_space.n) - 1)}


def square(value: Any) -> float:
    """The value squared, as Python does it, which is by C's pow."""
    return number(value) ** 2


def torque_of(action: int) -> Parameter:
    """Acrobot's torque for an action."""

    def encode(torques: Any) -> float:
        try:
            return number(torques[action])
        except (TypeError, IndexError, KeyError):
            raise TypeError(f"{torques!r} is not a sequence of three numbers") from None

    return Parameter("AVAIL_TORQUE", encode)


MOUNTAIN_CAR_STATE = {"state": (("position", "velocity"), lambda values: values)}
PENDULUM: dict[str, Any] = {
    "parameters": {"l_squared": Parameter("l", square)},
    "state": {
        "state": (("theta", "theta_dot"), lambda values: values),
        "last_u": (("last_u",), lambda u: None if math.isnan(u) else u),
    },
}
ACROBOT: dict[str, Any] = {
    "parameters": {
        "length_1_squared": Parameter("LINK_LENGTH_1", square),
        "com_pos_1_squared": Parameter("LINK_COM_POS_1", square),
        "com_pos_2_squared": Parameter("LINK_COM_POS_2", square),
        **{f"torque_{action}": torque_of(action) for action in range(3)},
        "book_or_nips": Parameter("book_or_nips", lambda name: 1.0 if name == "nips" else 0.0),
    },
    "state": {"state": (("theta1", "theta2", "theta1_dot", "theta2_dot"), lambda values: values)},
    "float32_column": "is_float32",
}
TABULAR: dict[str, Any] = {
    "tables": tables_of_env,
    "state_ranges": states_in_range,
    "render_state": render_state.last_action,
}
TAXI: dict[str, Any] = {
    "parameters": {
        "fickle_passenger": Parameter("fickle_passenger", truth),
        "fickle_probability": Parameter("fickle_probability", default=0.3),  # Taxi-v3 has the number in its code
    },
    "state": {"fickle_step": (("fickle_step",), bool)},
    "tables": tables_of_taxi,
    "render_state": render_state.taxi,
    "state_ranges": lambda env: {**states_in_range(env), "fickle_step": (0, 1)},
}
BLACKJACK: dict[str, Any] = {
    "parameters": {"natural": Parameter("natural", truth), "sab": Parameter("sab", truth)},
    # The most that a hand comes to: 21, or the 16 of a dealer, and a ten. Before the first reset all are 0.
    "state_ranges": lambda env: {
        "player_sum": (0, 31),
        "player_has_ace": (0, 1),
        "player_cards": (0, 22),
        "dealer_sum": (0, 26),
        "dealer_has_ace": (0, 1),
        "dealer_card": (0, 10),
        "dealer_suit": (0, 3),
        "dealer_face": (0, 2),
    },
    "render_state": render_state.blackjack,
}

NATIVE_ENVS = {
    env.id: env
    for env in (
        NativeEnv("CartPole-v1", "cartpole", "CartPole-v1", **CARTPOLE),
        NativeEnv("CartPole-v0", "cartpole", "CartPole-v0", **CARTPOLE),
        NativeEnv("MountainCar-v0", "mountain_car", "MountainCar-v0", state=MOUNTAIN_CAR_STATE),
        NativeEnv(
            "MountainCarContinuous-v0",
            "mountain_car_continuous",
            "MountainCarContinuous-v0",
            state=MOUNTAIN_CAR_STATE,
            float32_column="is_float32",
        ),
        NativeEnv("Pendulum-v1", "pendulum", "Pendulum-v1", **PENDULUM),
        NativeEnv("Acrobot-v1", "acrobot", "Acrobot-v1", **ACROBOT),
        NativeEnv(
            "Counter-v0",
            "counter",
            "fastvec/Counter-v0",
            state={"count": (("count",), int)},
            entry_point="fastvec.counter:CounterEnv",
        ),
        NativeEnv("FrozenLake-v1", "tabular", "FrozenLake-v1", **TABULAR),
        NativeEnv("FrozenLake8x8-v1", "tabular", "FrozenLake8x8-v1", **TABULAR),
        NativeEnv("CliffWalking-v1", "tabular", "CliffWalking-v1", **TABULAR),
        NativeEnv("CliffWalkingSlippery-v1", "tabular", "CliffWalkingSlippery-v1", **TABULAR),
        NativeEnv("Taxi-v3", "taxi", "Taxi-v3", **TAXI),
        NativeEnv("Taxi-v4", "taxi", "Taxi-v4", **TAXI),
        NativeEnv("Blackjack-v1", "blackjack", "Blackjack-v1", **BLACKJACK),
    )
    # Taxi-v4 came with Gymnasium 1.3, and Taxi-v3 went.
    if env.entry_point is not None or env.gymnasium_id in gymnasium.registry
}

# What from_tables makes; no id of make().
FROM_TABLES = NativeEnv("from_tables", "tabular", "", state_ranges=states_in_range)


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


def ordinary_class(native: NativeEnv) -> Any:
    """The class of the ordinary env."""
    entry_point = native.entry_point or gymnasium.spec(native.gymnasium_id).entry_point
    return load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point


def of_vec_env(id: str) -> NativeEnv:
    """The native env that a VecEnv of this id was made of."""
    return FROM_TABLES if id == FROM_TABLES.id else NATIVE_ENVS[id]
