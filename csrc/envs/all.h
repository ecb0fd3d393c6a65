/* The list of envs, compiled once per instruction set and scalar type (so it has no include guard).
 * A new env adds one #include and its name to FV_ENVS. */
#include "counter.h"
#include "cartpole.h"

#undef FV_ENVS
#define FV_ENVS(ENV) ENV(counter) ENV(cartpole)
