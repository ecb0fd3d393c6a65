/* See engine.h. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "engine.h"

#include <string.h>
#include <time.h>

#include "pool.h"

double fv_steady_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void fv_seed_all(fv_engine *engine, uint64_t first)
{
    for (int64_t i = 0; i < engine->batch.n; i++) {
        const uint64_t seed = first + (uint64_t)i;
        const uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        fv_rng_seed(&engine->batch.rng[i], words, 2); /* an absent word counts as zero, so two words are right for all */
    }
}

/* Starts new episodes: the kernel's part, then the clock's. */
static void begin_episodes(fv_engine *engine, const int64_t *lanes, int64_t count, const double *options)
{
    fv_batch *b = &engine->batch;
    engine->kernel->reset(b, lanes, count, options ? options : engine->kernel->option_defaults);
    for (int64_t j = 0; j < count; j++) {
        b->start[lanes[j]] = b->clock;
        b->pending[lanes[j]] = 0;
    }
    if (b->returns != NULL) {
        const double now = fv_steady_seconds();
        for (int64_t j = 0; j < count; j++) {
            b->returns[lanes[j]] = 0;
            engine->began[lanes[j]] = now;
        }
    }
}

void fv_reset(fv_engine *engine, const int64_t *lanes, int64_t count, const double *options)
{
    fv_batch *b = &engine->batch;
    if (lanes != NULL) {
        begin_episodes(engine, lanes, count, options);
    } else {
        /* All lanes, listed a chunk at a time where the ended ones are listed otherwise: none of them stays. */
        for (int64_t begin = 0; begin < b->n; begin += FV_CHUNK) {
            const int64_t end = begin + FV_CHUNK < b->n ? begin + FV_CHUNK : b->n;
            for (int64_t i = begin; i < end; i++)
                engine->ended[i] = i;
            begin_episodes(engine, engine->ended + begin, end - begin, options);
        }
    }
    fv_list_pending(engine);
}

void fv_list_pending(fv_engine *engine)
{
    const fv_batch *b = &engine->batch;
    engine->num_ended = 0;
    for (int64_t chunk = 0; chunk < fv_num_chunks(b->n); chunk++) {
        const int64_t begin = chunk * FV_CHUNK, end = begin + FV_CHUNK < b->n ? begin + FV_CHUNK : b->n;
        int64_t found = 0;
        for (int64_t i = begin; i < end; i++)
            if (b->pending[i])
                engine->ended[begin + found++] = i;
        engine->ended_in[chunk] = found;
        engine->num_ended += found;
    }
}

/* Lists the lanes of a chunk with a flag set. Most words of eight lanes are zero. */
static int64_t collect_ended(const fv_batch *b, int64_t begin, int64_t end, int64_t *ended)
{
    int64_t found = 0, i = begin;
    for (; i + 8 <= end; i += 8) {
        uint64_t terminated, truncated;
        memcpy(&terminated, b->terminations + i, 8);
        memcpy(&truncated, b->truncations + i, 8);
        if ((terminated | truncated) == 0)
            continue;
        for (int64_t k = i; k < i + 8; k++)
            if (b->terminations[k] | b->truncations[k])
                ended[found++] = k;
    }
    for (; i < end; i++)
        if (b->terminations[i] | b->truncations[i])
            ended[found++] = i;
    return found;
}

static void record_episodes(const fv_engine *engine, const int64_t *lanes, int64_t count)
{
    const fv_batch *b = &engine->batch;
    const double now = fv_steady_seconds();
    for (int64_t j = 0; j < count; j++) {
        const int64_t lane = lanes[j];
        engine->episode_returns[lane] = b->returns[lane];
        engine->episode_lengths[lane] = b->clock - b->start[lane];
        engine->episode_seconds[lane] = now - engine->began[lane];
    }
}

static void copy_rows(const fv_array *arrays, int32_t num_arrays, void *const *from, void *const *to,
                      const int64_t *lanes, int64_t count)
{
    for (int32_t a = 0; a < num_arrays; a++) {
        const int64_t size = arrays[a].size;
        for (int64_t j = 0; j < count; j++)
            memcpy((char *)to[a] + lanes[j] * size, (const char *)from[a] + lanes[j] * size, (size_t)size);
    }
}

/* One chunk's step. Returns the number of its lanes whose episode ended. */
static int64_t step_chunk(fv_engine *engine, int64_t chunk, int float32_actions)
{
    fv_batch *b = &engine->batch;
    const fv_kernel *kernel = engine->kernel;
    const int64_t begin = chunk * FV_CHUNK, end = begin + FV_CHUNK < b->n ? begin + FV_CHUNK : b->n;
    int64_t *ended = engine->ended + begin;
    (float32_actions ? kernel->step_float32 : kernel->step)(b, begin, end);

    if (engine->autoreset == FV_NEXT_STEP && engine->ended_in[chunk] > 0) {
        /* This step's row of a lane that ended in the last one is its reset; whatever the kernel wrote goes. */
        begin_episodes(engine, ended, engine->ended_in[chunk], NULL);
        for (int64_t j = 0; j < engine->ended_in[chunk]; j++) {
            b->rewards[ended[j]] = 0;
            b->terminations[ended[j]] = b->truncations[ended[j]] = 0;
        }
    }

    const int64_t count = collect_ended(b, begin, end, ended);
    if (count > 0 && b->returns != NULL)
        record_episodes(engine, ended, count);
    if (count > 0 && engine->autoreset == FV_SAME_STEP) {
        copy_rows(kernel->obs, kernel->num_obs, b->obs, engine->final_obs, ended, count);
        copy_rows(kernel->info, kernel->num_info, b->info, engine->final_info, ended, count);
        begin_episodes(engine, ended, count, NULL);
        engine->ended_in[chunk] = 0;
    } else {
        for (int64_t j = 0; j < count; j++)
            b->pending[ended[j]] = 1;
        engine->ended_in[chunk] = count;
    }
    return count;
}

typedef struct step_job {
    fv_engine *engine;
    int float32_actions;
} step_job;

static int64_t step_chunk_job(void *job, int64_t chunk)
{
    const step_job *step = job;
    return step_chunk(step->engine, chunk, step->float32_actions);
}

/* The threads worth their wake-up: each gets as many lanes as the kernel says make up for it. */
static int useful_threads(const fv_engine *engine)
{
    const int64_t most = engine->batch.n / engine->kernel->lanes_per_thread;
    return most < engine->num_threads ? (int)most : engine->num_threads;
}

int64_t fv_step(fv_engine *engine, int float32_actions)
{
    const int64_t chunks = fv_num_chunks(engine->batch.n);
    const int threads = useful_threads(engine);
    int64_t ended = 0;
    engine->batch.clock++;
    if (threads > 1 && fv_pool_ready(&engine->pool, threads)) {
        step_job job = {engine, float32_actions};
        ended = fv_pool_run(engine->pool, step_chunk_job, &job, chunks);
    } else {
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            ended += step_chunk(engine, chunk, float32_actions);
    }
    engine->num_ended = engine->autoreset == FV_SAME_STEP ? 0 : ended;
    return ended;
}

void fv_join_threads(fv_engine *engine)
{
    fv_pool_free(engine->pool);
    engine->pool = NULL;
}
