/* See pool.h. */
#define _POSIX_C_SOURCE 200809L
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* How often a thread looks before it sleeps. The caller waits for chunks that are almost done, so it looks for some
 * 20 us; a worker that looked on would take a core from the policy that runs between steps, so it does not. */
enum { CALLER_LOOKS = 4000 };

struct fv_pool {
    pid_t owner;    /* the process that the threads are in */
    int num_workers;
    pthread_t *workers;

    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    uint64_t round; /* counts calls of fv_pool_run; guarded by mutex */
    int idle;       /* workers that have finished the round; guarded by mutex */
    int stopping;   /* guarded by mutex */

    int64_t (*run)(void *, int64_t);
    void *job;
    int64_t chunks;
    _Atomic int64_t next_chunk;
    _Atomic int64_t chunks_left;
    _Atomic int64_t sum;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes chunks until none is left. */
static void work_through(fv_pool *pool)
{
    int64_t sum = 0, chunk, finished = 0;
    while ((chunk = atomic_fetch_add_explicit(&pool->next_chunk, 1, memory_order_relaxed)) < pool->chunks) {
        sum += pool->run(pool->job, chunk);
        finished++;
    }
    if (finished > 0) {
        atomic_fetch_add_explicit(&pool->sum, sum, memory_order_relaxed);
        atomic_fetch_sub_explicit(&pool->chunks_left, finished, memory_order_release);
    }
}

static void *worker(void *argument)
{
    fv_pool *pool = argument;
    uint64_t round = 0;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->round == round && !pool->stopping)
            pthread_cond_wait(&pool->work, &pool->mutex);
        if (pool->stopping)
            break;
        round = pool->round;
        pthread_mutex_unlock(&pool->mutex);
        work_through(pool);
        pthread_mutex_lock(&pool->mutex);
        pool->idle++;
        pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static fv_pool *pool_new(int threads)
{
    fv_pool *pool = calloc(1, sizeof(fv_pool));
    if (pool == NULL)
        return NULL;
    pool->workers = calloc((size_t)threads - 1, sizeof(pthread_t));
    if (pool->workers == NULL) {
        free(pool);
        return NULL;
    }
    pool->owner = getpid();
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    while (pool->num_workers < threads - 1) {
        if (pthread_create(&pool->workers[pool->num_workers], NULL, worker, pool) != 0) {
            fv_pool_free(pool);
            return NULL;
        }
        pool->num_workers++;
    }
    pool->idle = pool->num_workers;
    return pool;
}

int fv_pool_ready(fv_pool **pool, int threads)
{
    if (*pool != NULL && (*pool)->owner != getpid()) {
        /* A fork copied the memory but not the threads, and left the mutex as it was: neither can be used or ended. */
        *pool = NULL;
    }
    if (*pool != NULL && (*pool)->num_workers != threads - 1) {
        fv_pool_free(*pool);
        *pool = NULL;
    }
    if (*pool == NULL)
        *pool = pool_new(threads);
    return *pool != NULL;
}

int64_t fv_pool_run(fv_pool *pool, int64_t (*run)(void *, int64_t), void *job, int64_t chunks)
{
    pthread_mutex_lock(&pool->mutex);
    /* A worker that woke too late for the last round still has to say so, or it would meet this round's numbers. */
    while (pool->idle < pool->num_workers)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pool->run = run;
    pool->job = job;
    pool->chunks = chunks;
    atomic_store_explicit(&pool->next_chunk, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->chunks_left, chunks, memory_order_relaxed);
    atomic_store_explicit(&pool->sum, 0, memory_order_relaxed);
    pool->idle = 0;
    pool->round++;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);

    work_through(pool);
    for (int looks = 0; looks < CALLER_LOOKS; looks++) {
        if (atomic_load_explicit(&pool->chunks_left, memory_order_acquire) == 0)
            return atomic_load_explicit(&pool->sum, memory_order_relaxed);
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    while (pool->idle < pool->num_workers)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    return atomic_load_explicit(&pool->sum, memory_order_relaxed);
}

void fv_pool_free(fv_pool *pool)
{
    if (pool == NULL || pool->owner != getpid())
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->num_workers; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}
