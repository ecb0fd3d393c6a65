"""gae: advantages and returns of a rollout, right in every autoreset mode.
The arithmetic is one call of C (csrc/gae_loop.h); here are its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from fastvec import _core
from fastvec.factory import checked_mode
from fastvec.machine import chosen_target

Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def gae(
    rewards: npt.ArrayLike,
    values: npt.ArrayLike,
    terminations: npt.ArrayLike,
    truncations: npt.ArrayLike,
    last_values: npt.ArrayLike,
    *,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
    final_values: npt.ArrayLike | None = None,
    autoreset_mode: str | AutoresetMode = "SameStep",
    pending: npt.ArrayLike | None = None,
    out: Arrays | None = None,
) -> Arrays:
    """Generalised advantage estimation (Schulman et al., 2016, arXiv:1506.02438) of T steps of n lanes.

    Row t is the step from the t-th observation: its action's reward and flags, and the value of the observation that
    the action was chosen for. Nothing is carried over either flag. What the state that a step led to is worth is

    ======================  =========================  ===================  ==============
    the step                ``"SameStep"``             ``"NextStep"``       ``"Disabled"``
    ======================  =========================  ===================  ==============
    goes on                 the next row of `values`   the next row         the next row
    truncates its episode   `final_values`             the next row         `final_values`
    terminates it           0                          0                    0
    ======================  =========================  ===================  ==============

    where `last_values` is the row after the last. In NextStep mode an ending step returns the final observation, so
    that the next row's value is its; that row is the lane's reset and no transition: its advantage is 0 and its return
    its value, whatever its reward, and nothing leaks through it (:func:`reset_rows` tells which rows they are). In
    Disabled mode the caller has reset the lane before the next row, whose value therefore is of the new episode.

    The arithmetic is that of `values`' dtype, float32 or float64, every operation rounded on its own, in this order;
    the other numbers are converted to it first::

        decay        = gamma * gae_lambda
        delta[t]     = (rewards[t] + gamma * bootstrap) - values[t]  # bootstrap: what the table says
        advantage[t] = delta[t] + decay * carried                    # carried: advantage[t + 1]; 0 after an end
        returns[t]   = advantage[t] + values[t]                      # and after the last row

    Args:
        rewards: (T, n), real numbers.
        values: (T, n), float32 or float64.
        terminations, truncations: (T, n), bool. Where both are set, the episode terminated.
        last_values: (n,), the values of the observations after the last row.
        gamma: discount of a step, 0 to 1.
        gae_lambda: 0 for one-step targets, 1 for the rewards of the whole rollout.
        final_values: (T, n), the values of the observations that episodes ended with; only those of truncated steps
            that do not terminate are used. Needed in SameStep and Disabled mode if there are such; not in NextStep.
        autoreset_mode: the mode of the env that the rollout is from.
        pending: NextStep mode alone: bool (n,), the lanes whose first row is a reset, because the step before it, in
            the rollout before this one, ended their episode. None for none.
        out: (advantages, returns) to write to and return instead of new ones: C-contiguous, (T, n), of `values`' dtype,
            without common memory with each other or the inputs.

    Returns:
        (advantages, returns), each (T, n) of `values`' dtype.

    Raises:
        ValueError: for shapes that do not fit; for a truncated step and no `final_values` where they are needed; for
            flags that cannot come of the mode; for `out` that does not fit or overlaps.
        TypeError: for dtypes that do not fit.

    The last two steps before a limit; a step is paid 1, for ever if it were not for the limit, so all values are 10:

    >>> import fastvec
    >>> import numpy as np
    >>> fastvec.gae(
    ...     rewards=np.ones((2, 1)),
    ...     values=np.full((2, 1), 10.0),
    ...     terminations=np.array([[False], [False]]),
    ...     truncations=np.array([[False], [True]]),
    ...     last_values=np.array([10.0]),
    ...     final_values=np.full((2, 1), 10.0),
    ...     gamma=0.9,
    ... )
    (array([[0.],
           [0.]]), array([[10.],
           [10.]]))
    """
    mode = checked_mode(autoreset_mode)
    value = np.asarray(values)
    if value.dtype not in (np.float32, np.float64):
        raise TypeError(f"gae: values are {value.dtype}; expected float32 or float64: convert them with .astype")
    if value.ndim != 2 or value.shape[0] == 0:
        raise ValueError(
            f"gae: values have shape {value.shape}; expected (T, n), a row for each of at least one step; "
            f"for a single lane use values[:, np.newaxis]"
        )
    for name, factor in (("gamma", gamma), ("gae_lambda", gae_lambda)):
        if not 0 <= factor <= 1:
            raise ValueError(f"gae: {name} is {factor!r}; expected a number from 0 to 1")
    shape, dtype = value.shape, value.dtype
    value = np.ascontiguousarray(value)
    reward = _numbers("rewards", rewards, shape, dtype)
    last_value = _numbers("last_values", last_values, shape[1:], dtype)
    terminated = _flags("terminations", terminations, shape)
    truncated = _flags("truncations", truncations, shape)
    final_value = None if final_values is None else _numbers("final_values", final_values, shape, dtype)
    resets = None
    if mode is AutoresetMode.NEXT_STEP:
        if final_value is not None:
            raise ValueError(
                "gae: final_values were given in NextStep mode, where the next row's value is that of the final "
                "observation; leave them out, or name the autoreset_mode that the env was made with"
            )
        resets = _reset_rows(terminated, truncated, pending)
    else:
        if pending is not None:
            raise ValueError(
                f"gae: pending was given in {mode.value} mode, whose rollouts have no reset rows; leave it out, or "
                f"name the autoreset_mode that the env was made with"
            )
        if final_value is None:
            _require_no_truncation(terminated, truncated, mode)
    if out is None:
        out = np.empty(shape, dtype), np.empty(shape, dtype)
    else:
        read = {
            "rewards": reward,
            "values": value,
            "terminations": terminated,
            "truncations": truncated,
            "last_values": last_value,
            "final_values": final_value,
        }
        _check_out(out, shape, dtype, read)
    advantages, returns = out
    _core.gae(
        chosen_target(),
        reward,
        value,
        terminated,
        truncated,
        last_value,
        final_value,
        resets,
        gamma,
        gae_lambda,
        advantages,
        returns,
    )
    return advantages, returns


def reset_rows(
    terminations: npt.ArrayLike, truncations: npt.ArrayLike, pending: npt.ArrayLike | None = None
) -> npt.NDArray[np.bool_]:
    """The rows of a NextStep rollout that are resets and no transitions: those after a row with a flag.

    Args:
        terminations, truncations: bool (T, n).
        pending: bool (n,), the lanes whose first row is a reset, because the step before the rollout ended their
            episode. None for none.

    Returns:
        bool (T, n). Leave these rows out of the loss.

    Raises:
        ValueError: for shapes that do not fit, and if a reset row has a flag: no step of a NextStep env does both.
        TypeError: for flags that are not bool.

    >>> import fastvec
    >>> import numpy as np
    >>> terminations = np.array([[False, True], [True, False], [False, False]])
    >>> fastvec.reset_rows(terminations, np.zeros((3, 2), bool))
    array([[False, False],
           [False,  True],
           [ True, False]])
    """
    shape = np.shape(terminations)
    if len(shape) != 2 or shape[0] == 0:
        raise ValueError(f"reset_rows: terminations have shape {shape}; expected (T, n), a row for each step")
    return _reset_rows(_flags("terminations", terminations, shape), _flags("truncations", truncations, shape), pending)


def _reset_rows(
    terminated: npt.NDArray[np.bool_], truncated: npt.NDArray[np.bool_], pending: npt.ArrayLike | None
) -> npt.NDArray[np.bool_]:
    ended = terminated | truncated
    resets = np.empty_like(ended)
    resets[0] = False if pending is None else _flags("pending", pending, ended.shape[1:])
    resets[1:] = ended[:-1]
    both = resets & ended
    if both.any():
        row, lane = np.argwhere(both)[0]
        before = f"row {row - 1} has one too" if row > 0 else "pending says that the step before it had one"
        raise ValueError(
            f"row {row} of lane {lane} has a flag, but {before}: in NextStep mode the row after an end is a reset, "
            f"which has none; name the autoreset_mode that the env was made with"
        )
    return resets


def _require_no_truncation(
    terminated: npt.NDArray[np.bool_], truncated: npt.NDArray[np.bool_], mode: AutoresetMode
) -> None:
    truncated_alone = truncated > terminated
    if truncated_alone.any():
        row, lane = np.argwhere(truncated_alone)[0]
        where = "info['final_obs']" if mode is AutoresetMode.SAME_STEP else "what the step returned before the reset"
        raise ValueError(
            f"gae: row {row} of lane {lane} is truncated and there are no final_values; an episode that was cut off "
            f"is worth what its final observation is: give final_values, (T, n), the values of {where}"
        )


def _numbers(name: str, given: npt.ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    array = np.asarray(given)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"gae: {name} are {array.dtype}; expected real numbers")
    _check_shape(name, array, shape)
    return np.ascontiguousarray(array, dtype)


def _flags(name: str, given: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    array = np.asarray(given)
    if array.dtype != np.bool_:
        raise TypeError(f"{name} are {array.dtype}; expected bool: convert them with .astype(bool)")
    _check_shape(name, array, shape)
    return np.ascontiguousarray(array)


def _check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        what = "(T, n)" if len(shape) == 2 else "(n,)"
        raise ValueError(f"{name} have shape {array.shape}; expected {shape}, {what}")


def _check_out(
    out: Arrays, shape: tuple[int, ...], dtype: np.dtype[Any], read: dict[str, npt.NDArray[Any] | None]
) -> None:
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(f"gae: out is {type(out).__name__}; expected a tuple of two arrays, (advantages, returns)")
    for name, array in zip(("advantages", "returns"), out, strict=True):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"gae: out's {name} are {found}; expected an array, {dtype} of shape {shape}")
        if not array.flags.carray:
            raise ValueError(
                f"gae: out's {name} are not C-contiguous, aligned and writeable; expected an array that is"
            )
    # All are contiguous by now, so that bounds that overlap do mean common memory.
    for name, array in zip(("advantages", "returns"), out, strict=True):
        for other, own in read.items():
            if own is not None and np.may_share_memory(array, own):
                raise ValueError(f"gae: out's {name} overlap {other}; give arrays of their own")
    if np.may_share_memory(*out):
        raise ValueError("gae: out's advantages overlap its returns; give two arrays of their own")
