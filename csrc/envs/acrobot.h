/* Acrobot-v1: swing the free end of a two-link arm above the bar that it hangs from, with a motor at its elbow alone.
 * The task of Sutton, "Generalization in reinforcement learning" (1996); every operation in the order of Gymnasium's
 * acrobot.py. The state is float64, but that of a new episode is rounded to float32, and so are its cosines and sines. */
#define FV_NAME acrobot
#define FV_STATE_NAMES "theta1 theta2 theta1_dot theta2_dot is_float32"
#define FV_PARAM_NAMES \
    "dt LINK_LENGTH_1 LINK_MASS_1 LINK_MASS_2 LINK_COM_POS_1 LINK_COM_POS_2 LINK_MOI MAX_VEL_1 MAX_VEL_2 " \
    "length_1_squared com_pos_1_squared com_pos_2_squared torque_0 torque_1 torque_2 torque_noise_max book_or_nips"
#define FV_OBS(ARRAY) ARRAY(float, state, 6)
#define FV_ACTION FV_DISCRETE
#define FV_OPTION_NAMES "low high"
#define FV_OPTION_DEFAULTS {-0.1, 0.1}
#define FV_LONG_STEP 1
#define FV_SQUARES 12
#define FV_LANES_PER_THREAD 2048 /* at some 100 ns a lane */
#define FV_DRAWS_IF(params) ((params)->torque_noise_max > 0)
#include "../lane.h"

typedef struct {
    real theta1, theta2;         /* the first link from hanging down, the second from the first: rad */
    real theta1_dot, theta2_dot; /* rad/s */
    real is_float32;             /* 1: the state of a new episode */
} FV(state);

typedef struct {
    real dt;
    real length_1, mass_1, mass_2, com_pos_1, com_pos_2, moi; /* m, kg, kg m^2 */
    real max_vel_1, max_vel_2;
    real length_1_squared, com_pos_1_squared, com_pos_2_squared; /* by Python's pow, as they do not change */
    real torques[3];
    real torque_noise_max;
    real is_nips; /* 0: the equations of Sutton and Barto's book; 1: those of the paper */
} FV(params);

/* The four numbers of a state, and their changes a second. */
typedef struct { double at[4]; } FV(vector);

FV_INLINE FV(vector) FV(derivative)(FV(vector) y, double torque, const FV(params) *p, fv_lane *lane)
{
    const double g = 9.8, m1 = p->mass_1, m2 = p->mass_2, l1 = p->length_1, lc1 = p->com_pos_1, lc2 = p->com_pos_2;
    const double theta1 = y.at[0], theta2 = y.at[1], theta1_dot = y.at[2], theta2_dot = y.at[3];
    const double cos2 = fv_cos(lane, theta2), sin2 = fv_sin(lane, theta2);

    const double d1 = m1 * p->com_pos_1_squared
        + m2 * (p->length_1_squared + p->com_pos_2_squared + 2 * l1 * lc2 * cos2) + p->moi + p->moi;
    const double d2 = m2 * (p->com_pos_2_squared + l1 * lc2 * cos2) + p->moi;
    const double phi2 = m2 * lc2 * g * fv_cos(lane, theta1 + theta2 - FV_PI / 2);
    const double phi1 = -m2 * l1 * lc2 * fv_square_pow(lane, theta2_dot) * sin2
        - 2 * m2 * l1 * lc2 * theta2_dot * theta1_dot * sin2
        + (m1 * lc1 + m2 * l1) * g * fv_cos(lane, theta1 - FV_PI / 2) + phi2;

    const double swing = m2 * l1 * lc2 * fv_square_pow(lane, theta1_dot) * sin2;
    double force = torque + d2 / d1 * phi1;
    force = p->is_nips != 0 ? force : force - swing;
    const double acc2 = (force - phi2) / (m2 * p->com_pos_2_squared + p->moi - fv_square_pow(lane, d2) / d1);
    const double acc1 = -(d2 * acc2 + phi1) / d1;
    return (FV(vector)){{theta1_dot, theta2_dot, acc1, acc2}};
}

