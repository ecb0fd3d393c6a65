/* The kernel template: one lane's scalar functions -> loops over all lanes, and the kernel table.
 *
 * Included at the end of every env file, once per scalar type. The env's structs have fields of one type only, so
 * a struct and an array of that many elements are two views of the same bytes; the loops below load a struct
 * from its columns, call the env's function, which is inlined, and store it back. Compilers keep the structs in
 * registers and vectorise the loop over lanes.
 *
 * The vectorised words of lane.h (fv_sin and so on) do not know every argument. A lane that met one they do not know is
 * outside: the loop leaves its state as it was, and the lane is stepped again, alone, before the loop goes on to the
 * next block. So is a lane of which a square was in doubt and turns out not to be pow's. Env files need not know of it.
 * Where it is cheap to find out beforehand that no lane of a block is outside, the loop is a quarter faster for not
 * having to care. */

#if !defined(FV_STATE_NAMES) || !defined(FV_PARAM_NAMES) || !defined(FV_ACTION)
#error "an env file defines FV_NAME, FV_STATE_NAMES, FV_PARAM_NAMES, FV_OBS and FV_ACTION"
#endif
#ifndef FV_ACTION_WIDTH
#define FV_ACTION_WIDTH 1
#endif
#ifndef FV_NUM_TABLES
#define FV_NUM_TABLES 0
#endif
#ifndef FV_OPTION_NAMES
#define FV_OPTION_NAMES ""
#define FV_OPTION_DEFAULTS {0}
#endif
#ifndef FV_STATE_TYPE
#define FV_STATE_TYPE real
#endif
#ifndef FV_LANES_PER_THREAD
#define FV_LANES_PER_THREAD 16384 /* at some 5 ns a lane, twice what waking a thread takes */
#endif
#ifndef FV_LONG_STEP
#define FV_LONG_STEP 0 /* 1: one lane's step has more values at a time than a CPU has registers (Acrobot, not CartPole) */
#endif
#ifndef FV_SELDOM_OUTSIDE
#define FV_SELDOM_OUTSIDE 0 /* 1: few lanes are ever outside (see above), and a glance at their states tells which (CartPole) */
#endif
#ifndef FV_SQUARES
#define FV_SQUARES 0 /* how many numbers a step squares by fv_square_pow: more are right as well, but slower */
#endif
#ifndef FV_DRAWS_IN_STEP
#define FV_DRAWS_IN_STEP 0 /* 1: step() draws; then lanes whose reset is pending are passed over */
#endif
#ifndef FV_DRAWS_IF
#define FV_DRAWS_IF(params) 0 /* instead, of a pointer to a lane's parameters: whether step() draws with these */
#endif

#ifndef FV_KERNEL_H
#define FV_KERNEL_H
#include <string.h>

#define FV_IS_DISCRETE_FV_DISCRETE 1
#define FV_IS_DISCRETE_FV_BOX 0
#define FV_IS_DISCRETE_(kind) FV_IS_DISCRETE_##kind
#define FV_IS_DISCRETE(kind) FV_IS_DISCRETE_(kind)

enum { FV_IN_DOUBT = 2 }; /* in a lane's flags: some of its squares are */

/* Both checks fold the whole array before they look, so that the loop vectorises; the lane is sought only then. */
static int64_t fv_check_discrete(const int64_t *actions, int64_t n, int64_t low, int64_t count)
{
    uint64_t outside = 0; /* its top bit: some action is below low or above the last */
    for (int64_t i = 0; i < n; i++) {
        const uint64_t from_low = (uint64_t)actions[i] - (uint64_t)low;
        outside |= from_low | ((uint64_t)(count - 1) - from_low);
    }
    if (outside >> 63)
        for (int64_t i = 0; i < n; i++)
            if ((uint64_t)actions[i] - (uint64_t)low >= (uint64_t)count) /* int64 would overflow for a negative low */
                return i;
    return -1;
}

#define FV_CHECK_NAN_(type) \
    static int64_t fv_check_##type(const type *actions, int64_t count) \
    { \
        int nan = 0; \
        for (int64_t i = 0; i < count; i++) \
            nan |= actions[i] != actions[i]; \
        if (nan) \
            for (int64_t i = 0; i < count; i++) \
                if (actions[i] != actions[i]) \
                    return i; \
        return -1; \
    }
