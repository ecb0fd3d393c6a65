# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=True
"""Batch: the lanes of one native env. It owns their columns; reset and step are one call each without the GIL."""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import atexit
import secrets
import weakref

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from fastvec.actions import are_python_numbers, bad_action, convert_actions

cnp.import_array()

cdef extern from *:
    """
    #ifndef FV_BUILD_FLAGS
    #define FV_BUILD_FLAGS "unknown"
    #endif
    #if defined(__clang__)
    #define FV_COMPILER "clang " __clang_version__
    #else
    #define FV_COMPILER "gcc " __VERSION__
    #endif
    """
    const char *FV_BUILD_FLAGS
    const char *FV_COMPILER

cdef extern from *:
    """
    /* Where the list of an object's weak references begins; its type has them. */
    static inline PyObject **fv_weak_references(PyObject *object)
    {
        return (PyObject **)((char *)object + Py_TYPE(object)->tp_weaklistoffset);
    }
    """
    Py_ssize_t Py_REFCNT(PyObject *)
    PyObject **_weak_references "fv_weak_references"(PyObject *)

cdef extern from "engine.h" nogil:
    enum: FV_MAX_ARRAYS, FV_MAX_OPTIONS, FV_MAX_TABLES
    ctypedef enum fv_dtype: FV_FLOAT64, FV_FLOAT32, FV_INT64, FV_INT32, FV_INT8, FV_UINT8, FV_NUM_DTYPES
    ctypedef enum fv_action_kind: FV_DISCRETE, FV_BOX
    ctypedef enum fv_autoreset: FV_NEXT_STEP, FV_SAME_STEP, FV_DISABLED

    ctypedef struct fv_rng:
        pass

    ctypedef struct fv_array:
        const char *name
        fv_dtype dtype
        int32_t width

    ctypedef struct fv_batch:
        int64_t n, stride
        void *state
        fv_rng *rng
        const void *params
        const void *param_columns
        const void **tables
        int64_t *table_sizes
        int64_t clock, limit
        int64_t *start
        double *returns
        uint8_t *pending
        const void *actions
        void **obs
        void **info
        double *rewards
        uint8_t *terminations
        uint8_t *truncations
        int32_t python_actions
        int32_t libm

    ctypedef struct fv_kernel:
        const char *name
        const char *state_names
        const char *param_names
        const char *option_names
        int32_t num_state, num_params, num_obs, num_info, num_tables
        fv_dtype state_dtype, real_dtype
        int32_t state_size, real_size
        const fv_array *obs
        const fv_array *info
        fv_action_kind action_kind
        const double *option_defaults
        int64_t (*check_discrete)(const int64_t *, int64_t, int64_t, int64_t) noexcept nogil
        int64_t (*check_float32)(const float *, int64_t) noexcept nogil
        int64_t (*check_float64)(const double *, int64_t) noexcept nogil
        void (*observe)(const fv_batch *, int64_t, int64_t) noexcept nogil

    ctypedef struct fv_engine:
        fv_batch batch
        const fv_kernel *kernel
        fv_autoreset autoreset
        int64_t *ended
        int64_t *ended_in
        int64_t num_ended
        void **final_obs
        void **final_info
        double *began
        double *episode_returns
        double *episode_seconds
        int64_t *episode_lengths
        int num_threads

    void fv_rng_seed(fv_rng *, const uint32_t *, int64_t) noexcept
    void fv_seed_all(fv_engine *, uint64_t) noexcept
    void fv_reset(fv_engine *, const int64_t *, int64_t, const double *) noexcept
    int64_t fv_step(fv_engine *, int) noexcept
    int64_t fv_num_chunks(int64_t) noexcept
    void fv_list_pending(fv_engine *) noexcept
    void fv_join_threads(fv_engine *) noexcept
    double fv_steady_seconds() noexcept

cdef extern from "dispatch.h" nogil:
    const char *fv_target_name(int) noexcept
    int fv_target_runs_here(int) noexcept

    ctypedef struct fv_difference:
        const char *function
        double x, vecmath, libm
    int fv_target_matches_libm(int, fv_difference *) noexcept

    const fv_kernel *fv_find_kernel(int, const char *, fv_dtype) noexcept

    ctypedef struct fv_rollout:
        int64_t steps, lanes
        double gamma, gae_lambda
        const void *rewards
        const void *values
        const void *last_values
        const void *final_values
        const uint8_t *terminations
        const uint8_t *truncations
        const uint8_t *resets
        void *advantages
        void *returns
    void fv_gae(int, fv_dtype, const fv_rollout *) noexcept

cdef int[<int>FV_NUM_DTYPES] TYPENUM
TYPENUM[:] = [cnp.NPY_FLOAT64, cnp.NPY_FLOAT32, cnp.NPY_INT64, cnp.NPY_INT32, cnp.NPY_INT8, cnp.NPY_UINT8]

cdef enum:
    CACHE_LINE = 64
    MAX_DIMS = 8

AUTORESET_MODES = {"NextStep": FV_NEXT_STEP, "SameStep": FV_SAME_STEP, "Disabled": FV_DISABLED}

# One random generator as it lies in memory (rng.h).
STREAM = np.dtype([("state_hi", np.uint64), ("state_lo", np.uint64), ("inc_hi", np.uint64), ("inc_lo", np.uint64),
                   ("half", np.uint32), ("has_half", np.uint32)])

# The batches whose threads are to end before the interpreter does.
_with_threads = weakref.WeakSet()


@atexit.register
def _join_all_threads():
    for batch in list(_with_threads):
        (<Batch>batch).join_threads()


# Raised by one when what get_state() returns changes its meaning.
STATE_FORMAT = 1
# Steps of an episode that a state may have: a batch counts on from there, in int64.
cdef int64_t MOST_ELAPSED = 2**62


