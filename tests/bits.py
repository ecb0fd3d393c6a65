"""Bit-for-bit comparison of what two envs return.

The same means the same container types, keys, dtypes, shapes and bytes: 0.0 is not -0.0, and no tolerance creeps in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def assert_same_bits(ours: Any, theirs: Any, where: str) -> None:
    """Compares two values: arrays, numbers, or dicts and tuples of such, nested at will.

    Args:
        ours: what fastvec gave.
        theirs: what is expected.
        where: what the value is, for the message.

    Raises:
        AssertionError: names the first place that differs.
    """
    if isinstance(theirs, dict):
        _assert_same_type(ours, theirs, where)
        if set(ours) != set(theirs):
            raise AssertionError(f"{where}: keys {sorted(ours)}, expected {sorted(theirs)}")
        for key in theirs:
            assert_same_bits(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, (tuple, list)):
        _assert_same_type(ours, theirs, where)
        if len(ours) != len(theirs):
            raise AssertionError(f"{where}: {len(ours)} items, expected {len(theirs)}")
        for i, (our_item, their_item) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_bits(our_item, their_item, f"{where}[{i}]")
    elif isinstance(theirs, np.ndarray):
        _assert_same_array(ours, theirs, where)
    else:
        _assert_same_type(ours, theirs, where)
        if np.asarray(ours).tobytes() != np.asarray(theirs).tobytes():
            raise AssertionError(f"{where}: {ours!r}, expected {theirs!r}")


def _assert_same_array(ours: Any, theirs: npt.NDArray[Any], where: str) -> None:
    _assert_same_type(ours, theirs, where)
    if ours.dtype != theirs.dtype:
        raise AssertionError(f"{where}: dtype {ours.dtype}, expected {theirs.dtype}")
    if ours.shape != theirs.shape:
        raise AssertionError(f"{where}: shape {ours.shape}, expected {theirs.shape}")
    if ours.dtype == object:
        for index in np.ndindex(ours.shape):
            assert_same_bits(ours[index], theirs[index], f"{where}{list(index)}")
    elif ours.tobytes() != theirs.tobytes():
        for index in np.ndindex(ours.shape):
            if ours[index].tobytes() != theirs[index].tobytes():
                raise AssertionError(f"{where}{list(index)}: {ours[index]!r}, expected {theirs[index]!r}")
        raise AssertionError(f"{where}: bools that are neither the byte 0 nor 1")  # which look alike one by one


def _assert_same_type(ours: Any, theirs: Any, where: str) -> None:
    if type(ours) is not type(theirs):
        raise AssertionError(f"{where}: {type(ours).__name__}, expected {type(theirs).__name__}")