FV_CHECK_NAN_(float)
FV_CHECK_NAN_(double)
#undef FV_CHECK_NAN_
#endif /* FV_KERNEL_H */

enum {
    FV(num_state) = sizeof(FV(state)) / sizeof(FV_STATE_TYPE),
    FV(num_params) = sizeof(FV(params)) / sizeof(real),
    FV(is_exact) = sizeof(real) == sizeof(double)
};
typedef union { FV(state) fields; FV_STATE_TYPE at[FV(num_state)]; } FV(state_view);
typedef union { FV(params) fields; real at[FV(num_params)]; } FV(params_view);

FV_INLINE void FV(load)(FV(state_view) *s, const fv_batch *b, int64_t lane)
{
    const FV_STATE_TYPE *column = b->state;
    FV_UNROLL
    for (int k = 0; k < FV(num_state); k++)
        s->at[k] = column[k * b->stride + lane];
}

FV_INLINE void FV(store)(const FV(state_view) *s, const fv_batch *b, int64_t lane)
{
    FV_STATE_TYPE *column = b->state;
    FV_UNROLL
    for (int k = 0; k < FV(num_state); k++)
        column[k * b->stride + lane] = s->at[k];
}

/* The parameters of one lane, from their columns. */
FV_INLINE void FV(load_params)(FV(params_view) *p, const fv_batch *b, int64_t lane)
{
    const real *column = b->param_columns;
    FV_UNROLL
    for (int k = 0; k < FV(num_params); k++)
        p->at[k] = column[k * b->stride + lane];
}

/* Writes one lane's row of every array in an env's FV_OBS or FV_INFO list. */
#define FV_STORE_ROW_(type, name, width) \
    { \
        type *row = (type *)arrays[array++] + lane * (width); \
        FV_UNROLL \
        for (int k = 0; k < (width); k++) \
            row[k] = values->name[k]; \
    }

FV_INLINE void FV(store_obs)(const FV(obs) *values, void *const *arrays, int64_t lane)
{
    int array = 0;
    FV_OBS(FV_STORE_ROW_)
    (void)array;
}

FV_INLINE void FV(store_info)(const FV(info) *values, void *const *arrays, int64_t lane)
{
    int array = 0;
    FV_INFO(FV_STORE_ROW_)
    (void)array, (void)values, (void)arrays, (void)lane;
}

/* The narrowest type that the step loop writes says how many lanes GCC steps side by side: as many as fill a vector of
 * it. Four vectors of `real` hide the latency of divisions and table look-ups; of a long step, the lanes of more than
 * one would spill each other's registers. */
#if FV_LONG_STEP
typedef __typeof__(_Generic((real)0, double: (int64_t)0, float: (int32_t)0)) FV(flag);
#else
typedef __typeof__(_Generic((real)0, double: (int16_t)0, float: (int8_t)0)) FV(flag);
#endif

/* What the step loop holds of one lane, in registers. */
typedef struct {
    FV(params_view) p;
    int columns; /* a constant: whether the parameters have columns */
    FV(state_view) s, before;
#if FV_IS_DISCRETE(FV_ACTION)
    int64_t action;
#else
    double action[FV_ACTION_WIDTH];
#endif
    fv_lane lane;
    fv_outcome outcome;
    FV(obs) obs;
    FV(info) info;
} FV(work);

/* The env's functions, behind an argument that is never unused. Where one is, clang rewrites the call and forgets that
 * it stands in a loop of independent lanes; and if the lane reads a table, the loop is no longer vectorised. */
FV_INLINE void FV(advance)(FV(work) *w)
{
    w->outcome = FV(step)(&w->s.fields, w->action, &w->p.fields, &w->info, &w->lane);
    FV(observe)(&w->s.fields, &w->p.fields, &w->obs, &w->lane);
}

FV_INLINE int FV(is_outside)(const FV(work) *w)
{
    return (w->lane.outside < 0) | (w->lane.outside32 < 0);
}

