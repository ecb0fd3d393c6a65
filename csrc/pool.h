/* Persistent threads that share out the chunks of a step. They belong to one engine, are started when a step first wants
 * them, sleep between steps and end with the engine. */
#ifndef FV_POOL_H
#define FV_POOL_H

#include <stdint.h>

typedef struct fv_pool fv_pool;

/* Makes *pool have `threads` threads, the caller's included, unless it has them. After a fork the child has none of the
 * parent's and gets its own. Returns 0 if the system gives no more threads: then *pool is NULL. */
int fv_pool_ready(fv_pool **pool, int threads);

/* Calls run(job, chunk) once for each chunk in [0, chunks), on any of the threads, and returns the sum of the results.
 * One caller at a time. */
int64_t fv_pool_run(fv_pool *pool, int64_t (*run)(void *job, int64_t chunk), void *job, int64_t chunks);

/* Ends the threads and waits for them. NULL is fine. */
void fv_pool_free(fv_pool *pool);

#endif
