/* Sine, cosine and pow(x, 2) with the C library's bits, written so that a loop over lanes vectorises.
 *
 * A kernel that calls libm lane by lane cannot be vectorised. glibc's sin and cos (2.28 and later, on CPUs with
 * FMA) are a table of multiples of 1/128 and two short polynomials; the functions here do the same roundings in
 * the same order, without a branch. Where that ends (huge, infinite and NaN arguments, squares too close to a
 * rounding boundary) a function sets the sign bit of `*outside`, and its result is not to be used: the caller
 * asks libm for that lane. vecmath_check.h compares the functions with libm at run time, since another C library,
 * or CPU, may round elsewhere. The bits need -ffp-contract=off, and a target with FMA. */
#ifndef FV_VECMATH_H
#define FV_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "vecmath_table.h"

/* 1: the target of this compilation has FMA and vectors worth filling. A file that sets the target by pragma says
 * so itself, for clang does not tell the preprocessor of it. */
#ifndef FV_VECMATH
#if defined(__AVX2__) && defined(__FMA__)
#define FV_VECMATH 1
#else
#define FV_VECMATH 0
#endif
#endif

#ifndef FV_INLINE
#define FV_INLINE static inline __attribute__((always_inline, unused))
#endif

FV_INLINE int64_t fv_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FV_INLINE double fv_from_bits(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FV_INLINE int32_t fv_bits32(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FV_INLINE float fv_from_bits32(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define FV_SIGN_BIT INT64_MIN

/* `mask` is all ones or zero. Where a choice hangs on one bit of an integer GCC 12 vectorises no `?:`. */
FV_INLINE double fv_select(int64_t mask, double if_ones, double if_zero)
{
    return fv_from_bits((fv_bits(if_ones) & mask) | (fv_bits(if_zero) & ~mask));
}

/* Where glibc goes from one form to the next: it compares upper halves of bit patterns, so these are exact. */
#define FV_SMALL_LIMIT 0x1.b6p-1            /* 0.85546875: below it the argument needs no reduction */
#define FV_MIDDLE_LIMIT 0x1.368fdp1         /* 2.42626...: below it one subtraction from pi/2 will do */
#define FV_REDUCED_LIMIT 0x1.921fbp26       /* 105414336: below it three pieces of pi/2 are enough */
#define FV_POLYNOMIAL_LIMIT 0.126           /* below it a sine is a polynomial alone */

#define FV_HALF_PI 0x1.921fb54442d18p0
#define FV_HALF_PI_REST 0x1.1a62633145c07p-54

/* Sets the sign bit where |x| >= limit, or x is NaN: integers compare without a mask and without exceptions. */
FV_INLINE int64_t fv_beyond(double x, double limit)
{
    return fv_bits(limit) - 1 - fv_bits(fabs(x));
}

/* An angle of 0 to 0.86 as the nearest multiple k/128 and the rest. */
typedef struct fv_nearest {
    int64_t row; /* where k's numbers begin in the table */
    double rest;
} fv_nearest;

FV_INLINE fv_nearest fv_find_nearest(double angle)
{
    const double big = 0x1.8p45; /* the last place of a sum with it is worth 1/128 */
    const double sum = big + angle;
    return (fv_nearest){(fv_bits(sum) & 0xff) * 4, angle - (sum - big)};
}

/* For |r| <= 1/256: sin(r) = r + r^3 * fv_sine_tail(r^2), cos(r) = 1 - fv_cosine_drop(r^2). */
FV_INLINE double fv_sine_tail(double rr)
{
    return fma(rr, 8.33333214285722277379541354343671e-03, -1.66666666666664880952546298448555e-01);
}

FV_INLINE double fv_cosine_drop(double rr)
{
    const double tail = fma(rr, 1.38888874007937613028114285595617e-03, -4.16666666666664434524222570944589e-02);
    return rr * fma(rr, tail, 4.99999999999999999999950396842453e-01);
}

/* (sin(x) - x) / x^3 for |x| < 0.126. */
FV_INLINE double fv_sine_polynomial(double xx)
{
    double p = fma(-2.5022014848318398e-08, xx, 2.755729806860771e-06);
    p = fma(p, xx, -0.00019841269834414642);
    p = fma(p, xx, 0.0083333333333323288);
    return fma(p, xx, -0.16666666666666666);
}

/* With s = sin(r) and c = 1 - cos(r): the sine of k/128 + r if `main` is where the table has the sine of k/128 and
 * `other` where it has the cosine. Change the two places and the sign of s, and it is the cosine. */
FV_INLINE double fv_sum_of_angles(int64_t main, int64_t other, double s, double c)
{
    const double *const table = fv_sincos_table;
    return table[main] + fma(table[other], s, fma(-table[main], c, fma(s, table[other + 1], table[main + 1])));
}

/* sin(angle + rest), `near` to the angle. `whole` says that there is no rest: then the C library's compiler has
 * left an addition out of each sum, and what remains is fused differently. */
FV_INLINE double fv_sine_of(double angle, double rest, fv_nearest near, int whole)
{
    const double r = near.rest, rr = r * r, cube = r * rr, tail = fv_sine_tail(rr), drop = fv_cosine_drop(rr);
    const double s = whole ? fma(cube, tail, r) : r + fma(cube, tail, rest);
    const double c = whole ? drop : fma(r, rest, drop);
    const double by_table = fv_sum_of_angles(near.row, near.row + 2, s, c);

    const double xx = angle * angle, p = fv_sine_polynomial(xx);
    const double lost = whole ? (p * angle) * xx : fma(fma(p, angle, -0.5 * rest), xx, rest);
    return angle < FV_POLYNOMIAL_LIMIT ? angle + lost : by_table;
}

/* cos(k/128 + r). */
FV_INLINE double fv_cosine_of(int64_t row, double r)
{
    const double rr = r * r;
    const double s = fma(r * rr, fv_sine_tail(rr), r);
    return fv_sum_of_angles(row + 2, row, -s, fv_cosine_drop(rr));
}

/* The sine and the cosine of arguments that stay small, |x| < 0.85546875. */
FV_INLINE double fv_vec_sin_small(double x, int64_t *outside)
{
    const double angle = fabs(x);
    *outside |= fv_beyond(x, FV_SMALL_LIMIT);
    return copysign(fv_sine_of(angle, 0.0, fv_find_nearest(angle), 1), x);
}

FV_INLINE double fv_vec_cos_small(double x, int64_t *outside)
{
    const fv_nearest near = fv_find_nearest(fabs(x));
    *outside |= fv_beyond(x, FV_SMALL_LIMIT);
    return fv_cosine_of(near.row, near.rest);
}

/* An argument less a multiple of pi/2, as a sum of two doubles, a < 0.86 in magnitude. */
typedef struct fv_reduced {
    double a, rest;
    int64_t quadrant; /* the multiple; only its last two bits count */
} fv_reduced;

/* Subtracts the nearest multiple of pi/2 in four pieces; for |x| < FV_REDUCED_LIMIT. */
FV_INLINE fv_reduced fv_reduce(double x)
{
    const double to_integer = 0x1.8p52;
    const double shifted = fma(x, 0x1.45f306dc9c883p-1, to_integer);
    const double multiple = shifted - to_integer;
    const double y = fma(-multiple, -0x1.dde973cp-27, fma(-multiple, 0x1.921fb58p0, x));
    const double third = multiple * -0x1.cb3b398p-55;
    const double less = y - third;
    const double lost = (y - less) - third;
    const double fourth = multiple * -0x1.d747f23e32ed7p-83;
    const double a = less - fourth;
    return (fv_reduced){a, lost + ((less - a) - fourth), fv_bits(shifted)};
}

/* `x` with its sign changed in quadrants 2 and 3. */
FV_INLINE double fv_sign_of_quadrant(double x, int64_t quadrant)
{
    return fv_from_bits(fv_bits(x) ^ ((int64_t)((uint64_t)quadrant << 62) & FV_SIGN_BIT));
}

/* Sine and cosine for |x| < 105414336; who asks for one alone pays for little of the other.
 *
 * One of them is the sine of the reduced argument, the other its cosine. Between the small and the middle limit the
 * C library reduces by a single subtraction, and differently for the two: it rounds pi/2 - |x| + rest to a sum of
 * two doubles for the sine, and takes it unrounded for the cosine. */
FV_INLINE void fv_vec_sincos(double x, double *sin_x, double *cos_x, int64_t *outside)
{
    const double magnitude = fabs(x);
    const int small = magnitude < FV_SMALL_LIMIT, middle = magnitude < FV_MIDDLE_LIMIT;
    const double y = FV_HALF_PI - magnitude, y_rounded = y + FV_HALF_PI_REST;
    const fv_reduced far = fv_reduce(x);
    const double a = small ? x : middle ? y_rounded : far.a;
    const double rest = small ? 0.0 : middle ? (y - y_rounded) + FV_HALF_PI_REST : far.rest;
    const double cosine_a = small ? x : middle ? y : far.a;
    const double cosine_rest = small ? 0.0 : middle ? FV_HALF_PI_REST : far.rest;

    /* The rests are to be added to magnitudes. `a` and `cosine_a` have one sign. */
    const int64_t sign = fv_bits(a) & FV_SIGN_BIT;
    const fv_nearest near = fv_find_nearest(fabs(a)), cosine_near = fv_find_nearest(fabs(cosine_a));
    double sine = fv_sine_of(fabs(a), fv_from_bits(fv_bits(rest) ^ sign), near, small);
    sine = fv_from_bits(fv_bits(sine) ^ sign);
    const double cosine = fv_cosine_of(near.row, cosine_near.rest + fv_from_bits(fv_bits(cosine_rest) ^ sign));

    /* Both read one row of the table, so the few lanes where two would be needed are outside as well. */
    *outside |= fv_beyond(x, FV_REDUCED_LIMIT) | -(near.row ^ cosine_near.row);

    const int64_t sin_quadrant = small ? 0 : middle ? (x < 0 ? 3 : 1) : far.quadrant;
    const int64_t cos_quadrant = small ? 1 : middle ? 0 : far.quadrant + 1;
    const int64_t odd = -(sin_quadrant & 1);
    *sin_x = fv_sign_of_quadrant(fv_select(odd, cosine, sine), sin_quadrant);
    *cos_x = fv_sign_of_quadrant(fv_select(odd, sine, cosine), cos_quadrant);
}

FV_INLINE double fv_vec_sin(double x, int64_t *outside)
{
    double sin_x, cos_x;
    fv_vec_sincos(x, &sin_x, &cos_x, outside);
    return sin_x;
}

FV_INLINE double fv_vec_cos(double x, int64_t *outside)
{
    double sin_x, cos_x;
    fv_vec_sincos(x, &sin_x, &cos_x, outside);
    return cos_x;
}

/* pow(x, 2), which is not always x * x: pow is a little less exact than a product. libm's error is below 0.52 units
 * in the last place for these x, so the two may differ only where the exact square lies within 0.02 of a boundary
 * between two results; about one lane in 25 does, and is outside.
 *
 * That bound is glibc's own for pow, for exponents up to 2^128 either way: the error grows with them. Of powf every
 * argument in this range was tried: no square that differs is farther than 0.0017 from a boundary. Below it the error
 * would be subnormal, and so not exact. */
FV_INLINE double fv_vec_square(double x, int64_t *outside)
{
    const double square = x * x, error = fabs(fma(x, x, -square));
    const double power_of_two = fv_from_bits(fv_bits(square) & 0x7ff0000000000000);
    const int64_t magnitude = fv_bits(fabs(x)), lowest = fv_bits(0x1p-128), highest = fv_bits(0x1p128);
    *outside |= fv_bits(power_of_two * (0.48 * 0x1p-52) - error);
    *outside |= ((magnitude - lowest) & -magnitude) | (highest - magnitude); /* zero is not too low */
    return square;
}

FV_INLINE float fv_vec_squaref(float x, int64_t *outside)
{
    const float square = x * x, error = fabsf(fmaf(x, x, -square));
    const float power_of_two = fv_from_bits32(fv_bits32(square) & 0x7f800000);
    const int32_t magnitude = fv_bits32(fabsf(x)), lowest = fv_bits32(0x1p-50f), highest = fv_bits32(0x1p50f);
    *outside |= fv_bits32(power_of_two * (0.495f * 0x1p-23f) - error);
    *outside |= ((magnitude - lowest) & -magnitude) | (highest - magnitude);
    return square;
}

/* libm's, whatever the compiler is told: it would put x * x for a pow whose exponent it can see. */
FV_INLINE double fv_libm_square(double x)
{
    double two = 2.0;
    __asm__("" : "+m"(two));
    return pow(x, two);
}

FV_INLINE float fv_libm_squaref(float x)
{
    float two = 2.0f;
    __asm__("" : "+m"(two));
    return powf(x, two);
}

#endif