@cython.final
cdef class Layout:
    """How one array of a call's results is made: its shape, the lanes in front, and its dtype."""
    cdef int ndim, typenum
    cdef readonly str name
    cdef cnp.npy_intp[MAX_DIMS] dims

    def __cinit__(self, str name, tuple shape, int typenum):
        if len(shape) > MAX_DIMS:
            raise ValueError(f"{name} has {len(shape)} dimensions; at most {MAX_DIMS} are supported")
        self.name = name
        self.ndim = len(shape)
        self.typenum = typenum
        for i, size in enumerate(shape):
            self.dims[i] = size

    cdef inline cnp.ndarray empty(self):
        return cnp.PyArray_EMPTY(self.ndim, self.dims, self.typenum, 0)

    cdef inline cnp.ndarray zeros(self):
        return cnp.PyArray_ZEROS(self.ndim, self.dims, self.typenum, 0)

    cdef inline bint fits(self, object array) noexcept:
        """Whether this is an array of that shape and dtype, C-contiguous, aligned and in native byte order."""
        if not cnp.PyArray_CheckExact(array) or cnp.PyArray_TYPE(<cnp.ndarray>array) != self.typenum:
            return False
        if cnp.PyArray_NDIM(<cnp.ndarray>array) != self.ndim or not cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>array):
            return False
        for i in range(self.ndim):
            if cnp.PyArray_DIM(<cnp.ndarray>array, i) != self.dims[i]:
                return False
        return True

    def __str__(self):
        shape = tuple(self.dims[i] for i in range(self.ndim))
        return f"{np.dtype(cnp.PyArray_DescrFromType(self.typenum))} of shape {shape}"


