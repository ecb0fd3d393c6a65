"""Spaces taken apart: which arrays a batch of their values is made of, and how these become one value again.

Box, Discrete, MultiDiscrete and MultiBinary are one array each; Tuple and Dict are the parts of what they hold; any
other space is a part without an array, of which a batch has a tuple of objects, as in Gymnasium's ``batch_space``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


@dataclass(frozen=True)
class Part:
    """One part of a space.

    Attributes:
        path: the keys that lead from a value of the space to it.
        space: the space of the part.
        shape: that of one lane's array.
        dtype: the array's; None for objects.
    """

    path: tuple[Any, ...]
    space: Space[Any]
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None

    @property
    def place(self) -> str:
        """The path as one would write it, for messages."""
        return "".join(f"[{key!r}]" for key in self.path)


def parts_of(space: Space[Any], path: tuple[Any, ...] = ()) -> tuple[Part, ...]:
    """The parts of a single env's space, in the order in which :func:`value_of` takes them."""
    if isinstance(space, Dict):
        return tuple(part for key, one in space.spaces.items() for part in parts_of(one, (*path, key)))
    if isinstance(space, Tuple):
        return tuple(part for key, one in enumerate(space.spaces) for part in parts_of(one, (*path, key)))
    if isinstance(space, (Box, Discrete, MultiDiscrete, MultiBinary)):
        return (Part(path, space, space.shape or (), np.dtype(space.dtype)),)
    return (Part(path, space, (), None),)


def value_of(space: Space[Any], values: Iterator[Any]) -> Any:
    """The batched value of a single env's space that has these parts; lists of objects become tuples."""
    if isinstance(space, Dict):
        return {key: value_of(one, values) for key, one in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(value_of(one, values) for one in space.spaces)
    value = next(values)
    return tuple(value) if isinstance(value, list) else value
