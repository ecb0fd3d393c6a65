/* All envs for x86-64 CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#define FV_TARGET avx2
#define FV_INSTRUCTIONS "avx2,fma,bmi,bmi2,lzcnt,popcnt"
#include "target.h"
#else
typedef int fv_not_x86_64; /* a C file may not be empty */
#endif