/* What a step knows of a block of lanes besides their columns and outputs. */
#define FV_COLUMNS_(type, name, width) type name[width][FV_BLOCK];
typedef struct {
    FV(flag) flags[FV_BLOCK]; /* negative: outside; else whether it terminated, and FV_IN_DOUBT */
#if FV_LONG_STEP
    struct { FV_OBS(FV_COLUMNS_) } obs; /* on the way to rows: GCC's step loop writes no rows of six, for example */
#endif
#if FV_SQUARES
    double doubtful[FV_SQUARES][FV_BLOCK];
    FV_STATE_TYPE before[FV(num_state)][FV_BLOCK];
#endif
} FV(block);
#undef FV_COLUMNS_

/* Loads one lane and steps it; nothing is stored. */
FV_INLINE void FV(try_step)(FV(work) *w, const fv_batch *b, int64_t i)
{
    FV(load)(&w->s, b, i);
    if (w->columns)
        FV(load_params)(&w->p, b, i);
#if FV_IS_DISCRETE(FV_ACTION)
    w->action = ((const int64_t *)b->actions)[i];
#else
    FV_UNROLL
    for (int k = 0; k < FV_ACTION_WIDTH; k++)
        w->action[k] = w->lane.float32_action ? ((const float *)b->actions)[i * FV_ACTION_WIDTH + k]
                                              : ((const double *)b->actions)[i * FV_ACTION_WIDTH + k];
#endif
    FV(advance)(w);
}

/* One lane's step but for its flags. If the lane turns out to be outside, which it does not if `inside` is 1, its state
 * stays as it was, and the rest that is written is void. */
FV_INLINE void FV(step_lane)(FV(work) *w, const fv_batch *b, int64_t i, const int inside)
{
    FV(try_step)(w, b, i);
    if (!inside) {
        const int outside = FV(is_outside)(w);
        FV(load)(&w->before, b, i);
        FV_UNROLL
        for (int k = 0; k < FV(num_state); k++)
            w->s.at[k] = outside ? w->before.at[k] : w->s.at[k];
    }
    FV(store)(&w->s, b, i);
    if (w->lane.alone || !FV_LONG_STEP)
        FV(store_obs)(&w->obs, b->obs, i);
    FV(store_info)(&w->info, b->info, i);
    b->rewards[i] = w->outcome.reward;
}

#if FV_LONG_STEP
#define FV_STORE_COLUMN_(type, name, width) \
    FV_UNROLL \
    for (int k = 0; k < (width); k++) \
        block->obs.name[k][at] = values->name[k];
FV_INLINE void FV(store_obs_columns)(const FV(obs) *values, FV(block) *block, int64_t at)
{
    FV_OBS(FV_STORE_COLUMN_)
}
#undef FV_STORE_COLUMN_

#define FV_COLUMNS_TO_ROWS_(type, name, width) \
    { \
        type *const rows = (type *)b->obs[array++] + begin * (width); \
        for (int64_t at = 0; at < end - begin; at++) \
            for (int k = 0; k < (width); k++) \
                rows[at * (width) + k] = block->obs.name[k][at]; \
    }
static __attribute__((unused)) void FV(write_obs_rows)(const fv_batch *b, int64_t begin, int64_t end,
                                                       const FV(block) *block)
{
    int array = 0;
    FV_OBS(FV_COLUMNS_TO_ROWS_)
    (void)array;
}
#undef FV_COLUMNS_TO_ROWS_
#endif

/* The step loop; its last three arguments are constants wherever it is called. */
FV_INLINE void FV(step_lanes)(const fv_batch *batch, int64_t begin, int64_t end, FV(block) *block,
                              const int columns, const int float32_action, const int inside)
{
    const fv_batch copy = *batch, *b = &copy;
    FV(params_view) shared = {0};
    if (!columns && FV(num_params) > 0)
        shared = *(const FV(params_view) *)b->params;
    FV_LANES
    for (int64_t i = begin; i < end; i++) {
        FV(work) w = {.p = shared, .columns = columns};
        w.lane = (fv_lane){.tables = b->tables, .table_sizes = b->table_sizes, .float32_action = float32_action,
                           .python_action = b->python_actions};
#if FV_SQUARES
        w.lane.doubtful = &block->doubtful[0][i - begin];
        w.lane.most_squares = FV_SQUARES;
#endif
        FV(step_lane)(&w, b, i, inside);
        const int flags = (w.outcome.terminated != 0) | (FV_SQUARES && w.lane.doubt < 0 ? FV_IN_DOUBT : 0);
        block->flags[i - begin] = (FV(flag))(!inside && FV(is_outside)(&w) ? -1 : flags);
#if FV_LONG_STEP
        FV(store_obs_columns)(&w.obs, block, i - begin);
#endif
#if FV_SQUARES
        FV_UNROLL
        for (int k = 0; k < FV(num_state); k++)
            block->before[k][i - begin] = w.before.at[k];
#endif
    }
}

