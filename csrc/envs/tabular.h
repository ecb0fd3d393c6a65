/* FrozenLake, CliffWalking and any other finite problem that is given as tables: a state, and a draw for each step.
 * The order of draws is that of the toy-text envs of Gymnasium: one number a reset and one a step, whatever they decide. */
#define FV_NAME tabular
#define FV_STATE_NAMES "s"
#define FV_STATE_TYPE int32_t
#define FV_PARAM_NAMES ""
#define FV_OBS(ARRAY) ARRAY(int64_t, s, 1)
#define FV_INFO(ARRAY) ARRAY(double, prob, 1)
#define FV_ACTION FV_DISCRETE
#define FV_DRAWS_IN_STEP 1
#define FV_NUM_TABLES FV_NUM_TRANSITION_TABLES
#include "../lane.h"
#include "../tables.h"

typedef struct { int32_t s; } FV(state);
typedef struct { char none; } FV(params);

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p;
    const fv_transition *start = fv_draw_start(lane);
    s->s = start->next;
    info->prob[0] = start->prob;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p;
    const fv_transition *drawn = fv_draw_transition(lane, s->s, action);
    s->s = drawn->next;
    info->prob[0] = drawn->prob;
    return (fv_outcome){.reward = drawn->reward, .terminated = drawn->terminated};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->s[0] = s->s;
}

#include "../kernel.h"
