/* All envs for the compiler's default target: runs on every CPU of the architecture. */
#define FV_TARGET baseline
#include "target.h"
