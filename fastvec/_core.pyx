# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=True
"""Batch: the lanes of one native env. It owns their columns; reset and step are one call each without the GIL."""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from fastvec.actions import bad_action, convert_actions

cnp.import_array()

cdef extern from "engine.h" nogil:
    enum: FV_MAX_ARRAYS, FV_MAX_OPTIONS
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

    ctypedef struct fv_kernel:
        const char *name
        const char *state_names
        const char *param_names
        int32_t num_state, num_params
        fv_dtype state_dtype, real_dtype
        int32_t state_size, real_size
        const fv_array *obs
        int32_t num_obs
        fv_action_kind action_kind
        int32_t action_width
        const char *option_names
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
        int64_t num_ended
        void **final_obs

    const fv_kernel *fv_find_kernel(const char *) noexcept
    void fv_rng_seed(fv_rng *, const uint32_t *, int64_t) noexcept
    void fv_seed_all(fv_engine *, uint64_t) noexcept
    void fv_reset(fv_engine *, const int64_t *, int64_t, const double *) noexcept
    int64_t fv_step(fv_engine *, int) noexcept

cdef int[<int>FV_NUM_DTYPES] TYPENUM
TYPENUM[:] = [cnp.NPY_FLOAT64, cnp.NPY_FLOAT32, cnp.NPY_INT64, cnp.NPY_INT32, cnp.NPY_INT8, cnp.NPY_UINT8]

cdef enum:
    CACHE_LINE = 64
    MAX_DIMS = 8

AUTORESET_MODES = {"NextStep": FV_NEXT_STEP, "SameStep": FV_SAME_STEP, "Disabled": FV_DISABLED}


cdef class Layout:
    """How one observation array is made: its shape with the lanes in front, and its dtype."""
    cdef int ndim, typenum
    cdef cnp.npy_intp[MAX_DIMS] dims

    def __cinit__(self, shape, int typenum):
        self.ndim = len(shape)
        self.typenum = typenum
        for i, size in enumerate(shape):
            self.dims[i] = size

    cdef inline cnp.ndarray empty(self):
        return cnp.PyArray_EMPTY(self.ndim, self.dims, self.typenum, 0)

    cdef inline cnp.ndarray zeros(self):
        return cnp.PyArray_ZEROS(self.ndim, self.dims, self.typenum, 0)