/* Whether a step loop over these lanes will meet one that is outside. It is the same loop: compilers leave out of it all
 * that the answer does not hang on. */
FV_INLINE int FV(any_outside)(const fv_batch *batch, int64_t begin, int64_t end, const int columns,
                              const int float32_action)
{
    const fv_batch copy = *batch, *b = &copy;
    FV(params_view) shared = {0};
    if (!columns && FV(num_params) > 0)
        shared = *(const FV(params_view) *)b->params;
    int any = 0;
    FV_LANES
    for (int64_t i = begin; i < end; i++) {
        FV(work) w = {.p = shared, .columns = columns};
        w.lane = (fv_lane){.tables = b->tables, .table_sizes = b->table_sizes, .float32_action = float32_action,
                           .python_action = b->python_actions};
        FV(try_step)(&w, b, i);
        any |= FV(is_outside)(&w);
    }
    return any;
}

/* The step loop, with lanes outside or without. */
FV_INLINE void FV(step_block)(const fv_batch *b, int64_t begin, int64_t end, FV(block) *block, const int columns,
                              const int float32_action)
{
    if (FV_SELDOM_OUTSIDE && !FV(any_outside)(b, begin, end, columns, float32_action))
        FV(step_lanes)(b, begin, end, block, columns, float32_action, 1);
    else
        FV(step_lanes)(b, begin, end, block, columns, float32_action, 0);
#if FV_LONG_STEP
    FV(write_obs_rows)(b, begin, end, block);
#endif
}

/* Steps one lane on its own; `rng` if it draws, or NULL. Returns whether it terminated. Where all lanes draw this is their
 * loop's body; where few lanes need it, it is compiled once for all of them. */
#if FV_DRAWS_IN_STEP
FV_INLINE
#else
static __attribute__((noinline, unused))
#endif
int FV(step_alone)(const fv_batch *b, int64_t i, int float32_action, fv_rng *rng)
{
    FV(work) w = {.columns = b->param_columns != NULL};
    w.lane = (fv_lane){.tables = b->tables, .table_sizes = b->table_sizes, .float32_action = float32_action,
                       .python_action = b->python_actions, .alone = 1, .libm = -b->libm};
    if (!w.columns && FV(num_params) > 0)
        w.p = *(const FV(params_view) *)b->params;
    if (rng != NULL)
        w.lane.rng = *rng;
    FV(step_lane)(&w, b, i, 1);
    if (rng != NULL)
        *rng = w.lane.rng;
    return w.outcome.terminated != 0;
}

/* The same for lanes that draw: they must not be stepped twice, and cannot be stepped beside others. */
FV_INLINE void FV(step_drawing)(const fv_batch *b, int64_t begin, int64_t end, FV(block) *block, int float32_action)
{
    for (int64_t i = begin; i < end; i++) {
        block->flags[i - begin] = 0;
        if (b->pending[i])
            b->rewards[i] = 0;
        else
            block->flags[i - begin] = (FV(flag))FV(step_alone)(b, i, float32_action, &b->rng[i]);
    }
}

/* Whether the step of some lane draws, given its parameters. */
FV_INLINE int FV(any_draws)(const fv_batch *b, int64_t begin, int64_t end)
{
    if (b->param_columns == NULL)
        return FV_DRAWS_IF((const FV(params) *)b->params);
    int draws = 0;
    for (int64_t i = begin; i < end; i++) {
        FV(params_view) p;
        FV(load_params)(&p, b, i);
        draws |= FV_DRAWS_IF(&p.fields);
    }
    return draws;
}

