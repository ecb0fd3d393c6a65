/* The C library's own functions over arrays: what vecmath.h has to equal. A file of its own, compiled for the default
 * target, so that nothing of vecmath.h is in it. The exponent is an argument: a compiler that sees a 2 multiplies. */
#include <math.h>
#include <stdint.h>

#define LOOP(type, name, call) \
    void libm_##name(const type *x, type *out, int64_t n, type exponent) \
    { \
        (void)exponent; \
        for (int64_t i = 0; i < n; i++) \
            out[i] = call; \
    }

LOOP(double, sin, sin(x[i]))
LOOP(double, cos, cos(x[i]))
LOOP(double, pow, pow(x[i], exponent))
LOOP(float, powf, powf(x[i], exponent))
