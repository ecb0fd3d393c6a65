/* The instruction sets that the envs, and gae, are compiled for. */
#ifndef FV_DISPATCH_H
#define FV_DISPATCH_H

#include "fastvec.h"
#include "gae.h"
#include "vecmath_check.h"

/* The name of compilation `index`, best first; NULL after the last. */
const char *fv_target_name(int index);

/* Whether this CPU has what compilation `index` needs. */
int fv_target_runs_here(int index);

/* Whether compilation `index`, which must run here, computes sines, cosines and squares with the C library's bits;
 * if not, where it first does not. For a batch of its kernels whose `libm` is 1 it does not matter. */
int fv_target_matches_libm(int index, fv_difference *first);

/* The kernel of that name and scalar type in compilation `index`, or NULL. */
const fv_kernel *fv_find_kernel(int target, const char *name, fv_dtype real);

/* Writes a rollout's advantages and returns, in double or float, with compilation `target`, which must run here. The
 * bits are the same with each. */
void fv_gae(int target, fv_dtype real, const fv_rollout *rollout);

#endif
