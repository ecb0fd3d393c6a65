/* The instruction sets that the envs are compiled for. */
#ifndef FV_DISPATCH_H
#define FV_DISPATCH_H

#include "fastvec.h"

/* The name of compilation `index`, best first; NULL after the last. */
const char *fv_target_name(int index);

/* Whether this CPU has what compilation `index` needs. */
int fv_target_runs_here(int index);

/* The kernel of that name and scalar type in compilation `index`, or NULL. */
const fv_kernel *fv_find_kernel(int target, const char *name, fv_dtype real);

#endif
