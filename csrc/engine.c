/* See engine.h. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "engine.h"

#include <string.h>
#include <time.h>

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

static void record_episodes(const fv_engine *engine)
{
    const fv_batch *b = &engine->batch;
    const double now = fv_steady_seconds();
    for (int64_t j = 0; j < engine->num_ended; j++) {
        const int64_t lane = engine->ended[j];
        engine->episode_returns[lane] = b->returns[lane];
        engine->episode_lengths[lane] = b->clock - b->start[lane];
        engine->episode_seconds[lane] = now - engine->began[lane];
    }
}

void fv_reset(fv_engine *engine, const int64_t *lanes, int64_t count, const double *options)
{
    fv_batch *b = &engine->batch;
    if (lanes == NULL) {
        /* `ended` is free to use: no lane is pending after this. */
        for (int64_t i = 0; i < b->n; i++)
            engine->ended[i] = i;
        begin_episodes(engine, engine->ended, b->n, options);
        engine->num_ended = 0;
        return;
    }
    begin_episodes(engine, lanes, count, options);
    int64_t kept = 0;
    for (int64_t j = 0; j < engine->num_ended; j++)
        if (b->pending[engine->ended[j]])
            engine->ended[kept++] = engine->ended[j];
    engine->num_ended = kept;
}

/* Lists the lanes with a flag set, and marks them pending. Most words of eight lanes are zero. */
static int64_t collect_ended(fv_engine *engine)
{
    const fv_batch *b = &engine->batch;
    int64_t found = 0, i = 0;
    for (; i + 8 <= b->n; i += 8) {
        uint64_t terminated, truncated;
        memcpy(&terminated, b->terminations + i, 8);
        memcpy(&truncated, b->truncations + i, 8);
        if ((terminated | truncated) == 0)
            continue;
        for (int64_t k = i; k < i + 8; k++)
            if (b->terminations[k] | b->truncations[k])
                engine->ended[found++] = k;
    }
    for (; i < b->n; i++)
        if (b->terminations[i] | b->truncations[i])
            engine->ended[found++] = i;
    for (int64_t j = 0; j < found; j++)
        b->pending[engine->ended[j]] = 1;
    engine->num_ended = found;
    return found;
}

static void copy_rows(const fv_array *arrays, int32_t num_arrays, void *const *from, void *const *to,
                      const int64_t *lanes, int64_t count)
{
    for (int32_t a = 0; a < num_arrays; a++) {
        const size_t size = (size_t)arrays[a].size;
        for (int64_t j = 0; j < count; j++)
            memcpy((char *)to[a] + lanes[j] * size, (const char *)from[a] + lanes[j] * size, size);
    }
}

int64_t fv_step(fv_engine *engine, int float32_actions)
{
    fv_batch *b = &engine->batch;
    const fv_kernel *kernel = engine->kernel;
    b->clock++;
    (float32_actions ? kernel->step_float32 : kernel->step)(b, 0, b->n);

    if (engine->autoreset == FV_NEXT_STEP && engine->num_ended > 0) {
        /* This step's row of a lane that ended in the last one is its reset; whatever the kernel wrote goes. */
        begin_episodes(engine, engine->ended, engine->num_ended, NULL);
        for (int64_t j = 0; j < engine->num_ended; j++) {
            const int64_t lane = engine->ended[j];
            b->rewards[lane] = 0;
            b->terminations[lane] = b->truncations[lane] = 0;
        }
    }

    const int64_t ended = collect_ended(engine);
    if (ended == 0)
        return 0;
    if (b->returns != NULL)
        record_episodes(engine);
    if (engine->autoreset == FV_SAME_STEP) {
        copy_rows(kernel->obs, kernel->num_obs, b->obs, engine->final_obs, engine->ended, ended);
        copy_rows(kernel->info, kernel->num_info, b->info, engine->final_info, engine->ended, ended);
        begin_episodes(engine, engine->ended, ended, NULL);
        engine->num_ended = 0;
    }
    return ended;
}