@cython.final
cdef class Batch:
    """N lanes of one kernel. Arguments have been checked; VecEnv and make() are what people use.

    Args:
        target: the instruction set; one of targets() that runs here.
        math: "vector" or "libm", where sines and the like come from; "vector" only if the target's math_difference()
            is None.
        kernel: name of the kernel.
        precision: "float64" or "float32", the kernel's scalar type.
        n: number of lanes.
        parameters: the kernel's parameters, one number each, in its order (kernel_info).
        tables: read-only arrays that the kernel's lanes share, in its order.
        state_ranges: state column name -> (least, greatest) of those that hold integers in a range and nothing else.
        obs_shapes: the shape of one lane's part of each observation array.
        action_low, action_count: the first Discrete action and how many there are; (0, 0) for Box actions.
        action_shape: the shape of one lane's action.
        limit: steps after which an episode is truncated, or None.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
        copy: whether every call returns new arrays; otherwise each call overwrites those of the last.
        num_threads: how many threads a step may use.
        episode_stats: whether steps with ends tell the episodes' returns, lengths and seconds.
        label: the env's id, for messages.
    """
    cdef fv_engine engine
    cdef object __weakref__
    cdef tuple arguments             # as they were passed, without target and math: a copy is made from them
    cdef cnp.ndarray memory          # owns all columns
    cdef dict columns                # state column name -> view of `memory`
    cdef cnp.ndarray streams, start, pending  # views of `memory`
    cdef cnp.ndarray returns, began  # views of `memory`, or None without episode_stats
    cdef cnp.ndarray parameters      # one value each
    cdef cnp.ndarray parameter_columns  # None, or (num_params, stride)
    cdef tuple tables
    cdef dict state_ranges
    cdef tuple layouts               # one Layout for each array that a step returns: observations, rewards, flags
    cdef Layout action_layout, action_layout_float32
    cdef int64_t action_low, action_count
    cdef tuple action_shape
    cdef tuple kept                  # the arrays that copy=False hands out every time, or None
    cdef tuple recent, older         # with copy=True, those of the last two steps, or None
    cdef tuple info_layouts          # one Layout for each info array of the kernel
    cdef tuple spare_final           # room for the next final observations (SAME_STEP)
    cdef tuple spare_final_info      # and for the infos that come with them
    cdef tuple spare_episode         # room for the next episodes' statistics
    cdef str running                 # the call that has this batch to itself, or None
    cdef bint started                # a first reset has been
    cdef object seeds                # each lane's seed: None, an int for that number plus the lane, or a list
    cdef readonly bint closed
    cdef readonly str target, math, label, precision, autoreset_mode

    def __cinit__(self, str target, str math, str kernel, str precision, int64_t n, tuple parameters, tuple tables,
                  dict state_ranges, tuple obs_shapes, int64_t action_low, int64_t action_count, tuple action_shape,
                  limit, str autoreset_mode, bint copy, bint episode_stats, int num_threads, str label):
        cdef const fv_kernel *k = _find_kernel(target, kernel, precision)
        cdef fv_engine *e = &self.engine
        cdef fv_batch *b = &e.batch
        memset(e, 0, sizeof(fv_engine))
        self.target, self.math = target, math
        b.libm = math == "libm"
        self.arguments = (kernel, precision, n, parameters, tables, state_ranges, obs_shapes, action_low, action_count,
                          action_shape, limit, autoreset_mode, copy, episode_stats, num_threads, label)
        e.kernel = k
        e.autoreset = AUTORESET_MODES[autoreset_mode]
        e.num_threads = num_threads
        b.n = n
        b.limit = limit if limit is not None else 0x7FFFFFFFFFFFFFFF
        self.label, self.precision, self.autoreset_mode = label, precision, autoreset_mode
        self.action_low, self.action_count, self.action_shape = action_low, action_count, action_shape
        if k.action_kind == FV_DISCRETE:
            self.action_layout = Layout("actions", (n, *action_shape), cnp.NPY_INT64)
            self.action_layout_float32 = self.action_layout
        else:
            self.action_layout = Layout("actions", (n, *action_shape), cnp.NPY_FLOAT64)
            self.action_layout_float32 = Layout("actions", (n, *action_shape), cnp.NPY_FLOAT32)
        obs = [Layout("observation", (n, *obs_shapes[i]), TYPENUM[<int>k.obs[i].dtype]) for i in range(k.num_obs)]
        self.layouts = (*obs, Layout("rewards", (n,), cnp.NPY_FLOAT64), Layout("terminations", (n,), cnp.NPY_BOOL),
                        Layout("truncations", (n,), cnp.NPY_BOOL))
        self.parameters = np.array(parameters, np.dtype(cnp.PyArray_DescrFromType(TYPENUM[<int>k.real_dtype])))
        b.params = cnp.PyArray_DATA(self.parameters)
        if len(tables) != k.num_tables:
            raise ValueError(f"kernel {kernel!r} takes {k.num_tables} tables, {len(tables)} given")
        self.tables = tuple([np.ascontiguousarray(table) for table in tables])
        for i, table in enumerate(self.tables):
            b.tables[i] = <const void *>cnp.PyArray_DATA(<cnp.ndarray>table)
            b.table_sizes[i] = table.size
        self.info_layouts = tuple([
            Layout(k.info[i].name.decode(), <object>(n, k.info[i].width) if k.info[i].width > 1 else <object>(n,),
                   TYPENUM[<int>k.info[i].dtype]) for i in range(k.num_info)])
        self.state_ranges = state_ranges
        self._lay_out_columns(episode_stats)
        self.kept = None if copy else self._outputs()
        if e.autoreset == FV_SAME_STEP:
            self.spare_final = self._zeroed_obs()
            self.spare_final_info = self._zeroed_info()
        if episode_stats:
            self.spare_episode = self._zeroed_episode()
        if num_threads > 1:
            _with_threads.add(self)

    cdef _lay_out_columns(self, bint episode_stats):
        """One block for everything that is kept per lane; each column begins on a cache line of its own."""
        cdef fv_engine *e = &self.engine
        cdef fv_batch *b = &e.batch
        cdef const fv_kernel *k = e.kernel
        cdef int64_t per_line = CACHE_LINE // min(k.state_size, k.real_size)
        # One line more than needed: columns a power of two apart would contend for the same places in the cache.
        b.stride = (b.n + per_line - 1) // per_line * per_line + per_line
        state_dtype = np.dtype(cnp.PyArray_DescrFromType(TYPENUM[<int>k.state_dtype]))
        parts = [(k.num_state * b.stride, state_dtype), (b.n, STREAM), (b.n, np.dtype(np.int64)),
                 (b.n, np.dtype(np.bool_)), (b.n, np.dtype(np.int64)), (fv_num_chunks(b.n), np.dtype(np.int64))]
        if episode_stats:
            parts += [(b.n, np.dtype(np.float64))] * 2
        sizes = [-(-count * dtype.itemsize // CACHE_LINE) * CACHE_LINE for count, dtype in parts]
        self.memory = np.zeros(sum(sizes) + CACHE_LINE, np.uint8)
        cdef int64_t at = -<int64_t>cnp.PyArray_DATA(self.memory) & (CACHE_LINE - 1)
        views = []
        for size, (count, dtype) in zip(sizes, parts):
            views.append(self.memory[at:at + count * dtype.itemsize].view(dtype))
            at += size
        state, self.streams, self.start, self.pending, ended, ended_in = views[:6]
        b.state = cnp.PyArray_DATA(state)
        b.rng = <fv_rng *>cnp.PyArray_DATA(self.streams)
        b.start = <int64_t *>cnp.PyArray_DATA(self.start)
        b.pending = <uint8_t *>cnp.PyArray_DATA(self.pending)
        e.ended = <int64_t *>cnp.PyArray_DATA(ended)
        e.ended_in = <int64_t *>cnp.PyArray_DATA(ended_in)
        if episode_stats:
            self.returns, self.began = views[6:]
            b.returns = <double *>cnp.PyArray_DATA(self.returns)
            e.began = <double *>cnp.PyArray_DATA(self.began)
        names = k.state_names.decode().split()
        self.columns = {name: state[i * b.stride:i * b.stride + b.n] for i, name in enumerate(names)}

    # What a call writes into

    cdef tuple _outputs(self):
        """New arrays for a step: observations, rewards, terminations, truncations."""
        if len(self.layouts) == 4:  # one observation array: most envs
            return ((<Layout>self.layouts[0]).empty(), (<Layout>self.layouts[1]).empty(),
                    (<Layout>self.layouts[2]).empty(), (<Layout>self.layouts[3]).empty())
        return tuple([(<Layout>layout).empty() for layout in self.layouts])

    cdef tuple _unused_outputs(self):
        """Arrays for a step that nobody else has: those of one of the last two if the caller has let go of them.

        Making new ones takes longer than a step of a few lanes. Who keeps the results of one step until those of the next
        are there, as most do, leaves the older arrays; who does not keep them, the recent ones.
        """
        cdef tuple arrays = self.recent
        if not self._are_unused(arrays):
            arrays = self.older if self._are_unused(self.older) else self._outputs()
            self.older, self.recent = self.recent, arrays
        return arrays

    cdef inline bint _are_unused(self, tuple arrays) noexcept:
        """Whether no one but this batch refers to these arrays, weakly neither, and none was altered in shape or dtype."""
        cdef PyObject *array
        cdef Py_ssize_t i
        if arrays is None:
            return False
        for i in range(len(arrays)):
            array = PyTuple_GET_ITEM(arrays, i)
            if Py_REFCNT(array) != 1 or _weak_references(array)[0] != NULL:
                return False
            if not (<Layout>self.layouts[i]).fits(<object>array) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array):
                return False
        return True

    cdef tuple _zeroed_obs(self):
        return tuple([(<Layout>layout).zeros() for layout in self.layouts[:self.engine.kernel.num_obs]])

    cdef tuple _zeroed_info(self):
        return tuple([(<Layout>layout).zeros() for layout in self.info_layouts])

    cdef tuple _zeroed_episode(self):
        cdef int64_t n = self.engine.batch.n
        return np.zeros(n), np.zeros(n, np.int64), np.zeros(n)

    cdef inline object _as_observation(self, tuple arrays):
        """The observation in the space's form: an array, or a tuple of them."""
        cdef int32_t num_obs = self.engine.kernel.num_obs
        return arrays[0] if num_obs == 1 else arrays[:num_obs]

    cdef inline void _point_at(self, tuple arrays) noexcept:
        cdef fv_batch *b = &self.engine.batch
        cdef int32_t num_obs = self.engine.kernel.num_obs
        for i in range(num_obs):
            b.obs[i] = cnp.PyArray_DATA(<cnp.ndarray>arrays[i])
        b.rewards = <double *>cnp.PyArray_DATA(<cnp.ndarray>arrays[num_obs])
        b.terminations = <uint8_t *>cnp.PyArray_DATA(<cnp.ndarray>arrays[num_obs + 1])
        b.truncations = <uint8_t *>cnp.PyArray_DATA(<cnp.ndarray>arrays[num_obs + 2])

    cdef tuple _checked_out(self, out, cnp.ndarray actions):
        """The caller's arrays of `step(out=...)`, flat like `_outputs`, when every one of them can be written to."""
        cdef int32_t num_obs = self.engine.kernel.num_obs
        if not isinstance(out, tuple) or len(out) != 4:
            found = f"a tuple of {len(out)}" if isinstance(out, tuple) else type(out).__name__
            raise TypeError(f"out is {found}: expected the tuple (observation, rewards, terminations, truncations)")
        if num_obs > 1:
            if not isinstance(out[0], tuple) or len(out[0]) != num_obs:
                raise TypeError(f"out[0] is {type(out[0]).__name__}: expected a tuple of {num_obs} arrays, "
                                f"as {self.label}'s observations are")
            out = (*out[0], *out[1:])
        else:
            out = tuple(out)  # a named tuple is one, but not of the exact type that is returned
        for layout, array in zip(self.layouts, out):
            if not (<Layout>layout).fits(array) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array):
                raise self._bad_out(layout, array)
        cdef tuple arrays = (*out, actions, self.memory)
        cdef int i, k, num_out = len(out), num_arrays = num_out + 2
        for i in range(num_out):
            for k in range(i + 1, num_arrays):
                if _overlap(<cnp.ndarray>arrays[i], <cnp.ndarray>arrays[k]):
                    names = [(<Layout>layout).name for layout in self.layouts] + ["the actions", "the env's own state"]
                    raise ValueError(f"out: {names[i]} shares memory with {names[k]}; every array of a step needs its own")
        return out

    cdef _bad_out(self, Layout layout, array):
        if not isinstance(array, np.ndarray):
            found = type(array).__name__
        else:
            lacks = [what for what, good in (("not C-contiguous", array.flags.c_contiguous),
                                             ("read-only", array.flags.writeable),
                                             ("not aligned", array.flags.aligned)) if not good]
            if type(array) is not np.ndarray:
                lacks.append(f"a {type(array).__name__}")
            found = f"{array.dtype.str if not array.dtype.isnative else array.dtype} of shape {array.shape}"
            if lacks:
                found += f" ({', '.join(lacks)})"
        return (ValueError if isinstance(array, np.ndarray) else TypeError)(
            f"out: {layout.name} is {found}; expected a C-contiguous, writable {layout}")

    cdef inline void _point_at_info(self, tuple infos) noexcept:
        for i in range(self.engine.kernel.num_info):
            self.engine.batch.info[i] = cnp.PyArray_DATA(<cnp.ndarray>infos[i])

    cdef dict _as_info(self, tuple infos, mask):
        """The info dict of a call: each array of the kernel's and the mask (None: all lanes) of who has it."""
        cdef dict info = {}
        for layout, array in zip(self.info_layouts, infos):
            info[(<Layout>layout).name] = array
            info["_" + (<Layout>layout).name] = np.ones(self.engine.batch.n, np.bool_) if mask is None else mask.copy()
        return info

    # Who may call, and when

    # A call enters before it does anything, and has the batch to itself until it sets `running` to None: the GIL keeps no
    # other thread out, for converting actions, copying arrays and collecting garbage may each hand it over.

    cdef inline int _enter(self, str call) except -1:
        if self.running is not None or self.closed or not self.started:
            self._refuse(call)
        self.running = call
        return 0

    cdef int _enter_unstarted(self, str call) except -1:
        if self.running is not None or self.closed:
            self._refuse(call)
        self.running = call
        return 0

    cdef int _enter_even_closed(self, str call) except -1:
        if self.running is not None:
            self._refuse(call)
        self.running = call
        return 0

    def require_idle(self, str call):
        """Raises if the env is closed or another thread is in a call of it."""
        self._enter_unstarted(call)
        self.running = None

    def require_reset(self, str call):
        """Raises as require_idle, and if there has been no reset yet."""
        self._enter(call)
        self.running = None

    cdef int _refuse(self, str call) except -1:
        if self.running is not None:
            raise RuntimeError(
                f"{call}: another thread is in {self.running} of this {self.label} env; give each thread an env of "
                f"its own, or guard this one with a lock")
        if self.closed:
            raise ClosedEnvironmentError(f"{call}: this {self.label} env is closed; make a new one")
        raise ResetNeeded(f"{call}: this {self.label} env has not been reset yet; call reset() first")

    cdef int _refuse_ended(self) except -1:
        cdef fv_engine *e = &self.engine
        more = f" and {e.num_ended - 1} more" if e.num_ended > 1 else ""
        raise ResetNeeded(
            f"step: the episode in lane {np.flatnonzero(self.pending)[0]}{more} has ended, and with autoreset_mode='Disabled' the caller "
            f"resets: reset(options={{'reset_mask': terminations | truncations}}); no lane has moved")

    # Actions

    cdef inline cnp.ndarray _checked_actions(self, object actions):
        """The actions as an array that the kernel can read, all of them valid; else an error, and nothing has moved."""
        cdef fv_engine *e = &self.engine
        cdef cnp.ndarray array
        cdef int64_t bad
        e.batch.python_actions = 0
        if not self.action_layout.fits(actions) and not self.action_layout_float32.fits(actions):
            given = actions
            actions = convert_actions(actions, e.batch.n, self.action_shape,
                                      e.kernel.action_kind == FV_DISCRETE, self.action_low, self.action_count,
                                      self.label)
            e.batch.python_actions = e.kernel.action_kind == FV_BOX and are_python_numbers(given)
        array = <cnp.ndarray>actions
        if e.kernel.action_kind == FV_DISCRETE:
            bad = e.kernel.check_discrete(<const int64_t *>cnp.PyArray_DATA(array), e.batch.n, self.action_low,
                                          self.action_count)
        elif cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT32:
            bad = e.kernel.check_float32(<const float *>cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array))
        else:
            bad = e.kernel.check_float64(<const double *>cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array))
        if bad >= 0:
            raise bad_action(array, bad, self.action_low, self.action_count, self.label)
        return array

    # Seeds and streams

    cdef _seed(self, seeds):
        """Seeds lanes: an int for seeds + lane, or a list with an int or None (leave that stream be) for each lane.

        The seeds have been checked. Lanes that never had a seed and get none now are seeded by the operating system.
        """
        cdef fv_engine *e = &self.engine
        cdef int64_t n = e.batch.n, i
        cdef uint64_t first
        if isinstance(seeds, int):
            if seeds + n <= 0xFFFFFFFFFFFFFFFF:
                first = seeds
                with nogil:
                    fv_seed_all(e, first)
            else:
                for i in range(n):
                    self._seed_lane(i, seeds + i)
            self.seeds = seeds
            return
        if self.seeds is None:
            self.seeds = [secrets.randbits(128) if seeds is None or seed is None else seed
                          for seed in seeds or [None] * n]
            for i in range(n):
                self._seed_lane(i, self.seeds[i])
        elif seeds is not None:
            known = list(self._lane_seeds())
            for i in range(n):
                if seeds[i] is not None:
                    self._seed_lane(i, seeds[i])
                    known[i] = seeds[i]
            self.seeds = known

    cdef _seed_lane(self, int64_t lane, seed):
        cdef bytes words = int(seed).to_bytes((seed.bit_length() + 31) // 32 * 4 or 4, "little")
        fv_rng_seed(&self.engine.batch.rng[lane], <const uint32_t *><const char *>words, len(words) // 4)

    cdef tuple _lane_seeds(self):
        n = self.engine.batch.n
        return tuple([self.seeds + i for i in range(n)]) if isinstance(self.seeds, int) else tuple(self.seeds)

    @property
    def lane_seeds(self):
        """The seed of each lane's stream; -1 where a generator was put in its place."""
        self._enter_even_closed("np_random_seed")
        try:
            if self.seeds is None:
                self._seed(None)
            return self._lane_seeds()
        finally:
            self.running = None

    def generators(self):
        """A numpy.random.Generator for each lane, in the state of its stream; drawing from one leaves the lane as it is."""
        self._enter_even_closed("np_random")
        try:
            if self.seeds is None:
                self._seed(None)
            return tuple([_generator(stream) for stream in self.streams])
        finally:
            self.running = None

    def set_generators(self, generators):
        """Puts each lane's stream in the state of a numpy.random.Generator over PCG64, which stays as it is."""
        self._enter_unstarted("set_attr")
        try:
            streams = self.streams.copy()
            for i, generator in enumerate(generators):
                streams[i] = _stream(generator)
            self.streams[:] = streams
            self.seeds = [-1] * self.engine.batch.n
        finally:
            self.running = None

    # The calls

    def reset(self, seeds=None, mask=None, options=None):
        """Begins new episodes in all lanes, or in those of a bool mask (n,). Returns (observation, info).

        The observation has a row for every lane; those of lanes that were not reset show them as they stand.
        `seeds` are an int for seeds + lane, a list with an int or None (that stream runs on) for each lane, or None;
        `options` are the kernel's reset options, numbers in its order. All of them have been checked.
        """
        self._enter_unstarted("reset")
        try:
            return self._reset(seeds, mask, options)
        finally:
            self.running = None

    cdef tuple _reset(self, seeds, mask, options):
        cdef fv_engine *e = &self.engine
        cdef double[<int>FV_MAX_OPTIONS] values
        cdef const double *given = NULL
        cdef cnp.ndarray lanes
        cdef int64_t count
        cdef tuple arrays, infos
        if options is not None:
            for i, value in enumerate(options):
                values[i] = value
            given = values
        arrays = self.kept if self.kept is not None else self._outputs()
        self._point_at(arrays)
        infos = self._zeroed_info()
        self._point_at_info(infos)
        lanes = None if mask is None else np.flatnonzero(mask).astype(np.int64, copy=False)
        self._seed(seeds)
        if lanes is None:
            with nogil:
                fv_reset(e, NULL, 0, given)
        else:
            count = cnp.PyArray_SIZE(lanes)
            with nogil:
                e.kernel.observe(&e.batch, 0, e.batch.n)
                fv_reset(e, <const int64_t *>cnp.PyArray_DATA(lanes), count, given)
        self.started = True
        return self._as_observation(arrays), self._as_info(infos, None if mask is None else mask.copy())

    def step(self, actions, out=None):
        """Steps all lanes. Returns (observation, rewards, terminations, truncations, info)."""
        self._enter("step")
        try:
            return self._step(actions, out)
        finally:
            self.running = None

    cdef tuple _step(self, actions, out):
        cdef fv_engine *e = &self.engine
        cdef int32_t num_obs = e.kernel.num_obs
        cdef cnp.ndarray checked
        cdef int64_t ended
        cdef bint float32
        cdef tuple arrays, infos = None
        if e.autoreset == FV_DISABLED and e.num_ended > 0:
            self._refuse_ended()
        checked = self._checked_actions(actions)
        if out is not None:
            arrays = self._checked_out(out, checked)
        elif self.kept is not None:
            arrays = self.kept
            for array in arrays:
                if _overlap(checked, <cnp.ndarray>array):  # actions made of what the last step returned
                    checked = checked.copy()
        else:
            arrays = self._unused_outputs()
        if _overlap(checked, self.memory):
            checked = checked.copy()
        self._point_at(arrays)
        if e.kernel.num_info > 0:
            infos = self._zeroed_info()
            self._point_at_info(infos)
        e.batch.actions = cnp.PyArray_DATA(checked)
        float32 = cnp.PyArray_TYPE(checked) == cnp.NPY_FLOAT32
        if self.spare_final is not None:
            for i in range(num_obs):
                e.final_obs[i] = cnp.PyArray_DATA(<cnp.ndarray>self.spare_final[i])
            for i in range(e.kernel.num_info):
                e.final_info[i] = cnp.PyArray_DATA(<cnp.ndarray>self.spare_final_info[i])
        if self.spare_episode is not None:
            e.episode_returns = <double *>cnp.PyArray_DATA(<cnp.ndarray>self.spare_episode[0])
            e.episode_lengths = <int64_t *>cnp.PyArray_DATA(<cnp.ndarray>self.spare_episode[1])
            e.episode_seconds = <double *>cnp.PyArray_DATA(<cnp.ndarray>self.spare_episode[2])
        with nogil:
            ended = fv_step(e, float32)
        info = {} if infos is None else self._as_info(infos, None)
        if ended > 0 and (self.spare_final is not None or self.spare_episode is not None):
            self._add_end_info(info, arrays)
        return self._as_observation(arrays), arrays[num_obs], arrays[num_obs + 1], arrays[num_obs + 2], info

    cdef _add_end_info(self, dict info, tuple arrays):
        """Adds what a step tells of the episodes that ended in it: dense arrays, each with its mask."""
        cdef int32_t num_obs = self.engine.kernel.num_obs
        ended = np.logical_or(arrays[num_obs + 1], arrays[num_obs + 2])
        if self.spare_final is not None:
            info["final_obs"] = self._as_observation(self.spare_final)
            info["_final_obs"] = ended
            info["final_info"] = self._as_info(self.spare_final_info, ended)
            info["_final_info"] = ended.copy()
            self.spare_final = self._zeroed_obs()
            self.spare_final_info = self._zeroed_info()
        if self.spare_episode is not None:
            returns, lengths, seconds = self.spare_episode
            info["episode"] = {"r": returns, "l": lengths, "t": np.round(seconds, 6)}
            info["_episode"] = ended.copy()
            self.spare_episode = self._zeroed_episode()

    cdef void join_threads(self) noexcept:
        if self.running is None:
            fv_join_threads(&self.engine)

    def close(self):
        """Refuses all further calls. The memory goes when the last view of it does."""
        if self.running is not None:
            self._refuse("close")
        self.closed = True
        self.join_threads()

    def __dealloc__(self):
        fv_join_threads(&self.engine)

    # Parameters and state

    def set_parameter(self, int64_t index, value):
        """Sets a parameter: one number for all lanes, or an array (n,) of one for each."""
        self._enter_unstarted("set_attr")
        try:
            value = np.asarray(value, self.parameters.dtype)
            if value.ndim == 0 and self.parameter_columns is None:
                self.parameters[index] = value
                return
            if self.parameter_columns is None:
                self._use_parameter_columns(np.repeat(self.parameters[:, np.newaxis], self.engine.batch.stride, axis=1))
            self.parameter_columns[index, :self.engine.batch.n] = value
        finally:
            self.running = None

    cdef _use_parameter_columns(self, cnp.ndarray columns):
        self.parameter_columns = columns
        self.engine.batch.param_columns = cnp.PyArray_DATA(columns)

    @property
    def reuses_arrays(self):
        """Whether every call returns the same arrays (copy=False)."""
        return self.kept is not None

    @property
    def episode_stats(self):
        """Whether steps with ends tell the episodes' returns, lengths and seconds."""
        return self.returns is not None

    @property
    def elapsed(self):
        """Steps of each lane since its last reset, int64 (n,)."""
        return self.engine.batch.clock - self.start

    @property
    def state(self):
        """The state columns by name: views (n,) of the lanes themselves. Writing to one moves the lanes.

        Those in `state_ranges` cannot be written to: kernels count on their values.
        """
        views = dict(self.columns)
        for name in self.state_ranges:
            views[name] = views[name].view()
            views[name].flags.writeable = False
        return views

    def set_columns(self, dict values):
        """Sets state columns, name -> numbers (n,); all of them, or none if one is out of its range."""
        self._enter_unstarted("set_attr")
        try:
            for name, numbers in values.items():
                self._check_range("set_attr", name, numbers)
            for name, numbers in values.items():
                self.columns[name][:] = numbers
        finally:
            self.running = None

    cdef _check_range(self, str call, str name, numbers):
        """Raises if some lane's number is none that the state column may hold."""
        if name not in self.state_ranges:
            return
        low, high = self.state_ranges[name]
        bad = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))  # NaN is bad, too
        if bad.any():
            lane = np.argmax(bad)
            raise ValueError(f"{call}: {name} of lane {lane} is {numbers[lane]:g}; {self.label} takes integers "
                             f"from {low} to {high}; no lane has changed")

    def get_state(self):
        """A copy of all that the future of the lanes depends on, as a dict of arrays and numbers."""
        self._enter_even_closed("get_state")
        try:
            return self._get_state()
        finally:
            self.running = None

    cdef dict _get_state(self):
        cdef fv_batch *b = &self.engine.batch
        return {
            "format": STATE_FORMAT,
            "env": self.label,
            "num_envs": b.n,
            "precision": self.precision,
            "autoreset_mode": self.autoreset_mode,
            "columns": {name: column.copy() for name, column in self.columns.items()},
            "streams": self.streams.copy(),
            "seeds": list(self.seeds) if isinstance(self.seeds, list) else self.seeds,
            "started": self.started,
            "elapsed": b.clock - self.start,
            "pending": self.pending.copy(),
            "returns": None if self.returns is None else self.returns.copy(),
            "seconds": None if self.began is None else fv_steady_seconds() - self.began,
            "parameters": self.parameters.copy(),
            "parameter_columns": (None if self.parameter_columns is None
                                  else self.parameter_columns[:, :b.n].copy()),
        }

    def set_state(self, state):
        """Continues from what get_state() of an env of the same id, n and mode returned; otherwise nothing changes.

        Raises:
            ValueError: if the state is of another env, n, mode or version, a part of it is not what it was, or a state
                column has a value out of its range.
        """
        self._enter_unstarted("set_state")
        try:
            self._set_state(state)
        finally:
            self.running = None

    cdef _set_state(self, state):
        cdef fv_engine *e = &self.engine
        cdef fv_batch *b = &e.batch
        cdef dict own = self._get_state()
        if not isinstance(state, dict) or state.keys() != own.keys():
            found = f"a dict of {', '.join(map(str, state))}" if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"set_state takes what get_state() returned, a dict of {', '.join(own)}; got {found}")
        for key in ("format", "env", "num_envs", "precision", "autoreset_mode"):
            if isinstance(state[key], np.ndarray) or state[key] != own[key]:
                raise ValueError(f"set_state: the state's {key} is {state[key]!r}, this env's is {own[key]!r}; "
                                 f"use it on an env made as the one it came from")
        for key in ("returns", "seconds"):
            if (state[key] is None) != (own[key] is None):
                raise ValueError(f"set_state: the state was {'not ' if state[key] is None else ''}made with episode_stats, "
                                 f"and this env was{' not' if own[key] is None else ''}")
        if not isinstance(state["columns"], dict) or state["columns"].keys() != self.columns.keys():
            raise ValueError(f"set_state: columns are no dict of {', '.join(self.columns)}")
        columns = {name: _same_kind(f"columns[{name!r}]", state["columns"][name], column)
                   for name, column in self.columns.items()}
        for name, column in columns.items():
            self._check_range("set_state", name, column)
        names = ["streams", "elapsed", "pending", "parameters"]
        if self.returns is not None:
            names += ["returns", "seconds"]
        parts = {name: _same_kind(name, state[name], own[name]) for name in names}
        parameter_columns = state["parameter_columns"]
        if parameter_columns is not None:
            template = np.empty((e.kernel.num_params, b.n), self.parameters.dtype)
            parameter_columns = _same_kind("parameter_columns", parameter_columns, template)
        self._check_history(parts["elapsed"], parts["pending"], state["started"], state["seeds"])
        for name, column in columns.items():
            self.columns[name][:] = column
        self.streams[:] = parts["streams"]
        self.start[:] = b.clock - parts["elapsed"]
        self.pending[:] = parts["pending"].view(np.uint8) != 0  # bools may be made of any byte
        self.parameters[:] = parts["parameters"]
        if self.returns is not None:
            self.returns[:] = parts["returns"]
            self.began[:] = fv_steady_seconds() - parts["seconds"]
        if parameter_columns is None:
            self.parameter_columns = None
            b.param_columns = NULL
        else:
            room = np.zeros((e.kernel.num_params, b.stride), self.parameters.dtype)
            room[:, :b.n] = parameter_columns
            self._use_parameter_columns(room)
        self.started = state["started"]
        self.seeds = list(state["seeds"]) if isinstance(state["seeds"], list) else state["seeds"]
        fv_list_pending(e)

    cdef _check_history(self, elapsed, pending, started, seeds):
        """Raises if lanes of this env cannot have come to this."""
        wrong = (elapsed < 0) | (elapsed > MOST_ELAPSED)
        if wrong.any():
            lane = np.argmax(wrong)
            raise ValueError(f"set_state: elapsed of lane {lane} is {elapsed[lane]}; expected steps from 0 to 2**62")
        if self.engine.autoreset == FV_SAME_STEP and pending.any():
            raise ValueError(f"set_state: lane {np.argmax(pending)} is pending; with autoreset_mode='SameStep' none ever is")
        if not isinstance(started, bool):
            raise ValueError(f"set_state: started is {started!r}; expected a bool")
        if not (_are_seeds(seeds, self.engine.batch.n) or (seeds is None and not started)):
            raise ValueError("set_state: seeds are neither an int nor a list of one for each lane")

    def __reduce__(self):
        return _copy_batch, (self.arguments, self.get_state(), self.closed)

    @property
    def nbytes(self):
        """Bytes kept for all lanes."""
        return self.memory.nbytes


