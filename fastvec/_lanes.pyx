# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=True
"""Lanes that are ordinary Python envs: the loop over them, their autoresets, final observations, infos and statistics.

The serial backend runs this loop over all lanes, and every worker of the process backend over its own."""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

import time

import numpy as np
from gymnasium import Wrapper
from gymnasium.error import ResetNeeded

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    bint PyArray_ISCARRAY_RO(cnp.ndarray)
    bint PyArray_CompareLists(const cnp.npy_intp *, const cnp.npy_intp *, int)

# What stands in a lane's place of the status array.
RUNNING = 0  # the next step is a real one
ENDED = 1    # its episode ended, and it was not reset since
FAILED = 2   # its env raised: nothing is known of its state until it is reset
BEGAN = 3    # the last row was a reset in place of a step; the next step is a real one

cdef enum:
    _RUNNING = 0
    _ENDED = 1
    _FAILED = 2
    _BEGAN = 3

MODES = ("NextStep", "SameStep", "Disabled")

cdef enum:
    _NEXT_STEP = 0
    _SAME_STEP = 1
    _DISABLED = 2


@cython.final
cdef class Part:
    """One part of the observations: an array with a row for each lane, or a list of objects."""

    cdef tuple path
    cdef cnp.ndarray array
    cdef list objects
    cdef char *data
    cdef size_t size  # bytes of a row
    cdef tuple shape  # of a row

    def __cinit__(self, tuple path, room):
        self.path = path
        if isinstance(room, list):
            self.objects = room
        else:
            self.array = room
            self.data = <char *>cnp.PyArray_DATA(self.array)
            self.size = room.nbytes // len(room)  # not the stride, which of an empty row is not 0
            self.shape = room.shape[1:]

    cdef int put(self, Py_ssize_t row, value) except -1:
        """Copies a lane's observation, of which this is a part, to its row."""
        cdef cnp.ndarray given
        for key in self.path:
            value = value[key]
        if self.objects is not None:
            self.objects[row] = value
            return 0
        if cnp.PyArray_CheckExact(value):
            given = <cnp.ndarray>value
            if (
                cnp.PyArray_TYPE(given) == cnp.PyArray_TYPE(self.array)
                and PyArray_ISCARRAY_RO(given)
                and cnp.PyArray_NDIM(given) == cnp.PyArray_NDIM(self.array) - 1
                and PyArray_CompareLists(
                    cnp.PyArray_DIMS(given), cnp.PyArray_DIMS(self.array) + 1, cnp.PyArray_NDIM(given)
                )
            ):
                memcpy(self.data + row * self.size, cnp.PyArray_DATA(given), self.size)
                return 0
        elif type(value) is int and cnp.PyArray_NDIM(self.array) == 1 and cnp.PyArray_TYPE(self.array) == cnp.NPY_INT64:
            (<int64_t *>self.data)[row] = value
            return 0
        value = np.asarray(value)
        if value.shape != self.shape:
            place = "".join([f"[{key!r}]" for key in self.path])
            raise ValueError(f"the observation{place} has shape {value.shape}; the space has {self.shape}")
        np.copyto(self.array[row, ...], value, casting="same_kind")
        return 0


