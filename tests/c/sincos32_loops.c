/* The functions of sincos32.h, each in a loop over lanes as kernels run them, for tests/test_float32.py.
 * One loop a line: the compiler's vectorisation report is read by line. */
#include "sincos32.h"

#if defined(__clang__)
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

/* `outside` receives one where the result is not to be used. */
#define LOOP(name) \
    void loop_##name(const float *x, float *out, int32_t *outside, int64_t n) \
    { \
        LANES \
        for (int64_t i = 0; i < n; i++) { \
            int32_t is_outside = 0; \
            out[i] = fv_##name##32(x[i], &is_outside); \
            outside[i] = is_outside < 0; \
        } \
    }

LOOP(sin_small)
LOOP(cos_small)
LOOP(sin)
LOOP(cos)