#if FV_SQUARES
/* Asks pow about the squares in doubt. A lane with one that is not pow's goes back to where it was, and is outside. */
static __attribute__((noinline, unused)) void FV(settle_doubts)(const fv_batch *b, int64_t begin, int64_t end,
                                                                FV(block) *block)
{
    FV_STATE_TYPE *column = b->state;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i - begin;
        if (block->flags[at] < 0 || !(block->flags[at] & FV_IN_DOUBT))
            continue;
        block->flags[at] &= ~FV_IN_DOUBT;
        for (int k = 0; k < FV_SQUARES; k++) {
            const double x = block->doubtful[k][at];
            if (x != 0 && !(fv_libm_square(x) == x * x))
                block->flags[at] = -1;
        }
        if (block->flags[at] < 0)
            for (int k = 0; k < FV(num_state); k++)
                column[k * b->stride + i] = block->before[k][at];
    }
}
#endif

/* Steps the lanes that were outside, one after another. */
FV_INLINE void FV(step_outside)(const fv_batch *b, int64_t begin, int64_t end, FV(block) *block, int float32_action)
{
    for (int64_t i = begin; i < end; i++)
        if (block->flags[i - begin] < 0)
            block->flags[i - begin] = (FV(flag))FV(step_alone)(b, i, float32_action, NULL);
}

FV_INLINE void FV(step_range)(const fv_batch *b, int64_t begin, int64_t end, const int float32_action)
{
    const int draws = FV_DRAWS_IN_STEP || FV(any_draws)(b, begin, end);
    const int64_t oldest = b->clock - b->limit; /* episodes begun at or before this are at the limit */
    const int64_t *const start = b->start;
    const uint8_t *const pending = b->pending;
    uint8_t *const terminations = b->terminations, *const truncations = b->truncations;
    double *const returns = b->returns;
    const double *const rewards = b->rewards;
    FV(block) block;
    const FV(flag) *const flags = block.flags;
#if FV_SQUARES
    for (int k = 0; k < FV_SQUARES; k++) /* an action's dtype may leave places unused */
        memset(block.doubtful[k], 0, sizeof(double) * (size_t)(end - begin < FV_BLOCK ? end - begin : FV_BLOCK));
#endif
    for (int64_t stop; begin < end; begin = stop) {
        stop = begin + FV_BLOCK < end ? begin + FV_BLOCK : end;
        if (draws)
            FV(step_drawing)(b, begin, stop, &block, float32_action);
        else if (FV_VECMATH && FV(is_exact) && b->libm)
            memset(block.flags, -1, sizeof block.flags); /* all lanes are outside */
        else if (b->param_columns)
            FV(step_block)(b, begin, stop, &block, 1, float32_action);
        else
            FV(step_block)(b, begin, stop, &block, 0, float32_action);

        FV(flag) all = 0; /* negative if any lane is */
        for (int64_t i = begin; i < stop; i++)
            all |= flags[i - begin];
#if FV_SQUARES
        if (all & FV_IN_DOUBT) {
            FV(settle_doubts)(b, begin, stop, &block);
            all = -1;
        }
#endif
        if (all < 0)
            FV(step_outside)(b, begin, stop, &block, float32_action);
        FV_LANES
        for (int64_t i = begin; i < stop; i++)
            terminations[i] = (uint8_t)(flags[i - begin] & (pending[i] ^ 1));
        if (returns != NULL) {
            FV_LANES
            for (int64_t i = begin; i < stop; i++)
                returns[i] += rewards[i];
        }

        int64_t at_limit = 0; /* likewise */
        for (int64_t i = begin; i < stop; i++)
            at_limit |= start[i] - (oldest + 1);
        if (at_limit < 0)
            for (int64_t i = begin; i < stop; i++)
                truncations[i] = (uint8_t)((start[i] <= oldest) & (pending[i] ^ 1));
        else
            memset(truncations + begin, 0, (size_t)(stop - begin));
    }
}

static void FV(run_step)(const fv_batch *b, int64_t begin, int64_t end)
{
    FV(step_range)(b, begin, end, 0);
}

#if !FV_IS_DISCRETE(FV_ACTION)
static void FV(run_step_float32)(const fv_batch *b, int64_t begin, int64_t end)
{
    FV(step_range)(b, begin, end, 1);
}
#endif

