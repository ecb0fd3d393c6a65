/* The engine: what all kernels share. Seeds, resets, the three autoreset modes, final observations, statistics.
 *
 * A step is the kernel's loop over all lanes (kernel.h) and then, for the few lanes whose episode ended, the rare path
 * here. Nothing in it allocates memory, and nothing needs Python: it runs without the GIL. */
#ifndef FV_ENGINE_H
#define FV_ENGINE_H

#include "fastvec.h"

typedef enum fv_autoreset { FV_NEXT_STEP, FV_SAME_STEP, FV_DISABLED } fv_autoreset;

typedef struct fv_engine {
    fv_batch batch;
    const fv_kernel *kernel;
    fv_autoreset autoreset;

    int64_t *ended; /* the lanes whose last step ended an episode, ascending: n places, num_ended in use */
    int64_t num_ended;

    /* Room for what an episode's end shows, used if a step has ends; one row a lane, like obs and info.
     * SAME_STEP copies the last observation and info here before it resets. */
    void *final_obs[FV_MAX_ARRAYS], *final_info[FV_MAX_ARRAYS];
    /* Statistics, kept if batch.returns is not NULL: when each lane's episode began, in seconds of a steady
     * clock, and where a step with ends writes the ended episodes' returns, lengths and seconds. */
    double *began;
    double *episode_returns, *episode_seconds;
    int64_t *episode_lengths;
} fv_engine;

/* The kernel of that name, or NULL. */
const fv_kernel *fv_find_kernel(const char *name);

/* Seeds lane i from the integer first + i, for all lanes. The sum must not overflow. */
void fv_seed_all(fv_engine *engine, uint64_t first);

/* New episodes for `count` lanes, or for all if `lanes` is NULL; their pending flags are cleared.
 * `options` are as many numbers as the kernel names, or NULL for its defaults. The observations and infos of
 * the other lanes are not written. */
void fv_reset(fv_engine *engine, const int64_t *lanes, int64_t count, const double *options);

/* Steps every lane by the actions in `batch.actions`, which have been checked; `float32_actions` as they are.
 * Returns the number of lanes whose episode ended. In FV_DISABLED mode no lane may be pending. */
int64_t fv_step(fv_engine *engine, int float32_actions);

/* The steady clock of `began`. */
double fv_steady_seconds(void);

#endif
