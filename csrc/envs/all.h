/* The list of envs, compiled once per instruction set and scalar type (so it has no include guard).
 * A new env adds its #include and its name in FV_ENVS; and in FV_FLOAT32_ENVS if it has a float32 mode, for others the
 * #include goes between #ifndef FV_FLOAT32_ONLY and #endif. */
#include "counter.h"
#include "cartpole.h"
#include "mountain_car.h"
#ifndef FV_FLOAT32_ONLY
#include "mountain_car_continuous.h"
#include "pendulum.h"
#include "acrobot.h"
#include "tabular.h"
#include "taxi.h"
#include "blackjack.h"
#endif

#undef FV_ENVS
#undef FV_FLOAT32_ENVS
#define FV_ENVS(ENV) \
    ENV(counter) ENV(cartpole) ENV(mountain_car) ENV(mountain_car_continuous) ENV(pendulum) ENV(acrobot) \
   ENV(tabular) ENV(taxi) ENV(blackjack)
#define FV_FLOAT32_ENVS(ENV) ENV(counter) ENV(cartpole) ENV(mountain_car)
