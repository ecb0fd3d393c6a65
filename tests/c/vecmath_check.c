/* vecmath_check.h with a C library that can be made wrong: off by one bit in some arguments of one function. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static char wrong_function[8];
static double wrong_from, wrong_to;

/* One argument in eight of those in the range. */
static int is_wrong(const char *function, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return strcmp(function, wrong_function) == 0 && fabs(x) >= wrong_from && fabs(x) < wrong_to
        && (bits * 0x9e3779b97f4a7c15u) >> 61 == 0;
}

static double maybe_wrong(const char *function, double x, double right)
{
    return is_wrong(function, x) ? nextafter(right, INFINITY) : right;
}

static double wrong_sin(double x) { return maybe_wrong("sin", x, sin(x)); }
static double wrong_cos(double x) { return maybe_wrong("cos", x, cos(x)); }
static double wrong_pow(double x, double y) { return maybe_wrong("pow", x, pow(x, y)); }
static float wrong_powf(float x, float y)
{
    return is_wrong("powf", (double)x) ? nextafterf(powf(x, y), INFINITY) : powf(x, y);
}

#define sin(x) wrong_sin(x)
#define cos(x) wrong_cos(x)
#define pow(x, y) wrong_pow(x, y)
#define powf(x, y) wrong_powf(x, y)
#include "vecmath_check.h"

void make_wrong(const char *function, double from, double to)
{
    strncpy(wrong_function, function, sizeof wrong_function - 1);
    wrong_from = from;
    wrong_to = to;
}

/* numbers: the argument, vecmath.h's result, libm's. */
int matches_libm(char function[16], double numbers[3])
{
    fv_difference first = {"", 0, 0, 0};
    const int matches = fv_vecmath_matches_libm(&first);
    strncpy(function, first.function, 15);
    numbers[0] = first.x, numbers[1] = first.vecmath, numbers[2] = first.libm;
    return matches;
}
