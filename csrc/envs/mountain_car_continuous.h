/* MountainCarContinuous-v0: MountainCar with a motor that pushes as hard as it is told, at a cost.
 * Every operation in the order and the precision of Gymnasium's continuous_mountain_car.py, which mixes them: the state of a
 * new episode is float64, and each step rounds it to float32 at its end; an action is float32 or float64. */
#define FV_NAME mountain_car_continuous
#define FV_STATE_NAMES "position velocity is_float32"
#define FV_PARAM_NAMES \
    "min_action max_action min_position max_position max_speed goal_position goal_velocity power"
#define FV_OBS(ARRAY) ARRAY(float, state, 2)
#define FV_ACTION FV_BOX
#define FV_OPTION_NAMES "low high"
#define FV_OPTION_DEFAULTS {-0.6, -0.4}
#include "../lane.h"

typedef struct {
    real position;   /* along the valley, whose floor is at -pi/6 */
    real velocity;   /* a step */
    real is_float32; /* 0: the two above are the unrounded ones of a new episode; 1: they have been rounded */
} FV(state);

typedef struct {
    real min_action, max_action;
    real min_position, max_position, max_speed;
    real goal_position, goal_velocity;
    real power;
} FV(params);

/* A number and what NumPy takes it for, in two masks (all ones or zero): float32, float64, or a number of Python's, as the
 * parameters are. Those are rounded to float32 beside a float32, and make no float32 a float64. Choices are by masks
 * throughout, for that is what compilers vectorise where float and double mix. */
typedef struct { double value; int64_t float32, float64; } FV(number);

FV_INLINE FV(number) FV(python_number)(double value)
{
    return (FV(number)){value, 0, 0};
}

#define FV_OPERATION_(name, operator) \
    FV_INLINE FV(number) FV(name)(FV(number) x, FV(number) y) \
    { \
        const int64_t float64 = x.float64 | y.float64, float32 = (x.float32 | y.float32) & ~float64; \
        const double narrow = (float)x.value operator (float)y.value, wide = x.value operator y.value; \
        return (FV(number)){fv_select(float32, narrow, wide), float32, float64}; \
    }
FV_OPERATION_(add, +)
FV_OPERATION_(subtract, -)
FV_OPERATION_(multiply, *)
#undef FV_OPERATION_

/* A parameter as x is compared with it. */
FV_INLINE double FV(beside)(FV(number) x, double parameter)
{
    return fv_select(x.float32, (float)parameter, parameter);
}

/* `if x < parameter: x = parameter`, and so on. */
FV_INLINE FV(number) FV(replace)(FV(number) x, int condition, double parameter)
{
    const int64_t mask = -(int64_t)condition;
    return (FV(number)){fv_select(mask, parameter, x.value), x.float32 & ~mask, x.float64 & ~mask};
}

FV_INLINE FV(number) FV(at_least)(FV(number) x, double parameter)
{
    return FV(replace)(x, x.value < FV(beside)(x, parameter), parameter);
}

FV_INLINE FV(number) FV(at_most)(FV(number) x, double parameter)
{
    return FV(replace)(x, x.value > FV(beside)(x, parameter), parameter);
}

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    s->position = fv_uniform(lane, lane->options[0], lane->options[1]);
    s->velocity = 0;
    s->is_float32 = 0;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, const double *action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    const int64_t rounded = -(int64_t)(s->is_float32 != 0);
    const int64_t float32_action = lane->float32_action ? -1 : 0, python_action = lane->python_action ? -1 : 0;
    FV(number) position = {s->position, rounded, ~rounded}, velocity = {s->velocity, rounded, ~rounded};
    FV(number) force = {action[0], float32_action, ~(float32_action | python_action)};
    force = FV(at_most)(FV(at_least)(force, p->min_action), p->max_action);

    const FV(number) angle = FV(multiply)(FV(python_number)(3.0), position);
    const FV(number) slope = FV(python_number)(0.0025 * fv_cos(lane, angle.value));
    velocity = FV(add)(velocity, FV(subtract)(FV(multiply)(force, FV(python_number)(p->power)), slope));
    velocity = FV(at_least)(FV(at_most)(velocity, p->max_speed), -p->max_speed);
    position = FV(add)(position, velocity);
    position = FV(at_least)(FV(at_most)(position, p->max_position), p->min_position);
    const int at_wall = position.value == FV(beside)(position, p->min_position);
    velocity = FV(replace)(velocity, at_wall & (velocity.value < 0), 0.0);

    s->position = (float)position.value;
    s->velocity = (float)velocity.value;
    s->is_float32 = 1;
    const int far_enough = position.value >= FV(beside)(position, p->goal_position);
    const int fast_enough = velocity.value >= FV(beside)(velocity, p->goal_velocity);
    const int arrived = far_enough & fast_enough;
    /* The square of a float32 has room in a double, so that pow gives x * x. What was given is paid for, not the force. */
    const double square = lane->float32_action ? action[0] * action[0] : fv_square_pow(lane, action[0]);
    return (fv_outcome){.reward = (arrived ? 100.0 : 0.0) - square * 0.1, .terminated = arrived};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->state[0] = (float)s->position;
    obs->state[1] = (float)s->velocity;
}

#include "../kernel.h"
