/* The words an env file may use: draws, sin and cos, squares, remainders, the outcome of a step; see numpymath.h for more.
 *
 * An env file first names what it is (FV_NAME, FV_OBS, ...), includes this header, writes the scalar functions of
 * one lane and includes kernel.h. See envs/counter.h for the shortest example. The first part below is the
 * same for all env files; the second is made anew for each, and so has no include guard. */
#ifndef FV_LANE_H
#define FV_LANE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "fastvec.h"
#include "numpymath.h"
#include "sincos32.h"
#include "vecmath.h"

#if !defined(__GNUC__) && !defined(__clang__)
#error "fastvec needs gcc or clang"
#endif

/* The promise that lanes do not depend on each other: columns and outputs of a batch never overlap. */
#if defined(__clang__)
#define FV_LANES _Pragma("clang loop vectorize(assume_safety)")
#define FV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FV_LANES _Pragma("GCC ivdep")
#define FV_UNROLL _Pragma("GCC unroll 64")
#endif

#define FV_PI 3.141592653589793 /* Python's math.pi */

#define FV_JOIN4_(a, b, c, d) a##b##c##d
#define FV_JOIN4(a, b, c, d) FV_JOIN4_(a, b, c, d)
#define FV_TEXT_(x) #x
#define FV_TEXT(x) FV_TEXT_(x)

#define FV_DTYPE_OF_double FV_FLOAT64
#define FV_DTYPE_OF_float FV_FLOAT32
#define FV_DTYPE_OF_int64_t FV_INT64
#define FV_DTYPE_OF_int32_t FV_INT32
#define FV_DTYPE_OF_int8_t FV_INT8
#define FV_DTYPE_OF_uint8_t FV_UINT8
#define FV_DTYPE_(type) FV_DTYPE_OF_##type
#define FV_DTYPE(type) FV_DTYPE_(type)

/* What a step says besides the new state. */
typedef struct fv_outcome {
    double reward;
    int terminated;
} fv_outcome;

/* What a lane may use besides its own state. A kernel that uses none of it pays for none of it. */
typedef struct fv_lane {
    fv_rng rng;
    const double *options;     /* reset only: the numbers of FV_OPTIONS */
    const void *const *tables;
    const int64_t *table_sizes;
    int float32_action;        /* a constant 0 or 1: whether the action came as float32 */
    int python_action;         /* whether it came as a number of Python's; float32_action is 0 then */
    int alone;                 /* a constant 0 or 1: whether no lanes are stepped beside this one, so that it may branch */
    int64_t libm;              /* alone: negative if the C library is to be asked for every exact sine and the like */
    int64_t outside;           /* else: negative once vecmath.h had no answer; then kernel.h steps the lane alone */
    int32_t outside32;         /* likewise, of sincos32.h: as wide as a float, so that loops need no wider vectors */
    int64_t doubt;             /* else: negative once it was in doubt whether a square is pow's */
    double *doubtful;          /* else: room for the numbers of such squares, 0 where there is no doubt; FV_BLOCK apart */
    int num_squares, most_squares; /* else: constants: the places of that room taken so far, and all that there are */
} fv_lane;

enum { FV_BLOCK = 256 }; /* lanes that the step loop does before their flags are looked at */

/* Draws, in the order and with the bits of numpy.random.Generator's methods of these names. */
FV_INLINE double fv_random(fv_lane *lane) { return fv_rng_double(&lane->rng); }
FV_INLINE double fv_uniform(fv_lane *lane, double low, double high)
{
    return low + (high - low) * fv_rng_double(&lane->rng);
}
FV_INLINE int64_t fv_integers(fv_lane *lane, uint32_t n) { return fv_rng_below(&lane->rng, n); }

/* sin(x), cos(x) and pow(x, 2) for every x: fv_sin(lane, x), fv_sin_small(lane, x), fv_square_pow(lane, x) and so on.
 * The small ones are for angles that seldom get beyond 0.78: they take half the time below, and ten times as much beyond.
 *
 * In the exact build they have the C library's bits. (fv_square_powf has those of powf, for what is float32 in
 * Gymnasium's env.) In the float32 build they take and give float, by sincos32.h; a square is x * x. */
#define fv_sin(lane, x) FV_OF_REAL_(fv_sin)(lane, x)
#define fv_cos(lane, x) FV_OF_REAL_(fv_cos)(lane, x)
#define fv_sin_small(lane, x) FV_OF_REAL_(fv_sin_small)(lane, x)
#define fv_cos_small(lane, x) FV_OF_REAL_(fv_cos_small)(lane, x)
#define fv_square_pow(lane, x) FV_OF_REAL_(fv_square_pow)(lane, x)
#define fv_square_powf(lane, x) FV_OF_REAL_(fv_square_powf)(lane, x)
/* numpy.clip(x, low, high). */
#define fv_clip(x, low, high) _Generic((real)0, float: fv_clipf, double: fv_clip)(x, low, high)
#define FV_OF_REAL_(word) _Generic((real)0, float: word##_float32, double: word##_exact)