cdef inline bint _overlap(cnp.ndarray one, cnp.ndarray other) noexcept:
    """Whether two contiguous arrays have memory in common."""
    return (<char *>cnp.PyArray_DATA(one) < <char *>cnp.PyArray_DATA(other) + cnp.PyArray_NBYTES(other) and
            <char *>cnp.PyArray_DATA(other) < <char *>cnp.PyArray_DATA(one) + cnp.PyArray_NBYTES(one))


def _generator(stream):
    """A numpy.random.Generator in the state of a STREAM."""
    bits = np.random.PCG64(0)
    bits.state = {"bit_generator": "PCG64",
                  "state": {"state": int(stream["state_hi"]) << 64 | int(stream["state_lo"]),
                            "inc": int(stream["inc_hi"]) << 64 | int(stream["inc_lo"])},
                  "has_uint32": int(stream["has_half"]), "uinteger": int(stream["half"])}
    return np.random.Generator(bits)


def _stream(generator):
    """The fields of a STREAM in the state of a numpy.random.Generator over PCG64."""
    state = generator.bit_generator.state
    low = (1 << 64) - 1
    return (state["state"]["state"] >> 64, state["state"]["state"] & low,
            state["state"]["inc"] >> 64, state["state"]["inc"] & low, state["uinteger"], state["has_uint32"])


