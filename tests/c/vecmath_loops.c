/* The functions of vecmath.h, each in a loop over lanes as kernels run them, for tests/test_vecmath.py.
 * One loop a line: the compiler's vectorisation report is read by line. */
#include "vecmath.h"

#if defined(__clang__)
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

/* `outside` receives one where the result is not to be used. */
#define LOOP(type, name) \
    void loop_##name(const type *x, type *out, int64_t *outside, int64_t n) \
    { \
        LANES \
        for (int64_t i = 0; i < n; i++) { \
            int64_t is_outside = 0; \
            out[i] = fv_vec_##name(x[i], &is_outside); \
            outside[i] = is_outside < 0; \
        } \
    }

LOOP(double, sin_small)
LOOP(double, cos_small)
LOOP(double, sin)
LOOP(double, cos)
LOOP(double, square)
LOOP(float, squaref)
