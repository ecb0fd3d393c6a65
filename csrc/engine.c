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

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "collect_ended reads eight flags as one number, the first lane's in its lowest byte"
#endif

static inline uint64_t eight_flags(const uint8_t *flags)
{
    uint64_t eight;
    memcpy(&eight, flags, 8);
    return eight;
}

/* Lists the lanes of a chunk with a flag set. Which are set is random, so that a branch for each would be guessed wrong
 * more often than not: 64 flags become the bits of a word, and of its ones the first few are listed with no question. */
static int64_t collect_ended(const fv_batch *b, int64_t begin, int64_t end, int64_t *ended)
{
    enum { UNASKED = 4 };
    int64_t found = 0, i = begin;
    for (; i + 64 <= end; i += 64) {
        uint64_t bits = 0, sums = 0;
        for (int k = 0; k < 64; k += 8) {
            const uint64_t eight = eight_flags(b->terminations + i + k) | eight_flags(b->truncations + i + k);
            bits |= (eight * 0x0102040810204080u >> 56) << k; /* the product's top byte is made of the lowest bits */
            sums += eight;
        }
        /* What is listed beyond the last one set is overwritten; there is room, as a chunk may list all its lanes. */
        int64_t listed = found;
        for (; listed < found + UNASKED; bits &= bits - 1)
            ended[listed++] = i + __builtin_ctzll(bits | (uint64_t)1 << 63);
        for (; bits != 0; bits &= bits - 1)
            ended[listed++] = i + __builtin_ctzll(bits);
        found += (int64_t)(sums * 0x0101010101010101u >> 56); /* the sum of eight bytes */
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
        for (int64_t j = 0; j < engine->ended_in[chunk]; j++)
            b->rewards[ended[j]] = 0;
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
