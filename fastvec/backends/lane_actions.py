"""Actions of all lanes as people pass them -> checked arrays, and from these the action that each ordinary env gets.

An env gets what ``SyncVectorEnv`` would give it of an array of the space's dtype: a NumPy scalar, or its own copy of a
row. Values outside of the space are left for the env to refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import batch_space, iterate

from fastvec.actions import convert_actions
from fastvec.backends.parts import Part, parts_of, value_of


class LaneActions:
    """What there is to know of the actions of n lanes.

    Attributes:
        parts: those of the single action space.
    """

    def __init__(self, single_space: Space[Any], n: int, label: str) -> None:
        """The actions of n lanes with this action space; the label is the env's, for messages."""
        self.parts = parts_of(single_space)
        self._single_space, self._n, self._label = single_space, n, label
        self._batched_space = batch_space(single_space, n)
        # The array that needs no conversion, where there is one alone.
        one = self.parts[0] if len(self.parts) == 1 and not self.parts[0].path else None
        self._dtype, self._shape = (None, ()) if one is None else (one.dtype, (n, *one.shape))

    def arrays(self, actions: Any) -> list[Any]:
        """The actions as an array (n, ...) for each part, or a list of n objects. What was passed is not written to.

        Raises:
            ValueError: for a wrong number of actions, a wrong shape, and numbers that the dtype cannot hold.
            TypeError: for a dtype or a container that does not fit.
        """
        if type(actions) is np.ndarray and actions.dtype == self._dtype and actions.shape == self._shape:
            return [actions]
        values = self._taken_apart(self._single_space, actions, "actions")
        return [self._converted(part, value) for part, value in zip(self.parts, values, strict=True)]

    def rows(self, arrays: list[Any]) -> list[Any] | npt.NDArray[Any]:
        """The action of each lane, as ``Lanes.step`` takes them, of what :meth:`arrays` returned or a part of it."""
        if self._dtype is not None and arrays[0].ndim == 1:
            numbers: npt.NDArray[Any] = arrays[0]
            return numbers
        # Rows are the env's to keep and to write to; numbers are new objects anyway.
        own = [array.copy() if isinstance(array, np.ndarray) and array.ndim > 1 else array for array in arrays]
        if self._dtype is not None:
            return list(own[0])
        return list(iterate(self._batched_space, value_of(self._single_space, iter(own))))

    def _taken_apart(self, space: Space[Any], actions: Any, where: str) -> Iterator[Any]:
        if isinstance(space, Dict):
            if not isinstance(actions, Mapping) or actions.keys() != space.spaces.keys():
                found = f"keys {list(actions)}" if isinstance(actions, Mapping) else type(actions).__name__
                expected = ", ".join(map(repr, space.spaces))
                raise TypeError(f"{where}: {found}; {self._label} takes a dict with {expected}")
            for key, one in space.spaces.items():
                yield from self._taken_apart(one, actions[key], f"{where}[{key!r}]")
        elif isinstance(space, Tuple):
            if not isinstance(actions, (tuple, list)) or len(actions) != len(space.spaces):
                found = f"{len(actions)} items" if isinstance(actions, (tuple, list)) else type(actions).__name__
                raise TypeError(f"{where}: {found}; {self._label} takes a tuple of {len(space.spaces)} parts")
            for place, one in enumerate(space.spaces):
                yield from self._taken_apart(one, actions[place], f"{where}[{place}]")
        else:
            yield actions

    def _converted(self, part: Part, value: Any) -> Any:
        label = f"{self._label} (actions{part.place})" if part.path else self._label
        if part.dtype is None:
            objects = list(value)
            if len(objects) != self._n:
                raise ValueError(f"{len(objects)} actions for {self._n} lanes: {label} takes one a lane")
            return objects
        if part.dtype.kind == "f":
            if isinstance(value, np.ndarray) and value.dtype == part.dtype and value.shape == (self._n, *part.shape):
                return value
            return convert_actions(value, self._n, part.shape, False, 0, 0, label)
        array = convert_actions(value, self._n, part.shape, True, 0, np.iinfo(np.int64).max, label)
        converted = array.astype(part.dtype)
        if not np.array_equal(converted, array):
            lane = int(np.argwhere(converted != array)[0][0])
            raise ValueError(f"actions[{lane}] = {array[lane]}: {label} takes {part.dtype}; no lane has moved")
        return converted
