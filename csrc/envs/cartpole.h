/* CartPole-v0 and -v1: balance a pole on a cart by pushing the cart left or right.
 * Dynamics after Florian, "Correct equations for the dynamics of the cart-pole system" (2007), for the task of
 * Barto, Sutton and Anderson (1983); every operation in the order of Gymnasium's cartpole.py. */
#define FV_NAME cartpole
#define FV_STATE_NAMES "x x_dot theta theta_dot"
#define FV_PARAM_NAMES \
    "gravity masspole total_mass length polemass_length force_mag tau " \
    "theta_threshold_radians x_threshold kinematics_integrator sutton_barto_reward"
#define FV_OBS(ARRAY) ARRAY(float, state, 4)
#define FV_ACTION FV_DISCRETE
#define FV_SELDOM_OUTSIDE 1
#define FV_OPTION_NAMES "low high"
#define FV_OPTION_DEFAULTS {-0.05, 0.05}
#include "../lane.h"

typedef struct {
    real x, x_dot;          /* cart: m, m/s */
    real theta, theta_dot;  /* pole from upright: rad, rad/s */
} FV(state);

typedef struct {
    real gravity, masspole, total_mass, length, polemass_length, force_mag, tau;
    real theta_threshold_radians, x_threshold;
    real kinematics_integrator; /* 0: explicit Euler, 1: semi-implicit */
    real sutton_barto_reward;   /* 0: 1 a step; 1: 0 a step and -1 at the fall */
} FV(params);

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    const double low = lane->options[0], high = lane->options[1];
    s->x = (real)fv_uniform(lane, low, high);
    s->x_dot = (real)fv_uniform(lane, low, high);
    s->theta = (real)fv_uniform(lane, low, high);
    s->theta_dot = (real)fv_uniform(lane, low, high);
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    const real force = (int32_t)action == 1 ? p->force_mag : -p->force_mag;
    const real cos_theta = fv_cos_small(lane, s->theta), sin_theta = fv_sin_small(lane, s->theta);

    const real temp = (force + p->polemass_length * (s->theta_dot * s->theta_dot) * sin_theta) / p->total_mass;
    const real theta_acc = (p->gravity * sin_theta - cos_theta * temp)
        / (p->length * ((real)4 / (real)3 - p->masspole * (cos_theta * cos_theta) / p->total_mass));
    const real x_acc = temp - p->polemass_length * theta_acc * cos_theta / p->total_mass;

    const real x_dot = s->x_dot + p->tau * x_acc;
    const real theta_dot = s->theta_dot + p->tau * theta_acc;
    const int semi_implicit = p->kinematics_integrator != 0;
    s->x = s->x + p->tau * (semi_implicit ? x_dot : s->x_dot);
    s->theta = s->theta + p->tau * (semi_implicit ? theta_dot : s->theta_dot);
    s->x_dot = x_dot;
    s->theta_dot = theta_dot;

    const int fallen = (s->x < -p->x_threshold) | (s->x > p->x_threshold)
        | (s->theta < -p->theta_threshold_radians) | (s->theta > p->theta_threshold_radians);
    const double upright = p->sutton_barto_reward != 0 ? 0.0 : 1.0, at_fall = p->sutton_barto_reward != 0 ? -1.0 : 1.0;
    return (fv_outcome){.reward = fallen ? at_fall : upright, .terminated = fallen};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->state[0] = (float)s->x;
    obs->state[1] = (float)s->x_dot;
    obs->state[2] = (float)s->theta;
    obs->state[3] = (float)s->theta_dot;
}

#include "../kernel.h"