#if FV_VECMATH
#define FV_EXACT_(type, word, libm_call, vector_call) \
    static __attribute__((noinline, unused)) type word##_alone(type x, int64_t outside) \
    { \
        type result = 0; \
        if (outside >= 0) \
            result = vector_call(x, &outside); \
        return outside < 0 ? libm_call : result; \
    } \
    FV_INLINE type word##_exact(fv_lane *lane, type x) \
    { \
        return lane->alone ? word##_alone(x, lane->libm) : vector_call(x, &lane->outside); \
    }
#else
#define FV_EXACT_(type, word, libm_call, vector_call) \
    FV_INLINE type word##_exact(fv_lane *lane, type x) { (void)lane; return libm_call; }
#endif
FV_EXACT_(double, fv_sin, sin(x), fv_vec_sin)
FV_EXACT_(double, fv_cos, cos(x), fv_vec_cos)
FV_EXACT_(double, fv_sin_small, sin(x), fv_vec_sin_small)
FV_EXACT_(double, fv_cos_small, cos(x), fv_vec_cos_small)
FV_EXACT_(float, fv_square_powf, fv_libm_squaref(x), fv_vec_squaref)
FV_EXACT_(double, fv_square_pow_or_outside, fv_libm_square(x), fv_vec_square)
#undef FV_EXACT_

/* One square in 25 is in doubt, but only one in a thousand is not pow's. So the lane goes on with it, and leaves the
 * number for kernel.h to ask pow about when the loop is done. Its place must be known to the compiler: no square may
 * hang on a condition. */
FV_INLINE double fv_square_pow_exact(fv_lane *lane, double x)
{
    if (!FV_VECMATH || lane->alone || lane->num_squares == lane->most_squares)
        return fv_square_pow_or_outside_exact(lane, x);
    int64_t doubt = 0;
    const double square = fv_vec_square(x, &doubt);
    lane->doubt |= doubt;
    lane->doubtful[lane->num_squares++ * FV_BLOCK] = doubt < 0 ? x : 0.0;
    return square;
}

/* Alone, a lane goes from the small function to the reduced one, and from there to libm in double, which rounded to
 * float has the same bits on every machine. */
#define FV_FLOAT32_(word, libm_call) \
    FV_INLINE float word##_float32(fv_lane *lane, float x) \
    { \
        if (!lane->alone) \
            return word##32(x, &lane->outside32); \
        int32_t outside = 0; \
        const float result = word##32(x, &outside); \
        return outside < 0 ? libm_call : result; \
    }
FV_FLOAT32_(fv_sin, (float)sin((double)x))
FV_FLOAT32_(fv_cos, (float)cos((double)x))
FV_FLOAT32_(fv_sin_small, fv_sin_float32(lane, x))
FV_FLOAT32_(fv_cos_small, fv_cos_float32(lane, x))
#undef FV_FLOAT32_
FV_INLINE float fv_square_pow_float32(fv_lane *lane, float x) { (void)lane; return x * x; }
FV_INLINE float fv_square_powf_float32(fv_lane *lane, float x) { (void)lane; return x * x; }

/* x % divisor as in Python, for divisor > 0. */
FV_INLINE double fv_floor_mod(fv_lane *lane, double x, double divisor)
{
    return lane->alone || !FV_VECMATH ? fv_scalar_floor_mod(x, divisor) : fv_vec_floor_mod(x, divisor, &lane->outside);
}

#endif /* FV_LANE_H */

#ifndef FV_NAME
#error "an env file defines FV_NAME before it includes lane.h"
#endif
#ifndef FV_OBS
#error "an env file defines FV_OBS(ARRAY) before it includes lane.h: ARRAY(type, name, width) for each observation array"
#endif
#ifndef FV_INFO
#define FV_INFO(ARRAY)
#define FV_NO_INFO_
#endif

/* FV(step) is cartpole_float64_step and so on: an env file is compiled once for each scalar type. */
#define FV(word) FV_JOIN4(FV_NAME, _, FV_REAL_NAME, _##word)

#define FV_FIELD_(type, name, width) type name[width];
typedef struct { FV_OBS(FV_FIELD_) } FV(obs);
#ifdef FV_NO_INFO_
typedef struct { char unused; } FV(info);
#else
typedef struct { FV_INFO(FV_FIELD_) } FV(info);
#endif
#undef FV_FIELD_