def _are_seeds(seeds, n):
    """Whether these are lanes' seeds as a batch keeps them; -1 stands for a generator that was set."""
    if not isinstance(seeds, list):
        return isinstance(seeds, int) and seeds >= 0
    return len(seeds) == n and all([isinstance(seed, int) and seed >= -1 for seed in seeds])


def _same_kind(str name, value, cnp.ndarray own):
    """The value, when it has the dtype and shape of this env's own."""
    if not isinstance(value, np.ndarray) or value.dtype != own.dtype or value.shape != (<object>own).shape:
        found = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"set_state: {name} is {found}; expected {own.dtype} of shape {(<object>own).shape}")
    return value


def _copy_batch(tuple arguments, dict state, bint closed):
    """A batch that goes on where another was when it was pickled."""
    from fastvec.machine import chosen_math, chosen_target  # which imports this module

    target = chosen_target()
    batch = Batch(target, chosen_math(target), *arguments)
    batch.set_state(state)
    if closed:
        batch.close()
    return batch


cdef const fv_kernel *_find_kernel(str target, str kernel, str precision) except NULL:
    cdef int index = list(targets()).index(target)
    cdef const fv_kernel *k = fv_find_kernel(index, kernel.encode(), FV_FLOAT32 if precision == "float32" else FV_FLOAT64)
    if k == NULL:
        raise ValueError(f"there is no kernel {kernel!r} in {precision}")
    return k


