/* The kernel ABI: what an env's compiled dynamics and the engine know of each other.
 *
 * A kernel is one `fv_kernel` table: names, dtypes and widths of what it keeps and shows, and the functions
 * that step, reset and observe ranges of lanes of an `fv_batch`. Env files do not fill the table by hand:
 * they define one lane's scalar functions and include kernel.h, which writes the rest. */
#ifndef FASTVEC_H
#define FASTVEC_H

#include <stdint.h>

#include "rng.h"

#define FV_ABI_VERSION 1

enum { FV_MAX_ARRAYS = 8, FV_MAX_TABLES = 8, FV_MAX_OPTIONS = 4, FV_LANES_PER_LINE = 64 };

typedef enum fv_dtype {
    FV_FLOAT64, FV_FLOAT32, FV_INT64, FV_INT32, FV_INT8, FV_UINT8, FV_NUM_DTYPES
} fv_dtype;

typedef enum fv_action_kind { FV_DISCRETE, FV_BOX } fv_action_kind;

/* One array that a kernel writes: `width` elements a lane, lanes one after another. */
typedef struct fv_array {
    const char *name;
    fv_dtype dtype;
    int32_t width;
    int32_t size; /* bytes a lane */
} fv_array;

/* N lanes as a kernel sees them. Columns: state[k * stride + lane], each starting on a cache line. */
typedef struct fv_batch {
    int64_t n;
    int64_t stride; /* elements from one column to the next, of state and of parameters alike */
    void *state;
    fv_rng *rng;

    const void *params;         /* one value for all lanes each, in the kernel's scalar type */
    const void *param_columns;  /* NULL, or a column for every parameter: then `params` is not read */
    const void *tables[FV_MAX_TABLES]; /* read-only arrays shared by all lanes; what they hold is the kernel's */
    int64_t table_sizes[FV_MAX_TABLES];

    /* The clock counts steps of the batch; a lane's episode began at start[lane], so that its length is
     * clock - start[lane] and the hot loop has no counter to write. */
    int64_t clock;
    int64_t limit;              /* steps after which an episode is truncated; INT64_MAX for none */
    int64_t *start;
    double *returns;            /* NULL, or each lane's sum of rewards since its reset */
    uint8_t *pending;           /* 1 where the last step ended the episode and no reset came since */

    const void *actions;        /* int64 for FV_DISCRETE; float32 or float64, `action_width` a lane, for FV_BOX */
    void *obs[FV_MAX_ARRAYS];   /* what a call writes; obs and info in the order of the kernel's lists */
    void *info[FV_MAX_ARRAYS];
    double *rewards;
    uint8_t *terminations, *truncations;

    int32_t python_actions; /* 1: the float64 actions were numbers of Python's, which NumPy fits to their surroundings */
    int32_t libm; /* 1: take sines and the like from the C library alone, for vecmath.h has other bits (vecmath_check.h) */
} fv_batch;

typedef struct fv_kernel {
    uint32_t abi_version; /* FV_ABI_VERSION of the headers it was compiled with */
    uint32_t table_size;  /* sizeof(fv_kernel) of those headers */
    const char *name;

    const char *state_names; /* separated by single spaces, in column order */
    const char *param_names;
    int32_t num_state, num_params;
    fv_dtype state_dtype, real_dtype; /* the scalar type of all state columns, and of all parameters */
    int32_t state_size, real_size;    /* their bytes */

    const fv_array *obs, *info;
    int32_t num_obs, num_info;

    fv_action_kind action_kind;
    int32_t action_width;
    int32_t num_tables;
    int64_t lanes_per_thread; /* how many lanes make a step long enough to share it between threads */

    const char *option_names; /* numbers that reset() takes as options, and what they are by default */
    double option_defaults[FV_MAX_OPTIONS];

    /* The first lane in [0, n) whose action is not one, or -1: outside [low, low + count) for FV_DISCRETE,
     * NaN for FV_BOX. */
    int64_t (*check_discrete)(const int64_t *actions, int64_t n, int64_t low, int64_t count);
    int64_t (*check_float32)(const float *actions, int64_t count);
    int64_t (*check_float64)(const double *actions, int64_t count);

    /* One step of lanes [begin, end). `step` takes int64 or float64 actions, `step_float32` float32. Lanes
     * whose reset is pending may be stepped (what they show is overwritten), but draw no random number, and their
     * flags are 0. */
    void (*step)(const fv_batch *batch, int64_t begin, int64_t end);
    void (*step_float32)(const fv_batch *batch, int64_t begin, int64_t end);

    /* New episodes for the listed lanes: draws, state, observation and info; the clock is the engine's. */
    void (*reset)(const fv_batch *batch, const int64_t *lanes, int64_t count, const double *options);
    /* Writes the observations of lanes [begin, end) as they stand. */
    void (*observe)(const fv_batch *batch, int64_t begin, int64_t end);
} fv_kernel;

#endif