static void FV(run_reset)(const fv_batch *b, const int64_t *lanes, int64_t count, const double *options)
{
    FV(params_view) p = {0};
    if (!b->param_columns && FV(num_params) > 0)
        p = *(const FV(params_view) *)b->params;
    for (int64_t j = 0; j < count; j++) {
        const int64_t i = lanes[j];
        fv_lane lane = {.rng = b->rng[i], .options = options, .tables = b->tables, .table_sizes = b->table_sizes,
                        .alone = 1, .libm = -b->libm};
        FV(state_view) s;
        FV(obs) obs;
        FV(info) info;
        if (b->param_columns)
            FV(load_params)(&p, b, i);
        FV(reset)(&s.fields, &p.fields, &info, &lane);
        b->rng[i] = lane.rng;
        FV(store)(&s, b, i);
        FV(observe)(&s.fields, &p.fields, &obs, &lane);
        FV(store_obs)(&obs, b->obs, i);
        FV(store_info)(&info, b->info, i);
    }
}

static void FV(run_observe)(const fv_batch *b, int64_t begin, int64_t end)
{
    FV(params_view) p = {0};
    if (!b->param_columns && FV(num_params) > 0)
        p = *(const FV(params_view) *)b->params;
    for (int64_t i = begin; i < end; i++) {
        fv_lane lane = {.tables = b->tables, .table_sizes = b->table_sizes, .alone = 1,
                        .libm = -b->libm};
        FV(state_view) s;
        FV(obs) obs;
        FV(load)(&s, b, i);
        if (b->param_columns)
            FV(load_params)(&p, b, i);
        FV(observe)(&s.fields, &p.fields, &obs, &lane);
        FV(store_obs)(&obs, b->obs, i);
    }
}

#define FV_DESCRIBE_(type, name, width) {#name, FV_DTYPE(type), width, (int32_t)((width) * sizeof(type))},
static const fv_array FV(obs_arrays)[] = {FV_OBS(FV_DESCRIBE_) {0}};
static const fv_array FV(info_arrays)[] = {FV_INFO(FV_DESCRIBE_) {0}};
#undef FV_DESCRIBE_
#undef FV_STORE_ROW_

static const fv_kernel FV(kernel) = {
    .abi_version = FV_ABI_VERSION,
    .table_size = sizeof(fv_kernel),
    .name = FV_TEXT(FV_NAME),
    .state_names = FV_STATE_NAMES,
    .param_names = FV_PARAM_NAMES,
    .num_state = FV(num_state),
    .num_params = FV(num_params),
    .state_dtype = FV_DTYPE(FV_STATE_TYPE),
    .real_dtype = FV_DTYPE(real),
    .state_size = sizeof(FV_STATE_TYPE),
    .real_size = sizeof(real),
    .obs = FV(obs_arrays),
    .info = FV(info_arrays),
    .num_obs = sizeof(FV(obs_arrays)) / sizeof(fv_array) - 1,
    .num_info = sizeof(FV(info_arrays)) / sizeof(fv_array) - 1,
    .action_kind = FV_ACTION,
    .action_width = FV_ACTION_WIDTH,
    .num_tables = FV_NUM_TABLES,
    .lanes_per_thread = FV_LANES_PER_THREAD,
    .option_names = FV_OPTION_NAMES,
    .option_defaults = FV_OPTION_DEFAULTS,
    .check_discrete = fv_check_discrete,
    .check_float32 = fv_check_float,
    .check_float64 = fv_check_double,
    .step = FV(run_step),
#if !FV_IS_DISCRETE(FV_ACTION)
    .step_float32 = FV(run_step_float32),
#endif
    .reset = FV(run_reset),
    .observe = FV(run_observe),
};

#undef FV
#undef FV_NAME
#undef FV_STATE_NAMES
#undef FV_STATE_TYPE
#undef FV_PARAM_NAMES
#undef FV_OBS
#undef FV_INFO
#undef FV_NO_INFO_
#undef FV_ACTION
#undef FV_ACTION_WIDTH
#undef FV_NUM_TABLES
#undef FV_LANES_PER_THREAD
#undef FV_OPTION_NAMES
#undef FV_OPTION_DEFAULTS
#undef FV_SQUARES
#undef FV_DRAWS_IN_STEP
#undef FV_DRAWS_IF
#undef FV_LONG_STEP
#undef FV_SELDOM_OUTSIDE
