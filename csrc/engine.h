/* The engine: what all kernels share. Seeds, resets, the three autoreset modes, final observations, statistics.
 *
 * A step goes chunk by chunk: the kernel's loop over the chunk's lanes (kernel.h) and then, for the few lanes whose
 * episode ended, the rare path here, while their state is still in the cache. Chunks do not depend on each other, so that
 * threads (pool.h) may share them out. Nothing in a step allocates memory or needs Python: it runs without the GIL. */
#ifndef FV_ENGINE_H
#define FV_ENGINE_H

#include "fastvec.h"

typedef enum fv_autoreset { FV_NEXT_STEP, FV_SAME_STEP, FV_DISABLED } fv_autoreset;

/* Lanes a chunk: whole cache lines of every output, and a state that fits the first-level cache. */
enum { FV_CHUNK = 1024 };

typedef struct fv_pool fv_pool;

typedef struct fv_engine {
    fv_batch batch;
    const fv_kernel *kernel;
    fv_autoreset autoreset;

    /* The lanes that wait for a reset, ascending. Chunk c lists its own from ended[c * FV_CHUNK], ended_in[c] of them. */
    int64_t *ended;   /* n places */
    int64_t *ended_in; /* fv_num_chunks(n) places */
    int64_t num_ended; /* all of them */

    /* Room for what an episode's end shows, used if a step has ends; one row a lane, like obs and info.
     * SAME_STEP copies the last observation and info here before it resets. */
    void *final_obs[FV_MAX_ARRAYS], *final_info[FV_MAX_ARRAYS];
    /* Statistics, kept if batch.returns is not NULL: when each lane's episode began, in seconds of a steady
     * clock, and where a step with ends writes the ended episodes' returns, lengths and seconds. */
    double *began;
    double *episode_returns, *episode_seconds;
    int64_t *episode_lengths;

    int num_threads; /* that a step may use, the calling one included */
    fv_pool *pool;   /* NULL until a step wants it */
} fv_engine;

static inline int64_t fv_num_chunks(int64_t n)
{
    return (n + FV_CHUNK - 1) / FV_CHUNK;
}

/* Seeds lane i from the integer first + i, for all lanes. The sum must not overflow. */
void fv_seed_all(fv_engine *engine, uint64_t first);

/* New episodes for `count` lanes, or for all if `lanes` is NULL; none of them is pending after it.
 * `options` are as many numbers as the kernel names, or NULL for its defaults. The observations and infos of
 * the other lanes are not written. */
void fv_reset(fv_engine *engine, const int64_t *lanes, int64_t count, const double *options);

/* Steps every lane by the actions in `batch.actions`, which have been checked; `float32_actions` as they are.
 * Returns the number of lanes whose episode ended. In FV_DISABLED mode no lane may be pending. */
int64_t fv_step(fv_engine *engine, int float32_actions);

/* Lists the ended lanes anew from batch.pending, after that was written from outside. */
void fv_list_pending(fv_engine *engine);

/* Ends the engine's threads, if it has any. */
void fv_join_threads(fv_engine *engine);

/* The steady clock of `began`. */
double fv_steady_seconds(void);

#endif
