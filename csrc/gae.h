/* Generalised advantage estimation over a rollout: time runs down the rows, a lane is a column. dispatch.h has the call;
 * it allocates nothing and needs no Python: it runs without the GIL. */
#ifndef FV_GAE_H
#define FV_GAE_H

#include <stdint.h>

/* Arrays are C-contiguous, (steps, lanes), and (lanes,) for last_values; the numbers are all float or all double. The
 * flags and resets are 0 or 1. Outputs do not overlap anything else. */
typedef struct fv_rollout {
    int64_t steps, lanes;
    double gamma, gae_lambda;
    const void *rewards, *values, *last_values;
    const void *final_values; /* of the observations that episodes ended with; NULL: the next row's value is theirs */
    const uint8_t *terminations, *truncations;
    const uint8_t *resets; /* the rows that are no transitions; NULL if all are */
    void *advantages, *returns;
} fv_rollout;

#endif
