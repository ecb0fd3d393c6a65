/* Parts of a CartPole step by themselves, each over lanes in columns as the kernel has them: for roofline.py. */
#include <stdint.h>

#include "vecmath.h"

/* The sine and the cosine of every angle. */
void sines(const double *restrict angle, double *restrict sine, double *restrict cosine, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t outside = 0;
        sine[i] = fv_vec_sin_small(angle[i], &outside);
        cosine[i] = fv_vec_cos_small(angle[i], &outside);
    }
}

/* Both again, of angles of any size. */
void any_sines(const double *restrict angle, double *restrict sine, double *restrict cosine, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t outside = 0;
        fv_vec_sincos(angle[i], &sine[i], &cosine[i], &outside);
    }
}

/* A square as pow has it. */
void squares(const double *restrict x, double *restrict square, double *restrict doubt, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t outside = 0;
        square[i] = fv_vec_square(x[i], &outside);
        doubt[i] = outside < 0 ? x[i] : 0.0;
    }
}

/* The four divisions of a step. */
void divisions(const double *restrict a, const double *restrict b, double *restrict theta_acc, double *restrict x_acc,
               int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        theta_acc[i] = a[i] / 1.1 / (1.3 - b[i] / 1.1);
        x_acc[i] = theta_acc[i] / 1.1;
    }
}

/* What a step reads and writes, with next to no arithmetic: state, action, observation, reward, flags. */
void memory(double *const *state, const int64_t *action, float *obs, double *reward, uint8_t *terminated,
            uint8_t *truncated, int64_t n)
{
    double *const x = state[0], *const x_dot = state[1], *const theta = state[2], *const theta_dot = state[3];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
        x[i] += action[i] == 1 ? 1e-9 : -1e-9;
        x_dot[i] += 1e-9;
        theta[i] += 1e-9;
        theta_dot[i] += 1e-9;
        obs[4 * i] = (float)x[i];
        obs[4 * i + 1] = (float)x_dot[i];
        obs[4 * i + 2] = (float)theta[i];
        obs[4 * i + 3] = (float)theta_dot[i];
        reward[i] = 1.0;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
        terminated[i] = x[i] > 1.0;
        truncated[i] = 0;
    }
}
