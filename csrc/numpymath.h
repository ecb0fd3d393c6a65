/* Functions that NumPy computes by itself, with its bits: clip, the remainder of Python's %, sine and cosine of float32.
 *
 * What NumPy leaves to the C library is in vecmath.h. */
#ifndef FV_NUMPYMATH_H
#define FV_NUMPYMATH_H

#include <math.h>
#include <stdint.h>

#include "vecmath.h"

/* numpy.clip(x, low, high). NaN stays NaN, and a zero equal to a bound keeps its sign. */
FV_INLINE double fv_clip(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

FV_INLINE float fv_clipf(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* x % divisor of Python and NumPy, for divisor > 0: the remainder of fmod, which is exact, moved above zero. */
FV_INLINE double fv_scalar_floor_mod(double x, double divisor)
{
    const double rest = fmod(x, divisor);
    return rest < 0 ? rest + divisor : rest + 0.0; /* no negative zero */
}

/* The same without a branch; sets the sign bit of `*outside` where |x / divisor| is not below 2^51, or is NaN.
 *
 * With the right quotient one fused operation rounds as often as the sum above: once. The rounded quotient is at most
 * one too large, and then the remainder's sign, which no rounding changes, tells. */
FV_INLINE double fv_vec_floor_mod(double x, double divisor, int64_t *outside)
{
    const double quotient = floor(x / divisor);
    const double rest = fma(-quotient, divisor, x), rest_of_less = fma(1.0 - quotient, divisor, x);
    *outside |= fv_beyond(quotient, 0x1p51);
    return rest < 0 ? rest_of_less : rest;
}

/* For |x| <= pi/4: polynomials of sine and cosine in float32, every operation fused. */
FV_INLINE float fv_numpy_sine_polynomial(float x)
{
    const float xx = x * x;
    float p = fmaf(0x1.7d3bbcp-19f, xx, -0x1.a06bbap-13f);
    p = fmaf(p, xx, 0x1.11119ap-7f);
    p = fmaf(p, xx, -0x1.555556p-3f);
    return fmaf(p * xx + 0.0f, x, x); /* no negative zero, for a zero to keep its sign */
}

FV_INLINE float fv_numpy_cosine_polynomial(float x)
{
    const float xx = x * x;
    float p = fmaf(0x1.98e616p-16f, xx, -0x1.6c06dcp-10f);
    p = fmaf(p, xx, 0x1.55553cp-5f);
    p = fmaf(p, xx, -0.5f);
    return fmaf(p, xx, 1.0f);
}

/* The sine of x + quarters * pi/2, x less the nearest multiple of pi/2 by three fused steps. */
FV_INLINE float fv_numpy_turned_sine(float x, int32_t quarters)
{
    const float to_integer = 0x1.8p23f;
    const float multiple = fmaf(x, 0x1.45f306p-1f, to_integer) - to_integer;
    float rest = fmaf(multiple, -0x1.921fb0p0f, x);
    rest = fmaf(multiple, -0x1.5110b4p-22f, rest);
    rest = fmaf(multiple, -0x1.846988p-48f, rest);
    const int32_t quadrant = (int32_t)multiple + quarters;
    const float y = quadrant & 1 ? fv_numpy_cosine_polynomial(rest) : fv_numpy_sine_polynomial(rest);
    return quadrant & 2 ? 0.0f - y : y;
}

/* numpy.sin and numpy.cos of a float32, on a CPU with FMA; beyond these limits NumPy asks the C library. */
FV_INLINE float fv_numpy_sinf(float x)
{
    return fabsf(x) <= 117435.992f ? fv_numpy_turned_sine(x, 0) : sinf(x);
}

FV_INLINE float fv_numpy_cosf(float x)
{
    return fabsf(x) <= 71476.0625f ? fv_numpy_turned_sine(x, 1) : cosf(x);
}

#endif
