/* Which compilations of the envs there are, and which of them this CPU runs. */
#include "dispatch.h"

#include <string.h>

extern const fv_kernel *const fv_kernels_baseline[];
int fv_check_vecmath_baseline(fv_difference *);
extern void (*const fv_gae_baseline[])(const fv_rollout *);
static int always(void) { return 1; }

#if defined(__x86_64__)
extern const fv_kernel *const fv_kernels_avx2[], *const fv_kernels_avx512[];
int fv_check_vecmath_avx2(fv_difference *), fv_check_vecmath_avx512(fv_difference *);
extern void (*const fv_gae_avx2[])(const fv_rollout *), (*const fv_gae_avx512[])(const fv_rollout *);
/* Features by name: a "level" also asks for what the kernels do not use. */
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

static const struct {
    const char *name;
    int (*runs_here)(void);
    const fv_kernel *const *kernels;
    int (*check)(fv_difference *);
    void (*const *gae)(const fv_rollout *); /* by fv_dtype */
} targets[] = {
#if defined(__x86_64__)
    {"avx512", has_avx512, fv_kernels_avx512, fv_check_vecmath_avx512, fv_gae_avx512},
    {"avx2", has_avx2, fv_kernels_avx2, fv_check_vecmath_avx2, fv_gae_avx2},
#endif
    {"baseline", always, fv_kernels_baseline, fv_check_vecmath_baseline, fv_gae_baseline},
};

enum { NUM_TARGETS = sizeof(targets) / sizeof(targets[0]) };

const char *fv_target_name(int index)
{
    return index < NUM_TARGETS ? targets[index].name : NULL;
}

int fv_target_runs_here(int index)
{
    return targets[index].runs_here();
}

int fv_target_matches_libm(int index, fv_difference *first)
{
    return targets[index].check(first);
}

const fv_kernel *fv_find_kernel(int target, const char *name, fv_dtype real)
{
    for (const fv_kernel *const *kernel = targets[target].kernels; *kernel != NULL; kernel++)
        if (strcmp((*kernel)->name, name) == 0 && (*kernel)->real_dtype == real)
            return *kernel;
    return NULL;
}

void fv_gae(int target, fv_dtype real, const fv_rollout *rollout)
{
    targets[target].gae[real](rollout);
}
