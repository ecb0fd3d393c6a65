/* Sine and cosine of the float32 mode: polynomials of our own, written so that a loop over lanes vectorises.
 *
 * They consist of multiplications, additions and selections alone, each rounded on its own (-ffp-contract=off), without
 * fma, table or libm. So they vectorise on every instruction set, SSE2 and NEON included, and have the same bits on all
 * of them. Where they end (arguments beyond a limit, infinite or NaN) a function sets the sign bit of `*outside`, and its
 * result is not to be used.
 *
 * Errors, measured over all float32 arguments below the limits (tests/test_float32.py): 0.77 units in the last place
 * for the small sine, 0.99 for the small cosine, 1.54 for the others. The sine of -0.0 is 0.0. */
#ifndef FV_SINCOS32_H
#define FV_SINCOS32_H

#include <math.h>
#include <stdint.h>

#include "vecmath.h"

#define FV_SMALL_LIMIT32 0.78125f
#define FV_REDUCED_LIMIT32 8192.0f

/* Sets the sign bit where |x| >= limit, or x is NaN. */
FV_INLINE int32_t fv_beyond32(float x, float limit)
{
    return fv_bits32(limit) - 1 - fv_bits32(fabsf(x));
}

/* For |r| <= 0.79. The coefficients minimise the greatest relative error of the sine and of the cosine, which then is
 * 0.07 and 0.002 units in the last place: what remains is rounding. They come from tools/fit_sincos32.py. */
FV_INLINE float fv_sine32(float r)
{
    const float rr = r * r;
    float p = -0x1.992f58p-13f;
    p = p * rr + 0x1.1107p-7f;
    p = p * rr + -0x1.555544p-3f;
    return r * rr * p + r;
}

FV_INLINE float fv_cosine32(float r)
{
    const float rr = r * r;
    float p = 0x1.99d8d6p-16f;
    p = p * rr + -0x1.6c0bf2p-10f;
    p = p * rr + 0x1.55554ap-5f;
    return rr * rr * p - 0.5f * rr + 1.0f;
}

FV_INLINE float fv_sin_small32(float x, int32_t *outside)
{
    *outside |= fv_beyond32(x, FV_SMALL_LIMIT32);
    return fv_sine32(x);
}

FV_INLINE float fv_cos_small32(float x, int32_t *outside)
{
    *outside |= fv_beyond32(x, FV_SMALL_LIMIT32);
    return fv_cosine32(x);
}

/* An argument less the nearest multiple of pi/2. */
typedef struct fv_reduced32 {
    float r;
    int32_t quadrant; /* the multiple; only its last two bits count */
} fv_reduced32;

/* Subtracts it in four pieces of pi/2. The first three have 11 bits each: their products with a multiple of up to 13 bits
 * are exact, and so are the first two differences. What the third one loses is added with the fourth. */
FV_INLINE fv_reduced32 fv_reduce32(float x)
{
    const float to_integer = 0x1.8p23f;
    const float shifted = x * 0x1.45f306p-1f + to_integer;
    const float multiple = shifted - to_integer;
    const float y = x - multiple * 0x1.92p0f - multiple * 0x1.fb4p-12f;
    const float third = multiple * 0x1.444p-24f, fourth = multiple * 0x1.68c234p-39f;
    const float less = y - third, lost = (y - less) - third;
    return (fv_reduced32){less + (lost - fourth), fv_bits32(shifted)};
}

/* `odd` in quadrants 1 and 3, else `even`; its sign changed in quadrants 2 and 3. */
FV_INLINE float fv_of_quadrant32(int32_t quadrant, float even, float odd)
{
    const int32_t is_odd = -(quadrant & 1);
    const int32_t bits = (fv_bits32(odd) & is_odd) | (fv_bits32(even) & ~is_odd);
    return fv_from_bits32(bits ^ (int32_t)((uint32_t)quadrant << 30 & 0x80000000u));
}

FV_INLINE float fv_sin32(float x, int32_t *outside)
{
    const fv_reduced32 reduced = fv_reduce32(x);
    *outside |= fv_beyond32(x, FV_REDUCED_LIMIT32);
    return fv_of_quadrant32(reduced.quadrant, fv_sine32(reduced.r), fv_cosine32(reduced.r));
}

FV_INLINE float fv_cos32(float x, int32_t *outside)
{
    const fv_reduced32 reduced = fv_reduce32(x);
    *outside |= fv_beyond32(x, FV_REDUCED_LIMIT32);
    return fv_of_quadrant32(reduced.quadrant + 1, fv_sine32(reduced.r), fv_cosine32(reduced.r));
}

#endif
