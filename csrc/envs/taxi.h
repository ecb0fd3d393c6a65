/* Taxi-v3 and -v4: fetch a passenger at one of four places and bring them to another.
 * After Dietterich, "Hierarchical reinforcement learning with the MAXQ value function decomposition" (2000). The
 * tables hold the town, the rewards and the rain; what they cannot is the fickle passenger, who once in an episode, as the
 * taxi first moves with them, may name another destination. */
#define FV_NAME taxi
#define FV_STATE_NAMES "s fickle_step"
#define FV_STATE_TYPE int32_t
#define FV_PARAM_NAMES "fickle_passenger fickle_probability"
#define FV_OBS(ARRAY) ARRAY(int64_t, s, 1)
#define FV_INFO(ARRAY) ARRAY(double, prob, 1) ARRAY(int8_t, action_mask, 6)
#define FV_ACTION FV_DISCRETE
#define FV_DRAWS_IN_STEP 1
#define FV_NUM_TABLES (FV_NUM_TRANSITION_TABLES + 1)
#include "../lane.h"
#include "../tables.h"

typedef struct {
    int32_t s;           /* ((row * 5 + column) * 5 + passenger) * 4 + destination; passenger 4 is in the taxi */
    int32_t fickle_step; /* 1: the passenger will change their mind as the taxi moves with them */
} FV(state);

typedef struct {
    real fickle_passenger; /* 0 or 1 */
    real fickle_probability;
} FV(params);

/* Which actions do anything in a state: the table after those of the transitions, six int8 a state. */
FV_INLINE void FV(mask_actions)(const FV(state) *s, FV(info) *info, const fv_lane *lane)
{
    const int8_t *mask = (const int8_t *)lane->tables[FV_NUM_TRANSITION_TABLES] + 6 * s->s;
    for (int action = 0; action < 6; action++)
        info->action_mask[action] = mask[action];
}

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    const fv_transition *start = fv_draw_start(lane);
    s->s = start->next;
    s->fickle_step = p->fickle_passenger != 0 && fv_random(lane) < p->fickle_probability;
    info->prob[0] = start->prob;
    FV(mask_actions)(s, info, lane);
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    const fv_transition *drawn = fv_draw_transition(lane, s->s, action);
    const uint32_t before = (uint32_t)s->s, after = (uint32_t)drawn->next;
    const int aboard = before / 4 % 5 == 4, moved = before / 20 != after / 20;
    s->s = drawn->next;
    if (p->fickle_passenger != 0 && s->fickle_step && aboard && moved) {
        const uint32_t destination = before % 4, other = (uint32_t)fv_integers(lane, 3);
        s->s = (int32_t)(after / 4 * 4 + other + (other >= destination));
        s->fickle_step = 0;
    }
    info->prob[0] = drawn->prob;
    FV(mask_actions)(s, info, lane);
    return (fv_outcome){.reward = drawn->reward, .terminated = drawn->terminated};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->s[0] = s->s;
}

#include "../kernel.h"