@cython.final
cdef class Batch:
    """N lanes of one kernel.

    Args:
        kernel: name of the kernel.
        n: number of lanes.
        parameters: the kernel's parameters by name, one number each.
        obs_shapes: the shape of one lane's part of each observation array.
        action_low, action_count: the first Discrete action and how many there are; ignored for Box actions.
        action_shape: the shape of one lane's action.
        limit: steps after which an episode is truncated, or None.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
        copy: whether every call returns new arrays; otherwise each call overwrites those of the last.
        label: the env's id, for messages.
    """
    cdef fv_engine engine
    cdef object memory          # owns all columns
    cdef cnp.ndarray parameters # one value each
    cdef tuple layouts          # one Layout an observation array
    cdef cnp.npy_intp[MAX_DIMS] action_dims
    cdef int action_ndim
    cdef int64_t action_low, action_count
    cdef tuple kept             # the arrays that copy=False hands out every time, or None
    cdef tuple spare_final      # room for the next final observations (SAME_STEP)
    cdef str running            # the call that is at work without the GIL, or None
    cdef bint started, seeded
    cdef readonly bint closed
    cdef readonly str label
    cdef readonly tuple action_shape

    def __cinit__(self, str kernel, int64_t n, dict parameters, tuple obs_shapes, int64_t action_low,
                  int64_t action_count, tuple action_shape, limit, str autoreset_mode, bint copy, str label):
        cdef const fv_kernel *k = fv_find_kernel(kernel.encode())
        if k == NULL:
            raise ValueError(f"there is no kernel {kernel!r}")
        cdef fv_engine *e = &self.engine
        cdef fv_batch *b = &e.batch
        memset(e, 0, sizeof(fv_engine))
        e.kernel = k
        e.autoreset = AUTORESET_MODES[autoreset_mode]
        b.n = n
        b.limit = limit if limit is not None else 0x7FFFFFFFFFFFFFFF
        self.label = label
        self.layouts = tuple(Layout((n, *obs_shapes[i]), TYPENUM[<int>k.obs[i].dtype]) for i in range(k.num_obs))
        self.action_shape = action_shape
        self.action_low, self.action_count = action_low, action_count
        self.action_ndim = 1 + len(action_shape)
        for i, size in enumerate((n, *action_shape)):
            self.action_dims[i] = size
        self._lay_out_columns()
        names = k.param_names.decode().split()
        self.parameters = np.array([parameters[name] for name in names],
                                   np.float64 if k.real_dtype == FV_FLOAT64 else np.float32)
        b.params = cnp.PyArray_DATA(self.parameters)
        self.kept = None if copy else self._outputs()
        if e.autoreset == FV_SAME_STEP:
            self.spare_final = self._zeroed_obs()

    cdef _lay_out_columns(self):
        """One block for everything that is kept per lane; each column begins on a cache line of its own."""
        cdef fv_engine *e = &self.engine
        cdef fv_batch *b = &e.batch
        cdef const fv_kernel *k = e.kernel
        cdef int64_t per_line = CACHE_LINE // min(k.state_size, k.real_size)
        # One line more than needed: columns a power of two apart would contend for the same places in the cache.
        b.stride = (b.n + per_line - 1) // per_line * per_line + per_line
        sizes = [k.num_state * b.stride * k.state_size, b.n * sizeof(fv_rng), b.n * sizeof(int64_t), b.n,
                 b.n * sizeof(int64_t)]
        lines = [(size + CACHE_LINE - 1) // CACHE_LINE for size in sizes]
        self.memory = np.zeros((sum(lines) + 1) * CACHE_LINE, np.uint8)
        cdef char *at = <char *>cnp.PyArray_DATA(self.memory)
        at += -<int64_t>at & (CACHE_LINE - 1)
        b.state = at
        at += <int64_t>lines[0] * CACHE_LINE
        b.rng = <fv_rng *>at
        at += <int64_t>lines[1] * CACHE_LINE
        b.start = <int64_t *>at
        at += <int64_t>lines[2] * CACHE_LINE
        b.pending = <uint8_t *>at
        at += <int64_t>lines[3] * CACHE_LINE
        e.ended = <int64_t *>at

    # What a call writes into

    cdef tuple _outputs(self):
        """New (observation arrays..., rewards, terminations, truncations)."""
        cdef cnp.npy_intp n = self.engine.batch.n
        cdef Layout layout
        if len(self.layouts) == 1:
            layout = <Layout>self.layouts[0]
            return (layout.empty(), cnp.PyArray_EMPTY(1, &n, cnp.NPY_FLOAT64, 0),
                    cnp.PyArray_EMPTY(1, &n, cnp.NPY_BOOL, 0), cnp.PyArray_EMPTY(1, &n, cnp.NPY_BOOL, 0))
        arrays = [(<Layout>layout).empty() for layout in self.layouts]
        return (*arrays, cnp.PyArray_EMPTY(1, &n, cnp.NPY_FLOAT64, 0),
                cnp.PyArray_EMPTY(1, &n, cnp.NPY_BOOL, 0), cnp.PyArray_EMPTY(1, &n, cnp.NPY_BOOL, 0))

    cdef tuple _zeroed_obs(self):
        return tuple([(<Layout>layout).zeros() for layout in self.layouts])

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

    # Who may call, and when

    cdef inline int _enter(self, str call) except -1:
        if self.running is not None or self.closed or not self.started:
            self._refuse(call)
        return 0

    cdef int _refuse(self, str call) except -1:
        if self.running is not None:
            raise RuntimeError(
                f"{call}: another thread is in {self.running} of this {self.label} env; give each thread an env of "
                f"its own, or guard this one with a lock")
        if self.closed:
            raise ClosedEnvironmentError(f"{call}: this {self.label} env is closed; make a new one")
        if call != "reset":
            raise ResetNeeded(f"{call}: this {self.label} env has not been reset yet; call reset() first")
        return 0

    # Actions

    cdef inline cnp.ndarray _checked_actions(self, object actions):
        """The actions as an array that the kernel can read, all of them valid; else an error, and nothing has moved."""
        cdef fv_engine *e = &self.engine
        cdef cnp.ndarray array
        cdef int64_t bad
        cdef int typenum
        if not self._is_ready(actions):
            actions = convert_actions(actions, e.batch.n, self.action_shape, e.kernel.action_kind == FV_DISCRETE,
                                      self.label)
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

    cdef inline bint _is_ready(self, object actions) noexcept:
        """Whether this is an array of the right shape, dtype and layout as it is."""
        if not cnp.PyArray_CheckExact(actions):
            return False
        cdef cnp.ndarray array = <cnp.ndarray>actions
        cdef int typenum = cnp.PyArray_TYPE(array)
        if self.engine.kernel.action_kind == FV_DISCRETE:
            if typenum != cnp.NPY_INT64:
                return False
        elif typenum != cnp.NPY_FLOAT32 and typenum != cnp.NPY_FLOAT64:
            return False
        if cnp.PyArray_NDIM(array) != self.action_ndim or not cnp.PyArray_ISCARRAY_RO(array):
            return False
        for i in range(self.action_ndim):
            if cnp.PyArray_DIM(array, i) != self.action_dims[i]:
                return False
        return True

    # The three calls

    def seed(self, seeds):
        """Seeds lanes: an int for seeds + lane, or a sequence of an int or None (leave that stream be) for each lane.

        The seeds have been checked. Lanes that never had a seed and get none now are seeded by the operating system.
        """
        cdef fv_engine *e = &self.engine
        cdef int64_t n = e.batch.n, i
        cdef uint64_t first
        self._enter_reset()
        if isinstance(seeds, int) and seeds + n <= 0xFFFFFFFFFFFFFFFF:
            first = seeds
            with nogil:
                fv_seed_all(e, first)
        else:
            if isinstance(seeds, int):
                seeds = [seeds + i for i in range(n)]
            for i in range(n):
                if seeds is not None and seeds[i] is not None:
                    self._seed_lane(i, seeds[i])
                elif not self.seeded:
                    self._seed_lane(i, np.random.SeedSequence().entropy)
        self.seeded = True

    cdef _seed_lane(self, int64_t lane, seed):
        cdef bytes words = int(seed).to_bytes((seed.bit_length() + 31) // 32 * 4 or 4, "little")
        fv_rng_seed(&self.engine.batch.rng[lane], <const uint32_t *><const char *>words, len(words) // 4)

    cdef int _enter_reset(self) except -1:
        if self.running is not None or self.closed:
            self._refuse("reset")
        return 0

    def reset(self, mask=None, options=None):
        """Begins new episodes in all lanes, or in those of a bool mask (n,). Returns (observation, info).

        The observation has a row for every lane; those of lanes that were not reset show them as they stand.
        """
        cdef fv_engine *e = &self.engine
        cdef double[FV_MAX_OPTIONS] values
        cdef const double *given = NULL
        cdef cnp.ndarray lanes
        cdef tuple arrays
        self._enter_reset()
        if mask is not None and not self.started:
            self._refuse("reset with a mask")
        if options is not None:
            for i, value in enumerate(options):
                values[i] = value
            given = values
        arrays = self.kept if self.kept is not None else self._outputs()
        self._point_at(arrays)
        self.running = "reset"
        try:
            if mask is None:
                with nogil:
                    fv_reset(e, NULL, 0, given)
            else:
                lanes = np.flatnonzero(mask).astype(np.int64, copy=False)
                with nogil:
                    e.kernel.observe(&e.batch, 0, e.batch.n)
                    fv_reset(e, <const int64_t *>cnp.PyArray_DATA(lanes), cnp.PyArray_SIZE(lanes), given)
        finally:
            self.running = None
        self.started = True
        return self._as_observation(arrays), {}

    def step(self, actions):
        """Steps all lanes. Returns (observation, rewards, terminations, truncations, info)."""
        cdef fv_engine *e = &self.engine
        cdef cnp.ndarray checked
        cdef int64_t ended
        cdef bint float32
        cdef tuple arrays
        cdef int32_t num_obs = e.kernel.num_obs
        self._enter("step")
        if e.autoreset == FV_DISABLED and e.num_ended > 0:
            raise ResetNeeded(
                f"step: lane {e.ended[0]} and {e.num_ended - 1} more of this {self.label} env have ended, and "
                f"autoreset_mode='Disabled' leaves it to you to reset them: "
                f"reset(options={{'reset_mask': terminations | truncations}})")
        checked = self._checked_actions(actions)
        arrays = self.kept if self.kept is not None else self._outputs()
        self._point_at(arrays)
        e.batch.actions = cnp.PyArray_DATA(checked)
        float32 = cnp.PyArray_TYPE(checked) == cnp.NPY_FLOAT32
        if e.autoreset == FV_SAME_STEP:
            for i in range(num_obs):
                e.final_obs[i] = cnp.PyArray_DATA(<cnp.ndarray>self.spare_final[i])
        self.running = "step"
        try:
            with nogil:
                ended = fv_step(e, float32)
        finally:
            self.running = None
        return (self._as_observation(arrays), arrays[num_obs], arrays[num_obs + 1], arrays[num_obs + 2],
                self._final_info(arrays) if ended > 0 and e.autoreset == FV_SAME_STEP else {})

    cdef dict _final_info(self, tuple arrays):
        """What SAME_STEP tells of the episodes that ended: dense arrays with their masks."""
        cdef int32_t num_obs = self.engine.kernel.num_obs
        final_obs = self._as_observation(self.spare_final)
        self.spare_final = self._zeroed_obs()
        ended = np.logical_or(arrays[num_obs + 1], arrays[num_obs + 2])
        return {"final_obs": final_obs, "_final_obs": ended, "final_info": {}, "_final_info": ended.copy()}

    def close(self):
        """Refuses all further calls. The memory goes when the last view of it does."""
        if self.running is not None:
            self._refuse("close")
        self.closed = True

    @property
    def nbytes(self):
        """Bytes kept for all lanes."""
        return self.memory.nbytes


def parameter_names(str kernel):
    """The names of a kernel's parameters, in its order."""
    return tuple(fv_find_kernel(kernel.encode()).param_names.decode().split())
