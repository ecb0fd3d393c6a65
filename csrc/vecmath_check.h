/* Whether vecmath.h, as it was compiled here, gives the C library's bits on this machine: asked once at import.
 *
 * Included by each compilation of the envs. Thousands of fixed arguments take every branch, and lie on
 * both sides of every boundary; glibc without FMA, the C library nearest to the right one, differs in some of them. */
#ifndef FV_VECMATH_CHECK_H
#define FV_VECMATH_CHECK_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vecmath.h"

enum { FV_CHECK_BLOCK = 512, FV_CHECK_BLOCKS = 16 };

/* Where a function differs first. */
typedef struct fv_difference {
    const char *function;
    double x, vecmath, libm;
} fv_difference;

#if FV_VECMATH

/* Block 0 holds boundaries, the numbers beside them and what is special; each other one a range, spread evenly but for
 * irregular last bits, with both signs. */
static void fv_check_arguments(int block, double *x)
{
    static const double boundaries[] = {
        0.0, 0x1p-1074, 0x1p-1022, 0x1p-512, 0x1p-128, 0x1p-60, 0x1p-27, 0x1p-26, 0x1p-8, 0x1p-7, FV_POLYNOMIAL_LIMIT,
        FV_SMALL_LIMIT, FV_HALF_PI / 2, FV_HALF_PI, FV_MIDDLE_LIMIT, 2 * FV_HALF_PI, 3 * FV_HALF_PI, 4 * FV_HALF_PI,
        100 * FV_HALF_PI, 101 * FV_HALF_PI, FV_REDUCED_LIMIT, 0x1p60, 0x1p128, 0x1p512, 0x1p1023, INFINITY, NAN,
    };
    static const double limits[FV_CHECK_BLOCKS] = {
        0.0, 1e-9, FV_POLYNOMIAL_LIMIT, FV_POLYNOMIAL_LIMIT, 0.25, 0.5, FV_SMALL_LIMIT, FV_SMALL_LIMIT, FV_HALF_PI,
        FV_MIDDLE_LIMIT, FV_MIDDLE_LIMIT, 8.0, 32.0, 1e4, 1e7, FV_REDUCED_LIMIT,
    };
    enum { NUM_BOUNDARIES = sizeof(boundaries) / sizeof(boundaries[0]) };
    if (block == 0) {
        for (int i = 0; i < FV_CHECK_BLOCK; i++) {
            /* Six of each boundary, and then the points halfway between rows of the table. */
            const int which = i / 6;
            const int64_t beside = i % 3 - 1;
            double magnitude = which < NUM_BOUNDARIES ? boundaries[which] : (2 * (which - NUM_BOUNDARIES) + 1) / 256.0;
            if (magnitude > 0 && magnitude < INFINITY)
                magnitude = fv_from_bits(fv_bits(magnitude) + beside);
            x[i] = i % 6 < 3 ? magnitude : -magnitude;
        }
        return;
    }
    const double low = limits[block - 1] < limits[block] ? limits[block - 1] : 0.0;
    for (int i = 0; i < FV_CHECK_BLOCK; i++) {
        const uint64_t mixed = (uint64_t)(block * FV_CHECK_BLOCK + i) * 0x9e3779b97f4a7c15u;
        const double part = (double)(mixed >> 11) * 0x1p-53;
        const double magnitude = low + (limits[block] - low) * part;
        x[i] = mixed & 1 ? -magnitude : magnitude;
    }
}

#if defined(__clang__)
#define FV_CHECK_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define FV_CHECK_LANES _Pragma("GCC ivdep")
#endif

/* The functions as kernels run them, in a loop over lanes, beside libm's. Sine and cosine have a loop each, or
 * the compiler would ask libm for both at once, which Python never does. */
#define FV_CHECKS(CHECK) \
    CHECK(sin_small, double, fv_vec_sin_small, sin) \
    CHECK(cos_small, double, fv_vec_cos_small, cos) \
    CHECK(sin, double, fv_vec_sin, sin) \
    CHECK(cos, double, fv_vec_cos, cos) \
    CHECK(square, double, fv_vec_square, fv_libm_square) \
    CHECK(squaref, float, fv_vec_squaref, fv_libm_squaref)

#define FV_CHECK_(name, type, vector_function, libm_function) \
    static int fv_check_##name(const double *x, fv_difference *first) \
    { \
        type ours[FV_CHECK_BLOCK]; \
        int64_t outside[FV_CHECK_BLOCK]; \
        FV_CHECK_LANES \
        for (int i = 0; i < FV_CHECK_BLOCK; i++) { \
            int64_t is_outside = 0; \
            ours[i] = vector_function((type)x[i], &is_outside); \
            outside[i] = is_outside; \
        } \
        for (int i = 0; i < FV_CHECK_BLOCK; i++) { \
            const type theirs = libm_function((type)x[i]); \
            if (outside[i] >= 0 && memcmp(&ours[i], &theirs, sizeof theirs) != 0) { \
                *first = (fv_difference){#name, (type)x[i], ours[i], theirs}; \
                return 0; \
            } \
        } \
        return 1; \
    }
FV_CHECKS(FV_CHECK_)
#undef FV_CHECK_

/* Returns 1, or 0 and the first difference. Takes some tenths of a millisecond. */
static __attribute__((unused)) int fv_vecmath_matches_libm(fv_difference *first)
{
    static int (*const checks[])(const double *, fv_difference *) = {
#define FV_CHECK_NAME_(name, type, vector_function, libm_function) fv_check_##name,
        FV_CHECKS(FV_CHECK_NAME_)
#undef FV_CHECK_NAME_
    };
    for (int block = 0; block < FV_CHECK_BLOCKS; block++) {
        double x[FV_CHECK_BLOCK];
        fv_check_arguments(block, x);
        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
            if (!checks[i](x, first))
                return 0;
    }
    return 1;
}
#undef FV_CHECKS
#undef FV_CHECK_LANES

#else

/* This compilation calls libm itself. */
static __attribute__((unused)) int fv_vecmath_matches_libm(fv_difference *first)
{
    (void)first;
    return 1;
}

#endif
#endif
