/* MountainCar-v0: a car too weak for the hill rocks out of the valley until it reaches the top on the right.
 * The task of Moore, "Efficient memory-based learning for robot control" (1990), in the discrete form of Sutton and
 * Barto; every operation in the order of Gymnasium's mountain_car.py. */
#define FV_NAME mountain_car
#define FV_STATE_NAMES "position velocity"
#define FV_PARAM_NAMES "min_position max_position max_speed goal_position goal_velocity force gravity"
#define FV_OBS(ARRAY) ARRAY(float, state, 2)
#define FV_ACTION FV_DISCRETE
#define FV_OPTION_NAMES "low high"
#define FV_OPTION_DEFAULTS {-0.6, -0.4}
#include "../lane.h"

typedef struct {
    real position; /* along the valley, whose floor is at -pi/6 */
    real velocity; /* a step */
} FV(state);

typedef struct {
    real min_position, max_position, max_speed;
    real goal_position, goal_velocity;
    real force, gravity;
} FV(params);

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    s->position = (real)fv_uniform(lane, lane->options[0], lane->options[1]);
    s->velocity = 0;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    const real push = (real)((int32_t)action - 1) * p->force, slope = fv_cos(lane, (real)3 * s->position);
    real velocity = s->velocity + (push + slope * -p->gravity);
    velocity = fv_clip(velocity, -p->max_speed, p->max_speed);
    const real position = fv_clip(s->position + velocity, p->min_position, p->max_position);
    const int at_wall = (position == p->min_position) & (velocity < 0);
    velocity = at_wall ? 0 : velocity;

    s->position = position;
    s->velocity = velocity;
    const int arrived = (position >= p->goal_position) & (velocity >= p->goal_velocity);
    return (fv_outcome){.reward = -1.0, .terminated = arrived};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->state[0] = (float)s->position;
    obs->state[1] = (float)s->velocity;
}

#include "../kernel.h"
