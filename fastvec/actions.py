"""Actions as people pass them -> the array that a kernel reads, or an error that says which lane and why.

Arrays that are right as they are never come here (see Batch._is_ready)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def convert_actions(
    actions: Any, n: int, shape: tuple[int, ...], discrete: bool, low: int, count: int, label: str
) -> npt.NDArray[Any]:
    """Turns what was passed to ``step`` into a C-contiguous array of n lanes; never writes to what was passed.

    Args:
        actions: anything NumPy makes an array of: arrays of any layout, lists, tuples, CPU tensors.
        n: number of lanes.
        shape: shape of one lane's action.
        discrete: True for Discrete actions (the result is int64), False for Box (float32 stays, all else is float64).
        low: the first Discrete action.
        count: how many Discrete actions there are.
        label: the env's id, for messages.

    Returns:
        An array of shape (n, *shape). Discrete actions may still lie outside of the space.

    Raises:
        ValueError: for a wrong count or shape.
        TypeError: for a dtype that does not fit.
    """
    expected = (n, *shape)
    if np.ma.is_masked(actions):  # NumPy would show what is behind the mask
        raise ValueError(f"actions[{np.argmax(np.ma.getmaskarray(actions))}] is masked: {label} takes an action a lane")
    try:
        array = np.asarray(actions)
    except Exception as error:
        raise TypeError(
            f"actions: {type(actions).__name__} is not convertible to an array of shape {expected} for {label}: {error}"
        ) from error
    if array.shape != expected:
        raise ValueError(
            f"actions have shape {array.shape}: {label} with {n} lane{'s' if n != 1 else ''} takes {expected}, "
            f"one action a lane"
        )
    kind = array.dtype.kind
    if discrete:
        if kind not in "iub":
            raise TypeError(f"actions have dtype {array.dtype}: {label} takes integers; use actions.astype(np.int64)")
        if array.dtype.itemsize == 8 and kind == "u":
            # Above the range of int64 no action is valid, and such a value must not wrap round to a valid one.
            too_large = array > np.uint64(np.iinfo(np.int64).max)
            if too_large.any():
                raise bad_action(array, int(np.argmax(too_large)), low, count, label)
        dtype: np.dtype[Any] = np.dtype(np.int64)
    else:
        if kind not in "iubf" or (kind == "f" and array.dtype.itemsize not in (4, 8)):
            raise TypeError(
                f"actions have dtype {array.dtype}: {label} takes float32 or float64; use actions.astype(np.float32)"
            )
        dtype = np.dtype(np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64)
    return np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)


def are_python_numbers(actions: Any) -> bool:
    """Whether actions that can be converted are Python's own numbers, in lists, and no arrays or NumPy scalars."""
    while isinstance(actions, (list, tuple)):
        actions = actions[0]
    return isinstance(actions, (int, float)) and not isinstance(actions, np.generic)


def bad_action(actions: npt.NDArray[Any], place: int, low: int, count: int, label: str) -> ValueError:
    """The error for the action at flat index ``place``, which is not in the space."""
    index = ", ".join(str(int(i)) for i in np.unravel_index(place, actions.shape))
    value = actions.flat[place].item()
    if actions.dtype.kind in "iu":
        return ValueError(f"actions[{index}] = {value}: {label} takes {low}..{low + count - 1}; no lane has moved")
    return ValueError(f"actions[{index}] = {value}: {label} takes numbers; no lane has moved")