/* y + scale * k. */
FV_INLINE FV(vector) FV(along)(FV(vector) y, double scale, FV(vector) k)
{
    FV_UNROLL
    for (int i = 0; i < 4; i++)
        y.at[i] += scale * k.at[i];
    return y;
}

/* An angle within +-pi. As Gymnasium does it, turn by turn, for every turn rounds; a lane beside others takes a few turns at
 * most. From this bound on Gymnasium would take minutes, or never come back: then the angle stays. */
FV_INLINE double FV(wrap)(double angle, fv_lane *lane)
{
    const double turn = 2 * FV_PI;
    if (lane->alone && fabs(angle) < 1e9) {
        while (angle > FV_PI)
            angle -= turn;
        while (angle < -FV_PI)
            angle += turn;
        return angle;
    }
    FV_UNROLL
    for (int i = 0; i < 2; i++) {
        angle = angle > FV_PI ? angle - turn : angle;
        angle = angle < -FV_PI ? angle + turn : angle;
    }
    lane->outside |= fv_bits(FV_PI - fabs(angle));
    return angle;
}

FV_INLINE double FV(bound)(double speed, double most)
{
    speed = -most > speed ? -most : speed;
    return most < speed ? most : speed;
}

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    const double low = lane->options[0], high = lane->options[1];
    s->theta1 = (float)fv_uniform(lane, low, high);
    s->theta2 = (float)fv_uniform(lane, low, high);
    s->theta1_dot = (float)fv_uniform(lane, low, high);
    s->theta2_dot = (float)fv_uniform(lane, low, high);
    s->is_float32 = 1;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    double torque = action < 1 ? p->torques[0] : p->torques[1];
    torque = action > 1 ? p->torques[2] : torque; /* clang would make a switch of comparisons with ==, and no vectors */
    if (lane->alone && p->torque_noise_max > 0)
        torque += fv_uniform(lane, -p->torque_noise_max, p->torque_noise_max);

    const FV(vector) y = {{s->theta1, s->theta2, s->theta1_dot, s->theta2_dot}};
    const double half = p->dt / 2.0;
    const FV(vector) k1 = FV(derivative)(y, torque, p, lane);
    const FV(vector) k2 = FV(derivative)(FV(along)(y, half, k1), torque, p, lane);
    const FV(vector) k3 = FV(derivative)(FV(along)(y, half, k2), torque, p, lane);
    const FV(vector) k4 = FV(derivative)(FV(along)(y, p->dt, k3), torque, p, lane);
    FV(vector) k;
    FV_UNROLL
    for (int i = 0; i < 4; i++)
        k.at[i] = k1.at[i] + 2 * k2.at[i] + 2 * k3.at[i] + k4.at[i];
    const FV(vector) next = FV(along)(y, p->dt / 6.0, k);

    s->theta1 = FV(wrap)(next.at[0], lane);
    s->theta2 = FV(wrap)(next.at[1], lane);
    s->theta1_dot = FV(bound)(next.at[2], p->max_vel_1);
    s->theta2_dot = FV(bound)(next.at[3], p->max_vel_2);
    s->is_float32 = 0;
    const int up = -fv_cos(lane, s->theta1) - fv_cos(lane, s->theta2 + s->theta1) > 1.0;
    return (fv_outcome){.reward = up ? 0.0 : -1.0, .terminated = up};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p;
    if (s->is_float32 != 0) {
        const float theta1 = (float)s->theta1, theta2 = (float)s->theta2;
        obs->state[0] = fv_numpy_cosf(theta1);
        obs->state[1] = fv_numpy_sinf(theta1);
        obs->state[2] = fv_numpy_cosf(theta2);
        obs->state[3] = fv_numpy_sinf(theta2);
    } else {
        obs->state[0] = (float)fv_cos(lane, s->theta1);
        obs->state[1] = (float)fv_sin(lane, s->theta1);
        obs->state[2] = (float)fv_cos(lane, s->theta2);
        obs->state[3] = (float)fv_sin(lane, s->theta2);
    }
    obs->state[4] = (float)s->theta1_dot;
    obs->state[5] = (float)s->theta2_dot;
}

#include "../kernel.h"
