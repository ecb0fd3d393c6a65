/* NumPy's random streams, one generator a lane.
 *
 * PCG64(SeedSequence(seed)) and the draws that Gymnasium's environments make from it, bit for bit as
 * numpy.random.Generator gives them. Lane i of a batch owns generator i and nothing else draws from it.
 *
 * Sources: O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
 * Number Generation" (2014), variant XSL-RR 128/64; NumPy's SeedSequence (after O'Neill's seed_seq design);
 * Lemire, "Fast Random Integer Generation in an Interval" (2019). */
#ifndef FV_RNG_H
#define FV_RNG_H

#include <stdint.h>

/* One generator. A batch keeps an array of these, not five columns: a reset touches few lanes, and so
 * costs one or two cache lines for each instead of five. */
typedef struct fv_rng {
    uint64_t state_hi, state_lo;
    uint64_t inc_hi, inc_lo;
    uint32_t half;      /* the upper half of the last 64-bit word that a 32-bit draw left over */
    uint32_t has_half;  /* 1 while `half` is still to be handed out */
} fv_rng;

__extension__ typedef unsigned __int128 fv_u128;

#define FV_PCG_MULTIPLIER (((fv_u128)0x2360ED051FC65DA4ULL << 64) | 0x4385DF649FCCF645ULL)

static inline uint64_t fv_rng_next64(fv_rng *r)
{
    const fv_u128 inc = ((fv_u128)r->inc_hi << 64) | r->inc_lo;
    fv_u128 state = ((fv_u128)r->state_hi << 64) | r->state_lo;
    state = state * FV_PCG_MULTIPLIER + inc;
    r->state_hi = (uint64_t)(state >> 64);
    r->state_lo = (uint64_t)state;
    const uint64_t folded = r->state_hi ^ r->state_lo;
    const unsigned turn = (unsigned)(r->state_hi >> 58);
    return (folded >> turn) | (folded << ((64 - turn) & 63));
}

/* The 32-bit stream hands out the low half of a word first and keeps the high half for the next call;
 * 64-bit draws pass it by and leave it in place. */
static inline uint32_t fv_rng_next32(fv_rng *r)
{
    if (r->has_half) {
        r->has_half = 0;
        return r->half;
    }
    const uint64_t word = fv_rng_next64(r);
    r->half = (uint32_t)(word >> 32);
    r->has_half = 1;
    return (uint32_t)word;
}

/* Generator.random(): [0, 1) in steps of 2**-53. */
static inline double fv_rng_double(fv_rng *r)
{
    return (double)(int64_t)(fv_rng_next64(r) >> 11) * 0x1p-53;
}

/* Generator.integers(0, n) and Generator.choice(n) for 0 < n < 2**32: Lemire's method, and no draw for n = 1. */
static inline uint32_t fv_rng_below(fv_rng *r, uint32_t n)
{
    if (n <= 1)
        return 0;
    uint64_t product = (uint64_t)fv_rng_next32(r) * n;
    if ((uint32_t)product < n) {
        const uint32_t threshold = (0u - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)fv_rng_next32(r) * n;
    }
    return (uint32_t)(product >> 32);
}

static inline uint32_t fv_seed_hash(uint32_t v, uint32_t *constant, uint32_t multiplier)
{
    v ^= *constant;
    *constant *= multiplier;
    v *= *constant;
    return v ^ (v >> 16);
}

static inline uint32_t fv_seed_mix(uint32_t x, uint32_t y)
{
    const uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
    return r ^ (r >> 16);
}

/* Seeds one generator from an integer given as little-endian 32-bit words (count >= 1, as many as it takes). */
static inline void fv_rng_seed(fv_rng *r, const uint32_t *words, int64_t count)
{
    enum { POOL = 4 };
    uint32_t pool[POOL];
    uint32_t constant = 0x43b0d7e5u;
    for (int i = 0; i < POOL; i++)
        pool[i] = fv_seed_hash(i < count ? words[i] : 0, &constant, 0x931e8875u);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] = fv_seed_mix(pool[to], fv_seed_hash(pool[from], &constant, 0x931e8875u));
    for (int64_t from = POOL; from < count; from++)
        for (int to = 0; to < POOL; to++)
            pool[to] = fv_seed_mix(pool[to], fv_seed_hash(words[from], &constant, 0x931e8875u));

    uint64_t out[4];
    constant = 0x8b51f9ddu;
    for (int i = 0; i < 4; i++) {
        const uint32_t low = fv_seed_hash(pool[(2 * i) % POOL], &constant, 0x58f38dedu);
        const uint32_t high = fv_seed_hash(pool[(2 * i + 1) % POOL], &constant, 0x58f38dedu);
        out[i] = ((uint64_t)high << 32) | low;
    }

    const fv_u128 inc = (((((fv_u128)out[2]) << 64) | out[3]) << 1) | 1;
    r->inc_hi = (uint64_t)(inc >> 64);
    r->inc_lo = (uint64_t)inc;
    /* The generator starts at zero, takes a step, adds the seed and takes another. */
    fv_u128 state = inc + ((((fv_u128)out[0]) << 64) | out[1]);
    state = state * FV_PCG_MULTIPLIER + inc;
    r->state_hi = (uint64_t)(state >> 64);
    r->state_lo = (uint64_t)state;
    r->half = 0;
    r->has_half = 0;
}

#endif
