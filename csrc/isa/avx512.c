/* All envs for x86-64 CPUs with the AVX-512 of Skylake servers and later, and of AMD's Zen 4 and later. */
#if defined(__x86_64__)
#define FV_TARGET avx512
/* Unless told, compilers fill only half of the registers: their default is from CPUs that slowed down otherwise. */
#if defined(__clang__)
#define FV_INSTRUCTIONS "avx2,fma,bmi,bmi2,lzcnt,popcnt,avx512f,avx512dq,avx512vl,avx512bw"
#else
#define FV_INSTRUCTIONS "avx2,fma,bmi,bmi2,lzcnt,popcnt,avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512"
#endif
#include "target.h"
#else
typedef int fv_not_x86_64; /* a C file may not be empty */
#endif
