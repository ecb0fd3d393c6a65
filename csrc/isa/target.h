/* All envs, and gae, for one instruction set, in every scalar type they allow. Included once by each isa/<target>.c, which names
 * itself in FV_TARGET and, if it is not the compiler's default, its instructions in FV_INSTRUCTIONS. */
#ifndef FV_INSTRUCTIONS
#define FV_VECMATH 0 /* what the compiler's default target has is for no one to know */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call the C library are not vectorised, as is well known */
#endif
#else
#define FV_VECMATH 1
#define FV_PRAGMA_(...) _Pragma(#__VA_ARGS__)
#define FV_PRAGMA(...) FV_PRAGMA_(__VA_ARGS__)
/* clang accepts gcc's pragma and does nothing. */
#if defined(__clang__)
FV_PRAGMA(clang attribute push(__attribute__((target(FV_INSTRUCTIONS))), apply_to = function))
#else
FV_PRAGMA(GCC target(FV_INSTRUCTIONS))
#endif
#endif

#include "../vecmath_check.h"

#define real double
#define FV_REAL_NAME float64
#include "../envs/all.h"
#include "../gae_loop.h"
#undef real
#undef FV_REAL_NAME

#define real float
#define FV_REAL_NAME float32
#define FV_FLOAT32_ONLY /* all.h then leaves out the envs that need double */
#include "../envs/all.h"
#include "../gae_loop.h"
#undef real
#undef FV_REAL_NAME

#define FV_FLOAT64_ENTRY_(name) &name##_float64_kernel,
#define FV_FLOAT32_ENTRY_(name) &name##_float32_kernel,
#define FV_KERNELS_(target) fv_kernels_##target
#define FV_KERNELS(target) FV_KERNELS_(target)

extern const fv_kernel *const FV_KERNELS(FV_TARGET)[];
const fv_kernel *const FV_KERNELS(FV_TARGET)[] = {
    FV_ENVS(FV_FLOAT64_ENTRY_) FV_FLOAT32_ENVS(FV_FLOAT32_ENTRY_) NULL,
};

#define FV_CHECK_NAME_(target) fv_check_vecmath_##target
#define FV_CHECK_NAME(target) FV_CHECK_NAME_(target)
int FV_CHECK_NAME(FV_TARGET)(fv_difference *first);
int FV_CHECK_NAME(FV_TARGET)(fv_difference *first)
{
    return fv_vecmath_matches_libm(first);
}

#define FV_GAE_NAME_(target) fv_gae_##target
#define FV_GAE_NAME(target) FV_GAE_NAME_(target)
extern void (*const FV_GAE_NAME(FV_TARGET)[])(const fv_rollout *);
void (*const FV_GAE_NAME(FV_TARGET)[])(const fv_rollout *) = {[FV_FLOAT64] = gae_float64, [FV_FLOAT32] = gae_float32};

#if defined(FV_INSTRUCTIONS) && defined(__clang__)
#pragma clang attribute pop
#endif
