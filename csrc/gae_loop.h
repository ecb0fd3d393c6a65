/* Generalised advantage estimation in the scalar type `real`: included by isa/target.h, once per scalar type. Rows go
 * from the last to the first; within a row lanes do not depend on each other, and the loops over them vectorise. */
#include "gae.h"

#define FV_GAE_JOIN_(a, b) a##b
#define FV_GAE_JOIN(a, b) FV_GAE_JOIN_(a, b)
#define FV_GAE(name) FV_GAE_JOIN(name, FV_REAL_NAME)

static void FV_GAE(gae_row_)(int64_t n, real gamma, real decay, uint8_t last, const real *restrict reward,
                           const real *restrict value, const real *restrict next_value,
                           const real *restrict final_value, const uint8_t *restrict terminated,
                           const uint8_t *restrict truncated, const real *restrict next_advantage,
                           real *restrict advantage, real *restrict target)
{
    for (int64_t i = 0; i < n; i++) {
        /* Loaded whether needed or not: a load under a condition is not vectorised. */
        const real next = next_value[i], final = final_value[i], following = next_advantage[i];
        const real survived = truncated[i] ? final : next;
        const real bootstrap = terminated[i] ? 0 : survived;
        const real carried = terminated[i] | truncated[i] | last ? 0 : following;
        const real delta = reward[i] + gamma * bootstrap - value[i];
        const real sum = delta + decay * carried;
        advantage[i] = sum;
        target[i] = sum + value[i];
    }
}

static void FV_GAE(mask_row_)(int64_t n, const uint8_t *restrict reset, const real *restrict value,
                            real *restrict advantage, real *restrict target)
{
    for (int64_t i = 0; i < n; i++) {
        const real sum = advantage[i], reached = target[i], own = value[i];
        advantage[i] = reset[i] ? 0 : sum;
        target[i] = reset[i] ? own : reached;
    }
}

static void FV_GAE(gae_)(const fv_rollout *rollout)
{
    const int64_t n = rollout->lanes;
    const real gamma = (real)rollout->gamma;
    const real decay = gamma * (real)rollout->gae_lambda;
    const real *rewards = rollout->rewards, *values = rollout->values, *final_values = rollout->final_values;
    real *advantages = rollout->advantages, *targets = rollout->returns;
    for (int64_t t = rollout->steps - 1; t >= 0; t--) {
        const int last = t == rollout->steps - 1;
        const int64_t row = t * n;
        const real *value = values + row;
        const real *next_value = last ? rollout->last_values : value + n;
        const real *final_value = final_values ? final_values + row : next_value;
        const real *next_advantage = last ? value : advantages + row + n; /* not used in the last row, but read */
        FV_GAE(gae_row_)(n, gamma, decay, (uint8_t)last, rewards + row, value, next_value, final_value,
                       rollout->terminations + row, rollout->truncations + row, next_advantage, advantages + row,
                       targets + row);
        if (rollout->resets)
            FV_GAE(mask_row_)(n, rollout->resets + row, value, advantages + row, targets + row);
    }
}

#undef FV_GAE
#undef FV_GAE_JOIN
#undef FV_GAE_JOIN_