@cython.final
cdef class Lanes:
    """Some lanes of an env, whose rows in the batch's arrays stand one after the other.

    Results go straight to the arrays. What has no place in them is returned: infos, and what envs raised.
    """

    cdef readonly list envs
    cdef readonly Py_ssize_t first
    cdef tuple _paths
    cdef list _observations, _final
    cdef list _parts, _final_parts
    cdef object _rewards, _terminations, _truncations, _status
    cdef str _mode_name
    cdef int _mode
    cdef double *rewards
    cdef uint8_t *terminations
    cdef uint8_t *truncations
    cdef uint8_t *status

    def __init__(self, list envs, Py_ssize_t first, tuple paths, list observations, list final, rewards, terminations,
                 truncations, status, str mode):
        """Lanes that have not been reset.

        Args:
            envs: an ordinary env for each lane.
            first: the number of the first of these lanes, which is the row of its results.
            paths: for each part of an observation the keys that lead to it.
            observations: for each part an array (n, ...) of the whole batch, or a list of n objects.
            final: likewise, for the last observations of episodes that end, in SAME_STEP mode.
            rewards, terminations, truncations, status: arrays (n,), float64, bool, bool and uint8.
            mode: one of MODES.
        """
        self.envs, self.first = envs, first
        self._paths, self._observations, self._final = paths, observations, final
        self._rewards, self._terminations, self._truncations = rewards, terminations, truncations
        self._status, self._mode_name = status, mode
        self._parts = [Part(path, room) for path, room in zip(paths, observations, strict=True)]
        self._final_parts = [Part(path, room) for path, room in zip(paths, final, strict=True)]
        self._mode = MODES.index(mode)
        self.rewards = <double *>cnp.PyArray_DATA(<cnp.ndarray?>rewards) + first
        self.terminations = <uint8_t *>cnp.PyArray_DATA(<cnp.ndarray?>terminations) + first
        self.truncations = <uint8_t *>cnp.PyArray_DATA(<cnp.ndarray?>truncations) + first
        self.status = <uint8_t *>cnp.PyArray_DATA(<cnp.ndarray?>status) + first

    def __reduce__(self):
        return Lanes, (self.envs, self.first, self._paths, self._observations, self._final, self._rewards,
                       self._terminations, self._truncations, self._status, self._mode_name)

    def reset(self, list seeds, mask, options):
        """Begins episodes in all of these lanes, or in those of a mask.

        Args:
            seeds: an int or None for each of these lanes.
            mask: bool, (number of these lanes,), or None.
            options: what every env is given a copy of, or None.

        Returns:
            (infos, errors): (lane, info) for infos with something in them, and (lane, exception).
        """
        cdef list infos = [], errors = []
        cdef Py_ssize_t i
        try:
            for i in range(len(self.envs)):
                if mask is not None and not mask[i]:
                    continue
                self.terminations[i] = self.truncations[i] = False
                try:
                    obs, info = _begun(
                        self.envs[i].reset(seed=seeds[i], options=None if options is None else dict(options))
                    )
                    self._put(self._parts, i, obs)
                    self._keep_info(infos, i, info)
                    self.status[i] = _RUNNING
                except Exception as error:
                    self._fail(errors, i, error)
        except BaseException:
            self._fail_all()
            raise
        return infos, errors

    def step(self, actions):
        """Steps these lanes, and resets those whose time it is; the others move also if one of them raises.

        Args:
            actions: a list of one for each of these lanes, of the type that the env is given; or an array (number of
                these lanes,) of numbers, of which each env is given a NumPy scalar.

        Returns:
            (infos, finals, errors): (lane, info) for infos with something in them; likewise the infos of the last steps
            of episodes, in SAME_STEP mode; and (lane, exception).
        """
        cdef list infos = [], finals = [], errors = []
        cdef list given = None
        cdef cnp.ndarray numbers = None
        cdef char *data = NULL
        cdef Py_ssize_t i, stride = 0
        if isinstance(actions, list):
            given = actions
        else:
            numbers = <cnp.ndarray?>actions
            data, stride = <char *>cnp.PyArray_DATA(numbers), cnp.PyArray_STRIDES(numbers)[0]
        if len(actions) != len(self.envs):
            raise ValueError(f"{len(actions)} actions for {len(self.envs)} lanes")
        try:
            for i in range(len(self.envs)):
                try:
                    # A list of an array's numbers takes twice as long to make.
                    action = given[i] if numbers is None else cnp.PyArray_ToScalar(data + i * stride, numbers)
                    self._step_lane(i, action, infos, finals)
                except Exception as error:
                    self._fail(errors, i, error)
        except BaseException:
            self._fail_all()
            raise
        return infos, finals, errors

    def step_one(self, Py_ssize_t i, action):
        """Steps the i-th of these lanes, or resets it if it is time for that; returns as step does."""
        cdef list infos = [], finals = [], errors = []
        try:
            self._step_lane(i, action, infos, finals)
        except Exception as error:
            self._fail(errors, i, error)
        return infos, finals, errors

    cdef int _step_lane(self, Py_ssize_t i, action, list infos, list finals) except -1:
        cdef bint ended
        env = self.envs[i]
        if self._mode == _NEXT_STEP and self.status[i] == _ENDED:
            obs, info = _begun(env.reset())
            self._put(self._parts, i, obs)
            self.rewards[i] = 0.0
            self.terminations[i] = self.truncations[i] = False
            self.status[i] = _BEGAN
            self._keep_info(infos, i, info)
            return 0
        result = env.step(action)
        if type(result) is not tuple or len(<tuple>result) != 5:
            result = _unpacked(result, "step", 5, "observation, reward, terminated, truncated, info")
        obs, reward, terminated, truncated, info = <tuple>result
        try:
            self.rewards[i] = reward
        except TypeError as error:
            raise TypeError(f"step returned the reward {reward!r}; expected a number") from error
        self.terminations[i] = bool(terminated)
        self.truncations[i] = bool(truncated)
        ended = self.terminations[i] or self.truncations[i]
        if ended and self._mode == _SAME_STEP:
            # All of the ended episode is copied before the reset, which may write to the same objects.
            self._put(self._final_parts, i, obs)
            finals.append((self.first + i, _snapshot(_checked_info(info))))
            obs, info = _begun(env.reset())
            ended = False
        self._put(self._parts, i, obs)
        self._keep_info(infos, i, info)
        self.status[i] = _ENDED if ended else _RUNNING
        return 0

    cdef int _put(self, list parts, Py_ssize_t i, obs) except -1:
        for part in parts:
            (<Part>part).put(self.first + i, obs)
        return 0

    cdef int _keep_info(self, list infos, Py_ssize_t i, info) except -1:
        if _checked_info(info):
            infos.append((self.first + i, info))
        return 0

    cdef int _fail(self, list errors, Py_ssize_t i, error) except -1:
        """Notes what a lane raised; its row then tells of no step."""
        self.status[i] = _FAILED
        self.rewards[i] = 0.0
        self.terminations[i] = self.truncations[i] = False
        errors.append((self.first + i, error))
        return 0

    cdef _fail_all(self):
        """After an interrupt it is not known which lane has moved."""
        for i in range(len(self.envs)):
            self.status[i] = _FAILED

    def call(self, str name, tuple args, dict kwargs, only=None):
        """Calls each env's method of that name, in the env or one of its wrappers; an attribute is just read.

        Args:
            name: the name.
            args, kwargs: the method's.
            only: a set of lanes, for fewer than all; the value of others is None.
        """
        values = []
        for i, env in enumerate(self.envs):
            if only is not None and self.first + i not in only:
                values.append(None)
                continue
            found = env.get_wrapper_attr(name)
            values.append(found(*args, **kwargs) if callable(found) else found)
        return values

    def get_attr(self, str name):
        """Each env's attribute of that name, in the env or one of its wrappers."""
        return [env.get_wrapper_attr(name) for env in self.envs]

    def set_attr(self, str name, values):
        """Sets each env's attribute of that name where it is, in the env or one of its wrappers."""
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def are_wrapped(self, wrapper_class):
        """Whether each env is in a wrapper of this class."""
        values = []
        for env in self.envs:
            while isinstance(env, Wrapper) and not isinstance(env, wrapper_class):
                env = env.env
            values.append(isinstance(env, wrapper_class))
        return values

    def render(self):
        """What each env renders."""
        return [env.render() for env in self.envs]

    def close(self):
        """Closes all envs, and returns (lane, exception) of those that raise."""
        cdef list errors = []
        for i, env in enumerate(self.envs):
            try:
                env.close()
            except Exception as error:
                errors.append((self.first + i, error))
        return errors


