/* Which compilation of the envs runs on this machine. */
#include "engine.h"

#include <string.h>

extern const fv_kernel *const fv_kernels_baseline[];

const fv_kernel *fv_find_kernel(const char *name)
{
    for (const fv_kernel *const *kernel = fv_kernels_baseline; *kernel != NULL; kernel++)
        if (strcmp((*kernel)->name, name) == 0)
            return *kernel;
    return NULL;
}
