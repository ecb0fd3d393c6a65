/* Counter-v0: adds action + 1 to a count and ends at 20. The smallest env there is, and the example for others:
 * the ordinary class of the same env is fastvec/counter.py. */
#define FV_NAME counter
#define FV_STATE_NAMES "count"
#define FV_PARAM_NAMES "goal step_reward"
#define FV_OBS(ARRAY) ARRAY(float, count, 1)
#define FV_ACTION FV_DISCRETE
#include "../lane.h"

typedef struct { real count; } FV(state);
typedef struct { real goal, step_reward; } FV(params);

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info, (void)lane;
    s->count = 0;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info, (void)lane;
    s->count += (real)((int32_t)action + 1); /* AVX2 converts vectors of 32-bit integers only */
    return (fv_outcome){.reward = (double)p->step_reward, .terminated = s->count >= p->goal};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->count[0] = (float)s->count;
}

#include "../kernel.h"
