"""Lanes of batched values: taking one lane's part out, putting actions together, and comparing bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

AnyVectorEnv = VectorEnv[Any, Any, Any]


def rows_of(space: Space[Any], batch: Any) -> list[Any]:
    """Copies of each lane's part of a value of a batched space."""
    return [copy.deepcopy(row) for row in iterate(space, batch)]


def batch_of(single_space: Space[Any], rows: list[Any]) -> Any:
    """The batched value that has these rows."""
    room: Any = create_empty_array(single_space, len(rows))
    return concatenate(single_space, rows, room)


def mixed(env: AnyVectorEnv, one: Any, other: Any, from_other: npt.NDArray[np.bool_]) -> Any:
    """Actions of ``one``, but of ``other`` in the lanes of a mask."""
    pairs = zip(rows_of(env.action_space, one), rows_of(env.action_space, other), from_other, strict=True)
    return batch_of(env.single_action_space, [second if chosen else first for first, second, chosen in pairs])


def info_of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """A copy of what infos say of one lane: the keys whose mask is true for it. Measured times are left out."""
    own: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        if mask is None or mask[lane]:
            own[key] = info_of(value, lane) if isinstance(value, dict) else copy.deepcopy(row_of(value, lane))
            if key == "episode" and isinstance(value, dict):
                own[key].pop("t", None)
    return own


def row_of(value: Any, lane: int) -> Any:
    """One lane's part of an info: of an array or a list, or of each in a tuple or dict of such."""
    if isinstance(value, dict):
        return {key: row_of(part, lane) for key, part in value.items()}
    return tuple(row_of(part, lane) for part in value) if _is_container(value) else value[lane]


def _is_container(value: Any) -> bool:
    """Whether it is a tuple of batched parts, rather than of one object a lane."""
    return isinstance(value, tuple) and all(isinstance(part, (np.ndarray, list, tuple, dict)) for part in value)


def final_obs_rows(env: AnyVectorEnv, infos: dict[str, Any]) -> dict[int, Any]:
    """Lane -> its ``final_obs``, for the lanes of the mask: from an array of objects, or from a batched observation."""
    final_obs, lanes = infos["final_obs"], np.flatnonzero(infos["_final_obs"]).tolist()
    if isinstance(final_obs, np.ndarray) and final_obs.dtype == object:
        return {lane: final_obs[lane] for lane in lanes}
    rows = rows_of(env.observation_space, final_obs)
    return {lane: rows[lane] for lane in lanes}


def same_bits(one: Any, other: Any) -> bool:
    """Whether two values are equal bit for bit, dtypes too: -0.0 is not 0.0, and NaN is itself."""
    return _same(one, other, of_one_dtype=True)


def same_values(one: Any, other: Any) -> bool:
    """Whether two values are equal, whatever the dtype: 1 is 1.0, and NaN is itself."""
    return _same(one, other, of_one_dtype=False)


def _same(one: Any, other: Any, of_one_dtype: bool) -> bool:
    if isinstance(one, dict) or isinstance(other, dict):
        if not (isinstance(one, dict) and isinstance(other, dict)) or one.keys() != other.keys():
            return False
        return all(_same(one[key], other[key], of_one_dtype) for key in one)
    if isinstance(one, (tuple, list)) or isinstance(other, (tuple, list)):
        if not (isinstance(one, (tuple, list)) and isinstance(other, (tuple, list))) or len(one) != len(other):
            return False
        return all(_same(*pair, of_one_dtype) for pair in zip(one, other, strict=True))
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape:
        return False
    if a.dtype == object or b.dtype == object:
        if a.ndim == 0:
            return bool(a.item() == b.item())
        return all(_same(a[index], b[index], of_one_dtype) for index in np.ndindex(a.shape))
    if of_one_dtype:
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def has_dtype(space: Space[Any], value: Any) -> bool:
    """Whether the arrays of a value have the dtypes of its space."""
    if isinstance(space, Dict):
        return all(has_dtype(space[key], value[key]) for key in space.spaces)
    if isinstance(space, Tuple):
        return all(has_dtype(part, item) for part, item in zip(space.spaces, value, strict=True))
    return not isinstance(value, (np.ndarray, np.generic)) or space.dtype is None or value.dtype == space.dtype