def copied(cnp.ndarray array not None):
    """A copy of an array: ``array.copy()`` without what looking up and calling that takes, twice the copy's own time."""
    return cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)


cdef _begun(result):
    """What a reset returned: (observation, info)."""
    return result if type(result) is tuple and len(result) == 2 else _unpacked(result, "reset", 2, "observation, info")


cdef tuple _unpacked(result, str call, int count, str names):
    """What a call of an env returned, as a tuple of so many values."""
    try:
        values = tuple(result)
    except TypeError:
        raise TypeError(f"{call} returned {type(result).__name__}; expected a tuple: {names}") from None
    if len(values) != count:
        raise ValueError(f"{call} returned {len(values)} values; expected {count}: {names}")
    return values


cdef _checked_info(info):
    """The info, if it is one."""
    if not isinstance(info, dict):
        raise TypeError(f"the env returned an info that is {type(info).__name__}; expected dict")
    return info


cdef _snapshot(value):
    """A copy of an info, in which arrays are copied too and other objects are the same."""
    if isinstance(value, dict):
        return {key: _snapshot(item) for key, item in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


@cython.final
cdef class Ledger:
    """What is known of all lanes between the calls, and the returns and lengths of their episodes."""

    cdef readonly cnp.ndarray rewards, terminations, truncations, status
    cdef object returns, lengths, began
    cdef bint disabled, same_step
    cdef Py_ssize_t n

    def __init__(self, rewards, terminations, truncations, status, str mode, bint episode_stats):
        """A ledger of lanes that write to these arrays (n,)."""
        self.rewards, self.terminations, self.truncations, self.status = rewards, terminations, truncations, status
        self.n = len(rewards)
        self.disabled, self.same_step = mode == "Disabled", mode == "SameStep"
        self.returns = np.zeros(self.n) if episode_stats else None
        self.lengths, self.began = np.zeros(self.n, np.int64), np.zeros(self.n)

    def __reduce__(self):
        mode = "Disabled" if self.disabled else "SameStep" if self.same_step else "NextStep"
        made_of = (self.rewards, self.terminations, self.truncations, self.status, mode, self.episode_stats)
        return Ledger, made_of, (self.returns, self.lengths, time.perf_counter() - self.began)

    def __setstate__(self, state):
        self.returns, self.lengths, seconds = state
        self.began = time.perf_counter() - seconds

    @property
    def episode_stats(self):
        """Whether returns and lengths of episodes are kept."""
        return self.returns is not None

    def require_ready(self):
        """Raises ResetNeeded, with the first such lane, if there is one that can make no step."""
        cdef const uint8_t *status = <const uint8_t *>cnp.PyArray_DATA(self.status)
        cdef Py_ssize_t i
        for i in range(self.n):
            if status[i] == _FAILED:
                raise ResetNeeded(f"step: lane {i} failed in its last call and was not reset since; reset all lanes, or "
                                  f"that one by options={{'reset_mask': mask}}. No lane has moved")
            if self.disabled and status[i] == _ENDED:
                raise ResetNeeded(f"step: the episode of lane {i} has ended, and autoreset_mode is 'Disabled'; reset it by "
                                  f"options={{'reset_mask': terminations | truncations}}. No lane has moved")

    def shown(self, bint copy):
        """(rewards, terminations, truncations) as they are returned: copies, or the arrays themselves."""
        if not copy:
            return self.rewards, self.terminations, self.truncations
        return copied(self.rewards), copied(self.terminations), copied(self.truncations)

    def begin(self, mask):
        """Notes that episodes begin in all lanes, or in those of a mask or an array of numbers."""
        if self.returns is not None:
            chosen = slice(None) if mask is None else mask
            self.returns[chosen], self.lengths[chosen], self.began[chosen] = 0.0, 0, time.perf_counter()

    def settle(self):
        """Counts a step that has been made.

        Returns:
            (number of episodes that ended in it, statistics of these or None): returns "r", float64, lengths "l",
            int64, and seconds "t", float64, each (n,) and 0 in lanes in which none ended.
        """
        cdef const double *rewards = <const double *>cnp.PyArray_DATA(self.rewards)
        cdef const uint8_t *terminations = <const uint8_t *>cnp.PyArray_DATA(self.terminations)
        cdef const uint8_t *truncations = <const uint8_t *>cnp.PyArray_DATA(self.truncations)
        cdef const uint8_t *status = <const uint8_t *>cnp.PyArray_DATA(self.status)
        cdef double *returns
        cdef int64_t *lengths
        cdef Py_ssize_t i, ended = 0
        if self.returns is None:
            for i in range(self.n):
                ended += terminations[i] | truncations[i]
            return ended, None
        returns = <double *>cnp.PyArray_DATA(self.returns)
        lengths = <int64_t *>cnp.PyArray_DATA(self.lengths)
        for i in range(self.n):
            if status[i] == _BEGAN:
                returns[i], lengths[i] = 0.0, 0
                self.began[i] = time.perf_counter()
            elif status[i] != _FAILED:
                returns[i] += rewards[i]
                lengths[i] += 1
                ended += terminations[i] | truncations[i]
        if ended == 0:
            return ended, None
        now = time.perf_counter()
        mask = self.terminations | self.truncations
        episode = {
            "r": np.where(mask, self.returns, 0.0),
            "l": np.where(mask, self.lengths, 0),
            "t": np.round(np.where(mask, now - self.began, 0.0), 6),
        }
        if self.same_step:
            self.begin(mask)
        return ended, episode


    def settle_lanes(self, lanes):
        """Counts a step that these lanes alone have made.

        Args:
            lanes: their numbers, an int64 array (m,).

        Returns:
            As settle, with arrays (m,) in the order of the lanes.
        """
        if self.returns is None:
            return int(np.count_nonzero(self.terminations[lanes] | self.truncations[lanes])), None
        began = lanes[self.status[lanes] == _BEGAN]
        self.returns[began], self.lengths[began], self.began[began] = 0.0, 0, time.perf_counter()
        stepped = lanes[self.status[lanes] != _BEGAN]
        self.returns[stepped] += self.rewards[stepped]
        self.lengths[stepped] += 1
        mask = self.terminations[lanes] | self.truncations[lanes]
        if not mask.any():
            return 0, None
        now = time.perf_counter()
        episode = {
            "r": np.where(mask, self.returns[lanes], 0.0),
            "l": np.where(mask, self.lengths[lanes], 0),
            "t": np.round(np.where(mask, now - self.began[lanes], 0.0), 6),
        }
        if self.same_step:
            self.begin(lanes[mask])
        return int(np.count_nonzero(mask)), episode


def merge_infos(Py_ssize_t n, pairs):
    """One dict of what lanes' infos say: an array (n, ...) for each key, and a mask of the lanes that have it.

    Args:
        n: number of all lanes.
        pairs: (lane, info) of some of them.

    Returns:
        The dict. The type of an array follows from the values of all lanes: numbers of different types become one that
        holds them all, arrays of different shapes an array of objects.
    """
    cdef dict found = {}
    cdef dict merged = {}
    for lane, info in pairs:
        for key, value in info.items():
            if key in found:
                lanes, values = found[key]
            else:
                lanes, values = found[key] = [], []
            lanes.append(lane)
            values.append(value)
    for key, (lanes, values) in found.items():
        mask = np.zeros(n, np.bool_)
        for lane in lanes:
            mask[lane] = True
        merged[key] = _merged(n, <list>lanes, <list>values)
        merged[f"_{key}"] = mask
    return merged


cdef _merged(Py_ssize_t n, list lanes, list values):
    """The values of some lanes, as one array (n, ...), or a dict of such if all are dicts."""
    cdef set kinds = {type(value) for value in values}
    if all([issubclass(kind, dict) for kind in kinds]):
        return merge_infos(n, zip(lanes, values, strict=True))
    try:
        if all([kind is int or kind is float or kind is bool or issubclass(kind, np.number) for kind in kinds]):
            array = np.zeros(n, np.result_type(*[np.dtype(kind) for kind in kinds]))
            return _filled(array, lanes, values)
        if all([issubclass(kind, np.ndarray) for kind in kinds]) and len({value.shape for value in values}) == 1:
            array = np.zeros((n, *values[0].shape), np.result_type(*{value.dtype for value in values}))
            return _filled(array, lanes, values)
    except (OverflowError, TypeError):
        pass  # an int beyond 64 bits, or dtypes that have none in common
    array = np.full(n, None, object)
    for lane, value in zip(lanes, values, strict=True):
        array[lane] = value
    return array


cdef _filled(array, list lanes, list values):
    for lane, value in zip(lanes, values, strict=True):
        array[lane] = value
    return array
