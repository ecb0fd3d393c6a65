/* All envs for the compiler's default target. */
#define real double
#define FV_REAL_NAME float64
#include "../envs/all.h"

#define FV_ENTRY_(name) &name##_float64_kernel,
const fv_kernel *const fv_kernels_baseline[] = {FV_ENVS(FV_ENTRY_) NULL};