def targets():
    """The instruction sets that the kernels are compiled for, best first: name -> whether this CPU runs it."""
    found = {}
    while fv_target_name(len(found)) != NULL:
        found[fv_target_name(len(found)).decode()] = bool(fv_target_runs_here(len(found)))
    return found


def math_difference(str target):
    """Where a target, which must run here, first computes a sine, a cosine or a square with other bits than the C library.

    Returns:
        None, or (function, argument, result, the C library's result). It takes less than a millisecond.
    """
    cdef fv_difference first
    if fv_target_matches_libm(list(targets()).index(target), &first):
        return None
    return first.function.decode(), first.x, first.vecmath, first.libm


def precisions(str kernel):
    """The scalar types that a kernel is compiled for."""
    return tuple([name for name, dtype in (("float64", FV_FLOAT64), ("float32", FV_FLOAT32))
                  if fv_find_kernel(0, kernel.encode(), dtype) != NULL])


def kernel_info(str kernel):
    """What a kernel says of itself: names of its state columns, parameters and reset options, and the options' defaults.

    Returns:
        (state names, parameter names, option names, option defaults), a tuple each.
    """
    cdef const fv_kernel *k = _find_kernel(next(iter(targets())), kernel, precisions(kernel)[0])
    options = tuple(k.option_names.decode().split())
    return (tuple(k.state_names.decode().split()), tuple(k.param_names.decode().split()), options,
            tuple([k.option_defaults[i] for i in range(len(options))]))


