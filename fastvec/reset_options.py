"""Checks of what ``VecEnv.reset`` is given, in the order of Gymnasium's SyncVectorEnv: seeds, mask, the env's options.

Nothing here changes anything, so that a reset with bad arguments leaves every lane as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import Error


def checked_seeds(seed: Any, n: int) -> int | list[int | None] | None:
    """The seed argument of ``reset``: an int (lane i gets seed + i), a list of an int or None for each lane, or None.

    Raises:
        TypeError: for something that is neither.
        ValueError: for a sequence of the wrong length.
        gymnasium.error.Error: for a seed that is negative or not a Python int.
    """
    if seed is None:
        return None
    if isinstance(seed, int):
        if seed < 0:
            raise Error(f"seed is {seed}: expected an int from 0")
        return int(seed)
    is_array = isinstance(seed, np.ndarray) and seed.ndim == 1
    if isinstance(seed, (str, bytes)) or not (is_array or isinstance(seed, Sequence)):
        raise TypeError(
            f"seed is {seed!r}, {type(seed).__name__}: expected None, a Python int from 0 (int(seed) makes one), "
            f"or a sequence with a seed for each lane"
        )
    if len(seed) != n:
        raise ValueError(f"seed has {len(seed)} entries for {n} lanes; give one for each lane, or a single int")
    for lane, one in enumerate(seed):
        if one is not None and not isinstance(one, int):
            raise Error(
                f"seed[{lane}] is {one!r}, {type(one).__name__}: expected a Python int from 0 (seeds.tolist() makes "
                f"them of an array), or None to leave the lane's stream running"
            )
        if one is not None and one < 0:
            raise Error(f"seed[{lane}] is {one}: expected an int from 0")
    return [None if one is None else int(one) for one in seed]


def checked_mask(options: dict[str, Any] | None, n: int) -> npt.NDArray[np.bool_] | None:
    """``options["reset_mask"]``, or None.

    Raises:
        TypeError: if it is not a bool array, or options is not a dict.
        ValueError: if its shape is not (n,) or no lane is chosen.
    """
    if options is None:
        return None
    if not isinstance(options, dict):
        raise TypeError(f"options is {options!r}, {type(options).__name__}: expected a dict or None")
    if "reset_mask" not in options:
        return None
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"options['reset_mask'] is {type(mask).__name__}: expected a NumPy bool array of shape ({n},)")
    if mask.shape != (n,):
        raise ValueError(f"options['reset_mask'] has shape {mask.shape}: expected ({n},), one bool for each lane")
    if mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] has dtype {mask.dtype}: expected bool; use mask.astype(bool)")
    if not mask.any():
        raise ValueError("options['reset_mask'] chooses no lane: expected at least one True")
    return mask


def checked_options(
    options: dict[str, Any] | None,
    kernel: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[float, ...]],
    id: str,
) -> tuple[float, ...] | None:
    """The env's own reset options, in the kernel's order; None if the caller gave none of them.

    Args:
        options: what ``reset`` was given.
        kernel: what ``kernel_info`` tells: state names, parameter names, option names, option defaults.
        id: the env's id, for messages.

    Raises:
        ValueError: if an option is not a finite number, low is above high, or a bound to both sides is negative.
    """
    _, _, names, defaults = kernel
    if options is None or not any(name in options for name in names):
        return None
    values = []
    for name, default in zip(names, defaults, strict=True):
        try:
            value = float(options.get(name, default))
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"options[{name!r}] is {options[name]!r}: {id} takes a finite number")
        values.append(value)
    if names == ("low", "high"):
        low, high = values
        if low > high or not math.isfinite(high - low):
            raise ValueError(f"options: low is {low} and high is {high}; {id} takes low <= high, a finite range apart")
    if names == ("x_init", "y_init"):
        for name, value in zip(names, values, strict=True):
            if math.copysign(1.0, value) < 0 or not math.isfinite(2 * value):
                raise ValueError(
                    f"options[{name!r}] is {value}: {id} draws from -{name} to {name}, and takes a finite range from 0"
                )
    return tuple(values)
