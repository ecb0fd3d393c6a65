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

/* A number and what NumPy takes it for. Of two kinds a result has the greater: a number of Python's, such as a parameter,
 * is rounded to float32 beside a float32, and makes no float32 a float64. */
enum { FV(python), FV(float32), FV(float64) };
typedef struct { double value; int64_t kind; } FV(number);

FV_INLINE FV(number) FV(python_number)(double value)
{
    return (FV(number)){value, FV(python)};
}

#define FV_OPERATION_(name, operator) \
    FV_INLINE FV(number) FV(name)(FV(number) x, FV(number) y) \
    { \
        const int64_t kind = x.kind > y.kind ? x.kind : y.kind; \
        const double narrow = (float)x.value operator (float)y.value, wide = x.value operator y.value; \
        return (FV(number)){kind == FV(float32) ? narrow : wide, kind}; \
    }
FV_OPERATION_(add, +)
FV_OPERATION_(subtract, -)
FV_OPERATION_(multiply, *)
#undef FV_OPERATION_

/* A parameter as x is compared with it. */
FV_INLINE double FV(beside)(FV(number) x, double parameter)
{
    return x.kind == FV(float32) ? (double)(float)parameter : parameter;
}

FV_INLINE int FV(below)(FV(number) x, double parameter)
{
    return x.value < FV(beside)(x, parameter);
}

FV_INLINE int FV(above)(FV(number) x, double parameter)
{
    return x.value > FV(beside)(x, parameter);
}

FV_INLINE FV(number) FV(choose)(int condition, double parameter, FV(number) x)
{
    return (FV(number)){condition ? parameter : x.value, condition ? FV(python) : x.kind};
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
    const int64_t state_kind = s->is_float32 != 0 ? FV(float32) : FV(float64);
    FV(number) position = {s->position, state_kind}, velocity = {s->velocity, state_kind};
    FV(number) force = {action[0], lane->float32_action ? FV(float32) : lane->python_action ? FV(python) : FV(float64)};
    force = FV(choose)(FV(below)(force, p->min_action), p->min_action, force);
    force = FV(choose)(FV(above)(force, p->max_action), p->max_action, force);

    const FV(number) angle = FV(multiply)(FV(python_number)(3.0), position);
    const FV(number) slope = FV(python_number)(0.0025 * fv_cos(lane, angle.value));
    velocity = FV(add)(velocity, FV(subtract)(FV(multiply)(force, FV(python_number)(p->power)), slope));
    velocity = FV(choose)(FV(above)(velocity, p->max_speed), p->max_speed, velocity);
    velocity = FV(choose)(FV(below)(velocity, -p->max_speed), -p->max_speed, velocity);
    position = FV(add)(position, velocity);
    position = FV(choose)(FV(above)(position, p->max_position), p->max_position, position);
    position = FV(choose)(FV(below)(position, p->min_position), p->min_position, position);
    const int at_wall = position.value == FV(beside)(position, p->min_position);
    velocity = FV(choose)(at_wall & (velocity.value < 0), 0.0, velocity);

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