def build_info():
    """The compiler and flags that this extension was built with."""
    return {"compiler": FV_COMPILER.decode().strip(), "flags": FV_BUILD_FLAGS.decode()}


def gae(str target, cnp.ndarray rewards not None, cnp.ndarray values not None, cnp.ndarray terminations not None,
        cnp.ndarray truncations not None, cnp.ndarray last_values not None, cnp.ndarray final_values,
        cnp.ndarray resets, double gamma, double gae_lambda, cnp.ndarray advantages not None,
        cnp.ndarray returns not None):
    """Generalised advantage estimation. Arguments have been checked; fastvec.gae is what people use.

    Args:
        target: the instruction set; one of targets() that runs here.
        rewards, values, terminations, truncations, final_values, resets: (T, n), and last_values (n,), C-contiguous; the
            numbers are all float32 or all float64. final_values: None where the next row's value is theirs. resets: None,
            or bool, the rows that are no transitions.
        advantages, returns: are written to. They overlap nothing else.
    """
    cdef fv_rollout rollout
    cdef int index = list(targets()).index(target)
    cdef fv_dtype real = FV_FLOAT32 if cnp.PyArray_TYPE(values) == cnp.NPY_FLOAT32 else FV_FLOAT64
    rollout.steps, rollout.lanes = cnp.PyArray_DIM(values, 0), cnp.PyArray_DIM(values, 1)
    rollout.gamma, rollout.gae_lambda = gamma, gae_lambda
    rollout.rewards, rollout.values = cnp.PyArray_DATA(rewards), cnp.PyArray_DATA(values)
    rollout.last_values = cnp.PyArray_DATA(last_values)
    rollout.terminations = <const uint8_t *>cnp.PyArray_DATA(terminations)
    rollout.truncations = <const uint8_t *>cnp.PyArray_DATA(truncations)
    rollout.final_values = rollout.resets = NULL
    if final_values is not None:
        rollout.final_values = cnp.PyArray_DATA(final_values)
    if resets is not None:
        rollout.resets = <const uint8_t *>cnp.PyArray_DATA(resets)
    rollout.advantages, rollout.returns = cnp.PyArray_DATA(advantages), cnp.PyArray_DATA(returns)
    with nogil:
        fv_gae(index, real, &rollout)
