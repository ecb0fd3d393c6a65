/* Pendulum-v1: swing a rod up and keep it there with a weak motor at its hinge.
 * Every operation in the order of Gymnasium's pendulum.py. Its state is float64; the terms of the torque have the precision
 * of the action. */
#define FV_NAME pendulum
#define FV_STATE_NAMES "theta theta_dot last_u"
#define FV_PARAM_NAMES "max_speed max_torque dt g m l l_squared"
#define FV_OBS(ARRAY) ARRAY(float, cos_sin_theta_dot, 3)
#define FV_ACTION FV_BOX
#define FV_LONG_STEP 1
#define FV_SQUARES 3
#define FV_OPTION_NAMES "x_init y_init"
#define FV_OPTION_DEFAULTS {FV_PI, 1.0}
#include "../lane.h"

typedef struct {
    real theta;     /* from upright, counting whole turns: rad */
    real theta_dot; /* rad/s */
    real last_u;    /* the torque of the last step, for renderers: N m; NaN in a new episode */
} FV(state);

typedef struct {
    real max_speed, max_torque; /* rad/s, N m */
    real dt;
    real g, m, l;
    real l_squared; /* by Python's pow, as it does not change */
} FV(params);

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    const double angle = lane->options[0], speed = lane->options[1];
    s->theta = fv_uniform(lane, -angle, angle);
    s->theta_dot = fv_uniform(lane, -speed, speed);
    s->last_u = NAN;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, const double *action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    const double torque_to_acc = 3.0 / (p->m * p->l_squared);
    double u, effort, acc;
    if (lane->float32_action) {
        const float limit = (float)p->max_torque, torque = fv_clipf((float)action[0], -limit, limit);
        u = torque;
        effort = 0.001f * fv_square_powf(lane, torque);
        acc = (float)torque_to_acc * torque;
    } else {
        u = fv_clip(action[0], -p->max_torque, p->max_torque);
        effort = 0.001 * fv_square_pow(lane, u);
        acc = torque_to_acc * u;
    }
    const double angle = fv_floor_mod(lane, s->theta + FV_PI, 2 * FV_PI) - FV_PI;
    const double costs = fv_square_pow(lane, angle) + 0.1 * fv_square_pow(lane, s->theta_dot) + effort;

    const double gravity = 3.0 * p->g / (2.0 * p->l) * fv_sin(lane, s->theta);
    s->theta_dot = fv_clip(s->theta_dot + (gravity + acc) * p->dt, -p->max_speed, p->max_speed);
    s->theta = s->theta + s->theta_dot * p->dt;
    s->last_u = u;
    return (fv_outcome){.reward = -costs, .terminated = 0};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p;
    obs->cos_sin_theta_dot[0] = (float)fv_cos(lane, s->theta);
    obs->cos_sin_theta_dot[1] = (float)fv_sin(lane, s->theta);
    obs->cos_sin_theta_dot[2] = (float)s->theta_dot;
}

#include "../kernel.h"
