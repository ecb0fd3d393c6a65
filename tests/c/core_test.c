/* The C core's own test program, without Python: streams, kernels, engine, checks.
 *
 *   tests/c/build.sh core_test && ./core_test tests/known_answers/streams.txt
 *
 * Every array that the core may touch is a block of its own of the exact size, so that the address sanitizer sees a
 * write beside it. Exits with 1 if anything differs from what it should be. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "engine.h"

#define PI 3.141592653589793

/* The tables of all compilations, whether this CPU runs them or not: to be looked at, not called. */
extern const fv_kernel *const fv_kernels_baseline[];
#if defined(__x86_64__)
extern const fv_kernel *const fv_kernels_avx2[], *const fv_kernels_avx512[];
static const fv_kernel *const *const compilations[] = {fv_kernels_baseline, fv_kernels_avx2, fv_kernels_avx512};
#else
static const fv_kernel *const *const compilations[] = {fv_kernels_baseline};
#endif
enum { NUM_COMPILATIONS = sizeof compilations / sizeof *compilations };

/* What the tests take their kernels from: all of them are run for every compilation that this CPU runs, and those
 * that need no particular numbers for every scalar type. */
static int target;
static fv_dtype real_dtype;

static const fv_kernel *get_kernel(const char *name)
{
    const fv_kernel *kernel = fv_find_kernel(target, name, real_dtype);
    if (kernel == NULL) {
        fprintf(stderr, "no kernel %s in %s\n", name, fv_target_name(target));
        exit(1);
    }
    return kernel;
}

static int failures;
static const char *running;

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            if (failures++ < 10) { \
                fprintf(stderr, "%s:%d: %s: not so: %s: ", __FILE__, __LINE__, running, #condition); \
                fprintf(stderr, __VA_ARGS__); \
                fputc('\n', stderr); \
            } \
        } \
    } while (0)

static void *new_block(size_t size)
{
    void *block = malloc(size ? size : 1);
    if (block == NULL)
        abort();
    memset(block, 0xA5, size); /* a value that no test expects */
    return block;
}

static int64_t count_names(const char *names)
{
    int64_t count = 0;
    for (const char *at = names; *at; at++)
        count += *at != ' ' && (at == names || at[-1] == ' ');
    return count;
}

static int64_t find_name(const char *names, const char *name)
{
    const size_t length = strlen(name);
    int64_t index = 0;
    for (const char *at = names; *at; index++) {
        const size_t this = strcspn(at, " ");
        if (this == length && memcmp(at, name, length) == 0)
            return index;
        at += this + (at[this] == ' ');
    }
    return -1;
}

/* Numbers for the tests' own choices: not the generator under test. */
static uint32_t chosen = 1;
static uint32_t choose(uint32_t below)
{
    chosen = chosen * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chosen * below) >> 32);
}

/* ---- lanes of one kernel, with all that the engine needs ---- */

enum { MAX_BLOCKS = 64 };

typedef struct lanes {
    fv_engine engine;
    void *params;
    int64_t *actions;
    void *blocks[MAX_BLOCKS];
    int num_blocks;
} lanes;

static void *keep_block(lanes *l, size_t size)
{
    return l->blocks[l->num_blocks++] = new_block(size);
}

static void set_param(lanes *l, const char *name, double value)
{
    const int64_t index = find_name(l->engine.kernel->param_names, name);
    CHECK(index >= 0, "%s has no parameter %s", l->engine.kernel->name, name);
    if (index >= 0 && real_dtype == FV_FLOAT32)
        ((float *)l->params)[index] = (float)value;
    else if (index >= 0)
        ((double *)l->params)[index] = value;
}

/* The parameters of Gymnasium's envs, as the tests here need them. */
static const struct param { const char *kernel, *name; double value; } all_params[] = {
    {"counter", "goal", 20}, {"counter", "step_reward", 0.1},
    {"cartpole", "gravity", 9.8}, {"cartpole", "masspole", 0.1}, {"cartpole", "total_mass", 0.1 + 1.0},
    {"cartpole", "length", 0.5}, {"cartpole", "polemass_length", 0.1 * 0.5}, {"cartpole", "force_mag", 10.0},
    {"cartpole", "tau", 0.02}, {"cartpole", "theta_threshold_radians", 12 * 2 * PI / 360},
    {"cartpole", "x_threshold", 2.4}, {"cartpole", "kinematics_integrator", 0}, {"cartpole", "sutton_barto_reward", 0},
    {"mountain_car", "min_position", -1.2}, {"mountain_car", "max_position", 0.6}, {"mountain_car", "max_speed", 0.07},
    {"mountain_car", "goal_position", 0.5}, {"mountain_car", "goal_velocity", 0}, {"mountain_car", "force", 0.001},
    {"mountain_car", "gravity", 0.0025},
    {"mountain_car_continuous", "min_action", -1}, {"mountain_car_continuous", "max_action", 1},
    {"mountain_car_continuous", "min_position", -1.2}, {"mountain_car_continuous", "max_position", 0.6},
    {"mountain_car_continuous", "max_speed", 0.07}, {"mountain_car_continuous", "goal_position", 0.45},
    {"mountain_car_continuous", "goal_velocity", 0}, {"mountain_car_continuous", "power", 0.0015},
    {"pendulum", "max_speed", 8}, {"pendulum", "max_torque", 2}, {"pendulum", "dt", 0.05}, {"pendulum", "g", 10},
    {"pendulum", "m", 1}, {"pendulum", "l", 1}, {"pendulum", "l_squared", 1},
    {"acrobot", "dt", 0.2}, {"acrobot", "LINK_LENGTH_1", 1}, {"acrobot", "LINK_MASS_1", 1}, {"acrobot", "LINK_MASS_2", 1},
    {"acrobot", "LINK_COM_POS_1", 0.5}, {"acrobot", "LINK_COM_POS_2", 0.5}, {"acrobot", "LINK_MOI", 1},
    {"acrobot", "MAX_VEL_1", 4 * PI}, {"acrobot", "MAX_VEL_2", 9 * PI}, {"acrobot", "length_1_squared", 1},
    {"acrobot", "com_pos_1_squared", 0.25}, {"acrobot", "com_pos_2_squared", 0.25}, {"acrobot", "torque_0", -1},
    {"acrobot", "torque_1", 0}, {"acrobot", "torque_2", 1}, {"acrobot", "torque_noise_max", 0},
    {"acrobot", "book_or_nips", 0},
};

static void set_params(lanes *l)
{
    int count = 0;
    for (size_t i = 0; i < sizeof all_params / sizeof *all_params; i++)
        if (strcmp(all_params[i].kernel, l->engine.kernel->name) == 0) {
            set_param(l, all_params[i].name, all_params[i].value);
            count++;
        }
    CHECK(count == l->engine.kernel->num_params, "%d parameters of %s", count, l->engine.kernel->name);
}

static lanes *new_lanes(const char *kernel, int64_t n, fv_autoreset autoreset, int64_t limit, int statistics)
{
    lanes *l = calloc(1, sizeof *l);
    if (l == NULL)
        abort();
    fv_engine *e = &l->engine;
    fv_batch *b = &e->batch;
    const fv_kernel *k = get_kernel(kernel);
    const size_t count = (size_t)n;
    e->kernel = k;
    e->autoreset = autoreset;
    b->n = b->stride = n;
    b->limit = limit;
    b->state = keep_block(l, count * (size_t)k->num_state * (size_t)k->state_size);
    b->rng = keep_block(l, count * sizeof(fv_rng));
    b->start = keep_block(l, count * sizeof(int64_t));
    b->pending = keep_block(l, count);
    e->ended = keep_block(l, count * sizeof(int64_t));
    e->ended_in = keep_block(l, (size_t)fv_num_chunks(n) * sizeof(int64_t));
    e->num_threads = 1;
    b->params = l->params = keep_block(l, (size_t)k->num_params * (size_t)k->real_size);
    b->actions = l->actions = keep_block(l, count * sizeof(int64_t));
    for (int a = 0; a < k->num_obs; a++) {
        b->obs[a] = keep_block(l, count * (size_t)k->obs[a].size);
        e->final_obs[a] = keep_block(l, count * (size_t)k->obs[a].size);
    }
    for (int a = 0; a < k->num_info; a++) {
        b->info[a] = keep_block(l, count * (size_t)k->info[a].size);
        e->final_info[a] = keep_block(l, count * (size_t)k->info[a].size);
    }
    b->rewards = keep_block(l, count * sizeof(double));
    b->terminations = keep_block(l, count);
    b->truncations = keep_block(l, count);
    if (statistics) {
        b->returns = keep_block(l, count * sizeof(double));
        e->began = keep_block(l, count * sizeof(double));
        e->episode_returns = keep_block(l, count * sizeof(double));
        e->episode_lengths = keep_block(l, count * sizeof(int64_t));
        e->episode_seconds = keep_block(l, count * sizeof(double));
    }
    set_params(l);
    return l;
}

/* Lets a step use threads however few lanes there are. */
static void use_threads(lanes *l, int num_threads)
{
    fv_kernel *kernel = keep_block(l, sizeof *kernel);
    *kernel = *l->engine.kernel;
    kernel->lanes_per_thread = 1;
    l->engine.kernel = kernel;
    l->engine.num_threads = num_threads;
}

static void free_lanes(lanes *l)
{
    fv_join_threads(&l->engine);
    for (int i = 0; i < l->num_blocks; i++)
        free(l->blocks[i]);
    free(l);
}

static double *column(lanes *l, const char *name)
{
    const int64_t index = find_name(l->engine.kernel->state_names, name);
    CHECK(index >= 0, "no state %s", name);
    return (double *)l->engine.batch.state + index * l->engine.batch.stride;
}

/* ---- streams ---- */

static const char *known_answers;

static void start_stream(fv_rng *r, const uint32_t *words, int64_t count)
{
    memset(r, 0xA5, sizeof *r); /* seeding must not depend on what was there */
    fv_rng_seed(r, words, count);
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void test_streams_give_the_known_answers(void)
{
    FILE *file = fopen(known_answers, "r");
    if (file == NULL) {
        perror(known_answers);
        exit(1);
    }
    char line[4096];
    uint32_t seed[32];
    int64_t num_words = 0, lines = 0, bounds = 0;
    while (fgets(line, sizeof line, file)) {
        char word[16];
        uint64_t values[64];
        int64_t count = 0;
        int offset = 0, length;
        CHECK(sscanf(line, "%15s%n", word, &offset) == 1, "%s", line);
        while (count < 64 && sscanf(line + offset, " %" SCNx64 "%n", &values[count], &length) == 1) {
            offset += length;
            count++;
        }
        lines++;
        if (strcmp(word, "seed") == 0) {
            for (num_words = 0; num_words < count; num_words++)
                seed[num_words] = (uint32_t)values[num_words];
            continue;
        }
        fv_rng r;
        start_stream(&r, seed, num_words);
        const int below = strcmp(word, "below") == 0;
        bounds += below;
        CHECK(count >= 8, "%s", line);
        for (int64_t i = below; i < count; i++) {
            uint64_t got = ~values[i];
            if (strcmp(word, "next64") == 0)
                got = fv_rng_next64(&r);
            else if (strcmp(word, "next32") == 0)
                got = fv_rng_next32(&r);
            else if (strcmp(word, "double") == 0)
                got = bits_of(fv_rng_double(&r));
            else if (below)
                got = fv_rng_below(&r, (uint32_t)values[0]);
            else if (strcmp(word, "mixed") == 0)
                switch (i % 6) {
                case 0: got = fv_rng_next64(&r); break;
                case 3: got = bits_of(fv_rng_double(&r)); break;
                case 5: got = fv_rng_below(&r, 10); break;
                default: got = fv_rng_next32(&r);
                }
            CHECK(got == values[i], "seed of %" PRId64 " words from %" PRIx32 ", %s %" PRId64 ": %" PRIx64 ", not %"
                  PRIx64, num_words, seed[0], word, i, got, values[i]);
        }
    }
    fclose(file);
    CHECK(lines > 400 && bounds > 200, "%" PRId64 " lines, %" PRId64 " bounds", lines, bounds);
}

static void test_zero_words_on_top_change_nothing(void)
{
    const uint32_t words[8] = {0xdeadbeef, 7};
    fv_rng expected;
    start_stream(&expected, words, 2);
    for (int64_t count = 3; count <= 4; count++) {
        fv_rng r;
        start_stream(&r, words, count);
        CHECK(memcmp(&r, &expected, sizeof r) == 0, "%" PRId64 " words", count);
    }
}

static void test_seeding_all_lanes_counts_up(void)
{
    const uint64_t firsts[] = {0, 41, UINT32_MAX - 3, (uint64_t)UINT32_MAX + 1, UINT64_MAX - 8};
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        lanes *l = new_lanes("counter", 8, FV_NEXT_STEP, INT64_MAX, 0);
        fv_seed_all(&l->engine, firsts[f]);
        for (int64_t i = 0; i < 8; i++) {
            const uint64_t seed = firsts[f] + (uint64_t)i;
            const uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
            fv_rng expected;
            start_stream(&expected, words, seed >> 32 ? 2 : 1);
            CHECK(memcmp(&l->engine.batch.rng[i], &expected, sizeof expected) == 0, "seed %" PRIu64, seed);
        }
        free_lanes(l);
    }
}

/* ---- kernels ---- */

static void check_table(const fv_kernel *k)
{
    static const int sizes[FV_NUM_DTYPES] = {8, 4, 8, 4, 1, 1};
    CHECK(k->abi_version == FV_ABI_VERSION && k->table_size == sizeof(fv_kernel), "%s", k->name);
    CHECK(count_names(k->state_names) == k->num_state, "%s: \"%s\" for %d", k->name, k->state_names, k->num_state);
    CHECK(count_names(k->param_names) == k->num_params, "%s: \"%s\" for %d", k->name, k->param_names, k->num_params);
    CHECK(count_names(k->option_names) <= FV_MAX_OPTIONS, "%s: %s", k->name, k->option_names);
    CHECK(k->num_obs >= 1 && k->num_obs <= FV_MAX_ARRAYS && k->num_info <= FV_MAX_ARRAYS, "%s", k->name);
    CHECK(k->num_tables >= 0 && k->num_tables <= FV_MAX_TABLES, "%s", k->name);
    CHECK(k->state_size == sizes[k->state_dtype] && k->real_size == sizes[k->real_dtype], "%s", k->name);
    for (int a = 0; a < k->num_obs; a++)
        CHECK(k->obs[a].size == k->obs[a].width * sizes[k->obs[a].dtype] && k->obs[a].width > 0 && *k->obs[a].name,
              "%s: observation %d", k->name, a);
    for (int a = 0; a < k->num_info; a++)
        CHECK(k->info[a].size == k->info[a].width * sizes[k->info[a].dtype] && *k->info[a].name, "%s: info %d", k->name,
              a);
    CHECK(k->step && k->reset && k->observe && k->check_discrete && k->check_float32 && k->check_float64, "%s", k->name);
    CHECK((k->action_kind == FV_BOX) == (k->step_float32 != NULL), "%s", k->name);
    CHECK(k->action_width >= 1 && k->lanes_per_thread >= 1, "%s", k->name);
}

static void test_every_kernel_table_is_consistent(void)
{
    int num_targets = 0;
    while (fv_target_name(num_targets) != NULL)
        num_targets++;
    CHECK(num_targets == NUM_COMPILATIONS, "%d targets", num_targets);
    CHECK(fv_target_runs_here(num_targets - 1), "the last compilation runs everywhere");
    for (int c = 0; c < NUM_COMPILATIONS; c++) {
        int count = 0, baseline_count = 0;
        while (compilations[0][baseline_count] != NULL)
            baseline_count++;
        for (const fv_kernel *const *at = compilations[c]; *at != NULL; at++, count++) {
            check_table(*at);
            for (const fv_kernel *const *other = compilations[c]; other < at; other++)
                CHECK(strcmp((*other)->name, (*at)->name) != 0 || (*other)->real_dtype != (*at)->real_dtype,
                      "two kernels are called %s", (*at)->name);
            for (int t = 0; t < num_targets; t++) {
                const fv_kernel *found = fv_find_kernel(t, (*at)->name, (*at)->real_dtype);
                CHECK(found != NULL && strcmp(found->name, (*at)->name) == 0 && found->real_dtype == (*at)->real_dtype,
                      "%s in %s", (*at)->name, fv_target_name(t));
            }
        }
        CHECK(count >= 2 && count == baseline_count, "%d kernels", count);
    }
    CHECK(fv_find_kernel(0, "no such env", FV_FLOAT64) == NULL && fv_find_kernel(0, "", FV_FLOAT64) == NULL, "found");
    CHECK(fv_find_kernel(0, "cartpole", FV_INT8) == NULL, "found");
}

/* Two batches hold the same: state, streams, clocks, and what the last call wrote. */
static int same_lanes(const lanes *one, int64_t from, const lanes *other, int64_t other_from, int64_t count)
{
    const fv_batch *a = &one->engine.batch, *b = &other->engine.batch;
    const fv_kernel *k = one->engine.kernel;
    int same = 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = from + i, y = other_from + i;
        for (int c = 0; c < k->num_state; c++)
            same &= memcmp((const char *)a->state + (c * a->stride + x) * k->state_size,
                           (const char *)b->state + (c * b->stride + y) * k->state_size, (size_t)k->state_size) == 0;
        same &= memcmp(&a->rng[x], &b->rng[y], sizeof(fv_rng)) == 0;
        same &= a->clock - a->start[x] == b->clock - b->start[y] && a->pending[x] == b->pending[y];
        for (int o = 0; o < k->num_obs; o++)
            same &= memcmp((const char *)a->obs[o] + x * k->obs[o].size, (const char *)b->obs[o] + y * k->obs[o].size,
                           (size_t)k->obs[o].size) == 0;
        same &= bits_of(a->rewards[x]) == bits_of(b->rewards[y]);
        same &= a->terminations[x] == b->terminations[y] && a->truncations[x] == b->truncations[y];
    }
    return same;
}

/* Actions that every Discrete kernel here has, or numbers beyond the bounds of every Box kernel here. */
static void choose_actions(lanes *l)
{
    for (int64_t i = 0; i < l->engine.batch.n; i++) {
        const double number = choose(UINT32_MAX) * 0x1p-32 * 6 - 3;
        if (l->engine.kernel->action_kind == FV_BOX)
            memcpy(&l->actions[i], &number, sizeof number);
        else
            l->actions[i] = choose(2);
    }
}

/* The kernels that need no tables, and have this scalar type. */
static int is_tested(const char *name)
{
    return fv_find_kernel(target, name, real_dtype) != NULL;
}

static const char *const names[] = {
    "cartpole", "counter", "mountain_car", "mountain_car_continuous", "pendulum", "acrobot",
};
enum { NUM_NAMES = sizeof names / sizeof *names };

static void reset_all(lanes *l, uint64_t seed)
{
    l->engine.batch.clock = 0;
    fv_seed_all(&l->engine, seed);
    fv_reset(&l->engine, NULL, 0, NULL);
}

/* In FV_DISABLED mode the caller resets. */
static void reset_ended(lanes *l)
{
    if (l->engine.autoreset != FV_DISABLED)
        return;
    int64_t *list = new_block((size_t)l->engine.batch.n * sizeof *list), count = 0;
    for (int64_t i = 0; i < l->engine.batch.n; i++)
        if (l->engine.batch.pending[i])
            list[count++] = i;
    fv_reset(&l->engine, list, count, NULL);
    free(list);
}

static void test_lanes_do_not_depend_on_each_other(void)
{
    enum { MANY = 67, STEPS = 150 };
    for (int mode = 0; mode < 3; mode++)
        for (int k = 0; k < NUM_NAMES; k++) {
            if (!is_tested(names[k]))
                continue;
            for (int64_t few = 1; few <= 33; few += few < 9 ? 1 : 8) {
                lanes *all = new_lanes(names[k], MANY, (fv_autoreset)mode, 30, 0);
                lanes *part = new_lanes(names[k], few, (fv_autoreset)mode, 30, 0);
                const int64_t from = MANY - few;
                reset_all(all, 100);
                reset_all(part, 100 + (uint64_t)from);
                for (int step = 0; step < STEPS; step++) {
                    choose_actions(all);
                    memcpy(part->actions, all->actions + from, (size_t)few * sizeof(int64_t));
                    fv_step(&all->engine, 0);
                    fv_step(&part->engine, 0);
                    CHECK(same_lanes(all, from, part, 0, few), "%s, mode %d, %" PRId64 " lanes, step %d", names[k], mode,
                          few, step);
                    reset_ended(all);
                    reset_ended(part);
                }
                free_lanes(all);
                free_lanes(part);
            }
        }
}

/* Box actions, in place. */
static void make_float32(lanes *l)
{
    for (int64_t i = 0; i < l->engine.batch.n; i++) {
        double number;
        memcpy(&number, &l->actions[i], sizeof number);
        const float narrow = (float)number;
        memcpy((float *)l->actions + i, &narrow, sizeof narrow);
    }
}

static void test_all_compilations_give_the_same_bits(void)
{
    enum { N = 133, STEPS = 200 };
    const int tested = target;
    for (int k = 0; k < NUM_NAMES; k++) {
        if (!is_tested(names[k]))
            continue;
        target = NUM_COMPILATIONS - 1; /* the baseline */
        lanes *expected = new_lanes(names[k], N, FV_NEXT_STEP, 60, 0);
        target = tested;
        lanes *got = new_lanes(names[k], N, FV_NEXT_STEP, 60, 0);
        const int is_box = got->engine.kernel->action_kind == FV_BOX;
        reset_all(expected, 7);
        reset_all(got, 7);
        for (int step = 0; step < STEPS; step++) {
            const int float32 = is_box && step % 3 > 0;
            choose_actions(expected);
            if (float32)
                make_float32(expected);
            memcpy(got->actions, expected->actions, N * sizeof(int64_t));
            fv_step(&expected->engine, float32);
            fv_step(&got->engine, float32);
            CHECK(same_lanes(expected, 0, got, 0, N), "%s, step %d", names[k], step);
        }
        free_lanes(expected);
        free_lanes(got);
    }
}

static void test_threads_and_chunks_change_nothing(void)
{
    enum { N = 3 * FV_CHUNK + 5, STEPS = 60 };
    const int threads[] = {1, 2, 3, 8};
    for (int mode = 0; mode < 3; mode++) {
        lanes *with[4], *part = new_lanes("cartpole", 11, (fv_autoreset)mode, 20, 1);
        const int64_t from = 2 * FV_CHUNK - 6; /* lanes on both sides of a chunk's border, in one chunk here */
        for (int t = 0; t < 4; t++) {
            with[t] = new_lanes("cartpole", N, (fv_autoreset)mode, 20, 1);
            use_threads(with[t], threads[t]);
            reset_all(with[t], 40);
        }
        reset_all(part, 40 + (uint64_t)from);
        for (int step = 0; step < STEPS; step++) {
            choose_actions(with[0]);
            memcpy(part->actions, with[0]->actions + from, 11 * sizeof(int64_t));
            fv_step(&part->engine, 0);
            const int64_t ended = fv_step(&with[0]->engine, 0);
            CHECK(same_lanes(with[0], from, part, 0, 11), "mode %d, step %d", mode, step);
            for (int t = 1; t < 4; t++) {
                memcpy(with[t]->actions, with[0]->actions, N * sizeof(int64_t));
                CHECK(fv_step(&with[t]->engine, 0) == ended, "mode %d, step %d, %d threads", mode, step, threads[t]);
                CHECK(same_lanes(with[0], 0, with[t], 0, N), "mode %d, step %d, %d threads", mode, step, threads[t]);
                CHECK(with[t]->engine.num_ended == with[0]->engine.num_ended, "mode %d, step %d", mode, step);
                reset_ended(with[t]);
            }
            reset_ended(with[0]);
            reset_ended(part);
        }
        for (int t = 0; t < 4; t++) {
            CHECK((with[t]->engine.pool != NULL) == (t > 0), "%d threads", threads[t]);
            free_lanes(with[t]);
        }
        free_lanes(part);
    }
}

static void test_few_lanes_start_no_threads(void)
{
    lanes *l = new_lanes("cartpole", 64, FV_NEXT_STEP, 20, 0);
    l->engine.num_threads = 8;
    reset_all(l, 0);
    choose_actions(l);
    fv_step(&l->engine, 0);
    CHECK(l->engine.kernel->lanes_per_thread > 64 && l->engine.pool == NULL, "a pool for 64 lanes");
    free_lanes(l);
}

static void test_a_step_in_pieces_is_a_step(void)
{
    enum { N = 41 };
    lanes *whole = new_lanes("cartpole", N, FV_NEXT_STEP, INT64_MAX, 0);
    lanes *pieces = new_lanes("cartpole", N, FV_NEXT_STEP, INT64_MAX, 0);
    reset_all(whole, 5);
    reset_all(pieces, 5);
    for (int64_t cut = 0; cut <= N; cut++) {
        choose_actions(whole);
        memcpy(pieces->actions, whole->actions, N * sizeof(int64_t));
        whole->engine.batch.clock++;
        pieces->engine.batch.clock++;
        const fv_kernel *k = whole->engine.kernel;
        k->step(&whole->engine.batch, 0, N);
        k->step(&pieces->engine.batch, cut, N);
        k->step(&pieces->engine.batch, 0, cut);
        CHECK(same_lanes(whole, 0, pieces, 0, N), "cut at %" PRId64, cut);
    }
    free_lanes(whole);
    free_lanes(pieces);
}

static void test_parameters_in_columns_are_the_same_numbers(void)
{
    enum { N = 19 };
    lanes *scalar = new_lanes("cartpole", N, FV_SAME_STEP, 40, 1);
    lanes *columns = new_lanes("cartpole", N, FV_SAME_STEP, 40, 1);
    lanes *other = new_lanes("cartpole", N, FV_SAME_STEP, 40, 1);
    const int num_params = scalar->engine.kernel->num_params;
    double *values = keep_block(columns, (size_t)num_params * N * sizeof(double));
    for (int k = 0; k < num_params; k++)
        for (int i = 0; i < N; i++)
            values[k * N + i] = ((const double *)scalar->params)[k];
    const int odd = 7; /* one lane has a gravity of its own */
    values[find_name(columns->engine.kernel->param_names, "gravity") * N + odd] = 1.5;
    set_param(other, "gravity", 1.5);
    columns->engine.batch.param_columns = values;
    columns->engine.batch.params = NULL;
    reset_all(scalar, 3);
    reset_all(columns, 3);
    reset_all(other, 3);
    for (int step = 0; step < 100; step++) {
        choose_actions(scalar);
        memcpy(columns->actions, scalar->actions, N * sizeof(int64_t));
        memcpy(other->actions, scalar->actions, N * sizeof(int64_t));
        fv_step(&scalar->engine, 0);
        fv_step(&columns->engine, 0);
        fv_step(&other->engine, 0);
        CHECK(same_lanes(scalar, 0, columns, 0, odd), "step %d, lanes below", step);
        CHECK(same_lanes(other, odd, columns, odd, 1), "step %d, the odd lane", step);
        CHECK(same_lanes(scalar, odd + 1, columns, odd + 1, N - odd - 1), "step %d, lanes above", step);
    }
    free_lanes(scalar);
    free_lanes(columns);
    free_lanes(other);
}

static void test_a_lane_full_of_nan_harms_no_other(void)
{
    enum { N = 16 };
    lanes *sound = new_lanes("cartpole", N, FV_NEXT_STEP, 50, 0);
    lanes *poisoned = new_lanes("cartpole", N, FV_NEXT_STEP, 50, 0);
    reset_all(sound, 9);
    reset_all(poisoned, 9);
    for (int c = 0; c < 4; c++)
        ((double *)poisoned->engine.batch.state)[c * N + 5] = c % 2 ? NAN : INFINITY;
    for (int step = 0; step < 50; step++) {
        choose_actions(sound);
        memcpy(poisoned->actions, sound->actions, N * sizeof(int64_t));
        fv_step(&sound->engine, 0);
        fv_step(&poisoned->engine, 0);
        CHECK(same_lanes(sound, 0, poisoned, 0, 5) && same_lanes(sound, 6, poisoned, 6, N - 6), "step %d", step);
    }
    CHECK(poisoned->engine.batch.truncations[5], "the poisoned lane reaches its limit");
    choose_actions(poisoned);
    fv_step(&poisoned->engine, 0);
    CHECK(fabs(column(poisoned, "x")[5]) <= 0.05, "the poisoned lane is sound after its reset");
    free_lanes(sound);
    free_lanes(poisoned);
}

static void test_cartpole_falls_where_gymnasiums_does(void)
{
    const float last[4] = {0.1288005f, 1.9268948f, -0.23022948f, -3.0236335f};
    const float next[4] = {-0.040587135f, -0.006687306f, -0.0020948702f, -0.03402611f};
    lanes *l = new_lanes("cartpole", 1, FV_NEXT_STEP, 500, 0);
    const fv_batch *b = &l->engine.batch;
    reset_all(l, 3);
    l->actions[0] = 1;
    for (int step = 1; step <= 10; step++) {
        CHECK(fv_step(&l->engine, 0) == (step == 10), "step %d", step);
        CHECK(b->terminations[0] == (step == 10) && !b->truncations[0] && b->rewards[0] == 1.0, "step %d", step);
    }
    CHECK(memcmp(b->obs[0], last, sizeof last) == 0, "the last observation");
    CHECK(fv_step(&l->engine, 0) == 0, "the reset row ends nothing");
    CHECK(memcmp(b->obs[0], next, sizeof next) == 0, "the next episode's first observation");
    CHECK(b->rewards[0] == 0 && !b->terminations[0] && !b->truncations[0], "the reset row");
    free_lanes(l);
}

static void test_a_reset_draws_four_numbers_of_its_own_lanes_alone(void)
{
    enum { N = 9 };
    lanes *l = new_lanes("cartpole", N, FV_DISABLED, 500, 0);
    fv_batch *b = &l->engine.batch;
    reset_all(l, 70);
    fv_rng before[N];
    memcpy(before, b->rng, sizeof before);
    memset(b->obs[0], 0x5A, N * 4 * sizeof(float));
    const int64_t list[] = {1, 4, 8};
    const double options[] = {-0.5, 0.25};
    fv_reset(&l->engine, list, 3, options);
    for (int64_t i = 0; i < N; i++) {
        const int listed = i == 1 || i == 4 || i == 8;
        unsigned char untouched[4 * sizeof(float)];
        memset(untouched, 0x5A, sizeof untouched);
        const float *row = (const float *)b->obs[0] + 4 * i;
        if (listed) {
            const char *const names[] = {"x", "x_dot", "theta", "theta_dot"};
            for (int c = 0; c < 4; c++) {
                const double expected = -0.5 + (0.25 - -0.5) * fv_rng_double(&before[i]);
                CHECK(column(l, names[c])[i] == expected && row[c] == (float)expected, "lane %" PRId64, i);
            }
        } else {
            CHECK(memcmp(row, untouched, sizeof untouched) == 0, "lane %" PRId64, i);
        }
        CHECK(memcmp(&b->rng[i], &before[i], sizeof(fv_rng)) == 0, "the stream of lane %" PRId64, i);
    }
    free_lanes(l);
}

static void test_observe_writes_its_range_alone(void)
{
    enum { N = 12 };
    lanes *l = new_lanes("counter", N, FV_NEXT_STEP, 500, 0);
    fv_batch *b = &l->engine.batch;
    reset_all(l, 0);
    for (int64_t i = 0; i < N; i++)
        column(l, "count")[i] = (double)(100 + i);
    float *rows = b->obs[0];
    for (int64_t begin = 0; begin <= N; begin++)
        for (int64_t end = begin; end <= N; end++) {
            for (int64_t i = 0; i < N; i++)
                rows[i] = -1;
            l->engine.kernel->observe(b, begin, end);
            for (int64_t i = 0; i < N; i++)
                CHECK(rows[i] == (i >= begin && i < end ? (float)(100 + i) : -1.0f), "[%" PRId64 ", %" PRId64 ")", begin,
                      end);
        }
    free_lanes(l);
}

/* ---- engine: against a lane of the Counter written out by hand ---- */

typedef struct hand_lane {
    double count, sum;
    int64_t length;
    int pending;
} hand_lane;

static const hand_lane fresh = {0, 0, 0, 0};

/* Chunk by chunk, the list names the pending lanes, ascending. */
static void check_the_list_of_ended_lanes(const fv_engine *e)
{
    const int64_t n = e->batch.n;
    for (int64_t chunk = 0; chunk < fv_num_chunks(n); chunk++) {
        const int64_t begin = chunk * FV_CHUNK, end = begin + FV_CHUNK < n ? begin + FV_CHUNK : n;
        int64_t found = 0;
        for (int64_t i = begin; i < end; i++)
            if (e->batch.pending[i]) {
                CHECK(found < e->ended_in[chunk] && e->ended[begin + found] == i, "lane %" PRId64 " is not listed", i);
                found++;
            }
        CHECK(found == e->ended_in[chunk], "chunk %" PRId64, chunk);
    }
}

static void compare_with_hand_written_lanes(fv_autoreset mode, int64_t n, int64_t limit, int statistics, int steps)
{
    lanes *l = new_lanes("counter", n, mode, limit, statistics);
    fv_engine *e = &l->engine;
    fv_batch *b = &e->batch;
    hand_lane *hand = new_block((size_t)n * sizeof *hand);
    int64_t *list = new_block((size_t)n * sizeof *list);
    reset_all(l, 0);
    for (int64_t i = 0; i < n; i++) {
        hand[i] = fresh;
        CHECK(((float *)b->obs[0])[i] == 0, "the first observation");
    }
    for (int step = 0; step < steps; step++) {
        /* Now and then the caller resets some lanes, in whatever state they are; in FV_DISABLED mode it must. */
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            if ((mode == FV_DISABLED && hand[i].pending) || (step % 7 == 3 && choose(4) == 0)) {
                list[count++] = i;
                hand[i] = fresh;
            }
        fv_reset(e, list, count, NULL);
        int64_t pending = 0;
        for (int64_t i = 0; i < n; i++) {
            pending += hand[i].pending;
            CHECK(b->pending[i] == hand[i].pending, "step %d, lane %" PRId64, step, i);
        }
        CHECK(e->num_ended == pending, "step %d: %" PRId64 " lanes pending, not %" PRId64, step, e->num_ended, pending);
        choose_actions(l);
        const int64_t ended = fv_step(e, 0);
        int64_t expected_ended = 0;
        for (int64_t i = 0; i < n; i++) {
            hand_lane *h = &hand[i];
            double reward = 0, final_count = -1;
            int terminated = 0, truncated = 0;
            if (h->pending) {
                *h = fresh;
            } else {
                h->count += (double)(l->actions[i] + 1);
                h->sum += reward = 0.1;
                h->length++;
                terminated = h->count >= 20;
                truncated = h->length >= limit;
            }
            const hand_lane at_end = *h;
            if (terminated || truncated) {
                expected_ended++;
                h->pending = mode != FV_SAME_STEP;
                if (mode == FV_SAME_STEP) {
                    final_count = h->count;
                    *h = fresh;
                }
            }
            CHECK(((float *)b->obs[0])[i] == (float)h->count, "step %d, lane %" PRId64, step, i);
            CHECK(b->rewards[i] == reward, "step %d, lane %" PRId64 ": reward %g", step, i, b->rewards[i]);
            CHECK(b->terminations[i] == terminated && b->truncations[i] == truncated, "step %d, lane %" PRId64, step, i);
            CHECK(b->clock - b->start[i] == h->length, "step %d, lane %" PRId64 ": length", step, i);
            if (final_count >= 0)
                CHECK(((float *)e->final_obs[0])[i] == (float)final_count, "step %d, lane %" PRId64, step, i);
            if (statistics) {
                CHECK(b->returns[i] == h->sum, "step %d, lane %" PRId64 ": return %g", step, i, b->returns[i]);
                if (terminated || truncated)
                    CHECK(e->episode_returns[i] == at_end.sum && e->episode_lengths[i] == at_end.length &&
                              e->episode_seconds[i] >= 0 && e->episode_seconds[i] < 3600,
                          "step %d, lane %" PRId64, step, i);
            }
        }
        CHECK(ended == expected_ended, "step %d: %" PRId64 " ended, not %" PRId64, step, ended, expected_ended);
        check_the_list_of_ended_lanes(e);
    }
    free(hand);
    free(list);
    free_lanes(l);
}

static void test_the_engine_equals_hand_written_lanes(void)
{
    const int64_t sizes[] = {1, 2, 7, 8, 9, 16, 63, 64, 65}, limits[] = {1, 2, 5, 13, 19, 20, 21, INT64_MAX};
    for (int mode = 0; mode < 3; mode++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t m = 0; m < sizeof limits / sizeof *limits; m++)
                compare_with_hand_written_lanes((fv_autoreset)mode, sizes[s], limits[m], (s + m) % 2, 120);
}

static void test_the_engine_equals_hand_written_lanes_in_chunks(void)
{
    const int64_t sizes[] = {FV_CHUNK - 1, FV_CHUNK, FV_CHUNK + 1, 2 * FV_CHUNK + 9};
    for (int mode = 0; mode < 3; mode++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            compare_with_hand_written_lanes((fv_autoreset)mode, sizes[s], 13, s % 2, 60);
}

static void test_no_lanes_and_a_million(void)
{
    for (int mode = 0; mode < 3; mode++) {
        compare_with_hand_written_lanes((fv_autoreset)mode, 0, 5, 1, 3);
        compare_with_hand_written_lanes((fv_autoreset)mode, 1 << 20, 2, 1, 4);
    }
}

static void test_a_full_reset_forgets_what_was_pending(void)
{
    for (int mode = 0; mode < 3; mode++) {
        lanes *l = new_lanes("counter", 5, (fv_autoreset)mode, 1, 0);
        fv_batch *b = &l->engine.batch;
        reset_all(l, 0);
        choose_actions(l);
        CHECK(fv_step(&l->engine, 0) == 5, "all lanes are at the limit");
        fv_reset(&l->engine, NULL, 0, NULL);
        CHECK(l->engine.num_ended == 0, "%" PRId64, l->engine.num_ended);
        CHECK(fv_step(&l->engine, 0) == 5, "the step after it is a real one");
        for (int64_t i = 0; i < 5; i++)
            CHECK(b->rewards[i] == 0.1 && b->truncations[i], "lane %" PRId64, i);
        free_lanes(l);
    }
}

static void test_the_limit_outlasts_a_long_clock(void)
{
    lanes *l = new_lanes("counter", 3, FV_NEXT_STEP, INT64_MAX, 0);
    fv_batch *b = &l->engine.batch;
    reset_all(l, 0);
    b->clock = INT64_MAX / 2;
    fv_reset(&l->engine, NULL, 0, NULL);
    for (int64_t i = 0; i < 3; i++)
        l->actions[i] = 0;
    for (int step = 1; step <= 20; step++)
        CHECK(fv_step(&l->engine, 0) == (step == 20 ? 3 : 0) && !b->truncations[0], "step %d", step);
    free_lanes(l);
}

static void test_lanes_waiting_for_their_reset_draw_nothing(void)
{
    lanes *l = new_lanes("cartpole", 2, FV_DISABLED, 1, 0);
    reset_all(l, 4);
    fv_rng before[2];
    memcpy(before, l->engine.batch.rng, sizeof before);
    choose_actions(l);
    CHECK(fv_step(&l->engine, 0) == 2, "both lanes are at the limit");
    CHECK(memcmp(before, l->engine.batch.rng, sizeof before) == 0, "a step drew");
    free_lanes(l);
}

static int draws_between(fv_rng before, fv_rng after)
{
    for (int draws = 0; draws < 10; draws++) {
        if (memcmp(&before, &after, sizeof before) == 0)
            return draws;
        fv_rng_double(&before);
    }
    return -1;
}

static void test_a_noisy_lane_draws_once_a_step_but_not_when_it_is_reset(void)
{
    enum { N = 3 };
    lanes *l = new_lanes("acrobot", N, FV_NEXT_STEP, 2, 0);
    for (int noise = 0; noise <= 1; noise++) {
        set_param(l, "torque_noise_max", 0.5 * noise);
        reset_all(l, 4);
        for (int step = 1; step <= 6; step++) {
            const int is_reset = step % 3 == 0;
            fv_rng before[N];
            memcpy(before, l->engine.batch.rng, sizeof before);
            choose_actions(l);
            fv_step(&l->engine, 0);
            for (int i = 0; i < N; i++) {
                const int draws = draws_between(before[i], l->engine.batch.rng[i]);
                CHECK(draws == (is_reset ? 4 : noise), "noise %d, step %d: %d draws", noise, step, draws);
            }
        }
    }
    free_lanes(l);
}

/* ---- checks of actions ---- */

static int is_action(int64_t action, int64_t low, int64_t count)
{
    return action >= low && (uint64_t)action - (uint64_t)low < (uint64_t)count;
}

static void test_discrete_actions_are_checked_to_the_edges_of_int64(void)
{
    const int64_t spaces[][2] = {
        {0, 1}, {0, 2}, {0, 6}, {1, 3}, {-5, 3}, {-1, 2}, {0, INT64_MAX}, {-1, INT64_MAX}, {INT64_MIN, 1},
        {INT64_MIN, INT64_MAX}, {INT64_MAX, 1}, {INT64_MAX - 4, 5}, {1 - INT64_MAX, INT64_MAX},
    };
    const fv_kernel *k = get_kernel("counter");
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++) {
        const int64_t low = spaces[s][0], count = spaces[s][1], last = (int64_t)((uint64_t)low + (uint64_t)count - 1);
        const int64_t values[] = {
            low, last, (int64_t)((uint64_t)low - 1), (int64_t)((uint64_t)last + 1), (int64_t)((uint64_t)low + (1u << 31)),
            (int64_t)((uint64_t)low + (1ull << 32)), (int64_t)((uint64_t)low + (1ull << 63)), -1, 0, 1, 2, INT32_MAX,
            INT32_MIN, UINT32_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX,
        };
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (int64_t n = 1; n <= 37; n += 4)
                for (int64_t place = 0; place < n; place += 3) {
                    int64_t *actions = new_block((size_t)n * sizeof *actions);
                    for (int64_t i = 0; i < n; i++)
                        actions[i] = i % 2 ? low : last;
                    actions[place] = values[v];
                    const int64_t expected = is_action(values[v], low, count) ? -1 : place;
                    const int64_t got = k->check_discrete(actions, n, low, count);
                    CHECK(got == expected, "%" PRId64 " at %" PRId64 " of %" PRId64 " in %" PRId64 " + %" PRId64 ": %"
                          PRId64, values[v], place, n, low, count, got);
                    free(actions);
                }
    }
}

static void test_the_first_bad_action_is_the_one_told(void)
{
    const fv_kernel *k = get_kernel("counter");
    const int64_t actions[] = {0, 1, 0, 7, 1, -1, 9, 0};
    CHECK(k->check_discrete(actions, 8, 0, 2) == 3, "discrete");
    CHECK(k->check_discrete(actions, 3, 0, 2) == -1, "beyond the last lane");
    CHECK(k->check_discrete(actions + 5, 3, 0, 2) == 0, "discrete");
    const double doubles[] = {0, INFINITY, -0.0, NAN, 1, -NAN, 1e308};
    const float floats[] = {0, INFINITY, -0.0f, NAN, 1, -NAN, 3e38f};
    for (int64_t count = 0; count <= 7; count++) {
        const int64_t expected = count > 3 ? 3 : -1;
        CHECK(k->check_float64(doubles, count) == expected && k->check_float32(floats, count) == expected, "%" PRId64,
              count);
    }
    CHECK(k->check_float64(doubles + 4, 3) == 1 && k->check_float32(floats + 4, 3) == 1, "NaN with its sign set");
}

static void test_checks_take_no_actions_and_many(void)
{
    enum { MANY = 1 << 20 };
    const fv_kernel *k = get_kernel("counter");
    CHECK(k->check_discrete(NULL, 0, 0, 2) == -1, "no actions");
    CHECK(k->check_float32(NULL, 0) == -1 && k->check_float64(NULL, 0) == -1, "no actions");
    int64_t *actions = new_block(MANY * sizeof *actions);
    float *floats = new_block(MANY * sizeof *floats);
    for (int64_t i = 0; i < MANY; i++) {
        actions[i] = i % 2;
        floats[i] = (float)i;
    }
    CHECK(k->check_discrete(actions, MANY, 0, 2) == -1 && k->check_float32(floats, MANY) == -1, "all good");
    actions[MANY - 1] = 2;
    floats[MANY - 1] = NAN;
    CHECK(k->check_discrete(actions, MANY, 0, 2) == MANY - 1 && k->check_float32(floats, MANY) == MANY - 1, "the last");
    actions[0] = INT64_MIN;
    floats[0] = NAN;
    CHECK(k->check_discrete(actions, MANY, 0, 2) == 0 && k->check_float32(floats, MANY) == 0, "the first");
    free(actions);
    free(floats);
}

/* Advantages */

static void put_number(void *array, size_t i, double value)
{
    if (real_dtype == FV_FLOAT32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static double number_at(const void *array, size_t i)
{
    return real_dtype == FV_FLOAT32 ? ((const float *)array)[i] : ((const double *)array)[i];
}

static void *chosen_numbers(size_t count)
{
    void *array = new_block(count * (real_dtype == FV_FLOAT32 ? sizeof(float) : sizeof(double)));
    for (size_t i = 0; i < count; i++)
        put_number(array, i, choose(2001) / 16.0 - 60);
    return array;
}

static uint8_t *chosen_flags(size_t count)
{
    uint8_t *array = new_block(count);
    for (size_t i = 0; i < count; i++)
        array[i] = choose(8) == 0;
    return array;
}

/* With gamma and lambda 1/2 and such numbers, nothing is rounded in few rows: the order of operations does not matter. */
static void check_gae(size_t steps, size_t lanes, int with_final_values, int with_resets)
{
    const size_t count = steps * lanes;
    void *rewards = chosen_numbers(count), *values = chosen_numbers(count), *last_values = chosen_numbers(lanes);
    void *final_values = chosen_numbers(count), *advantages = chosen_numbers(count), *returns = chosen_numbers(count);
    uint8_t *terminations = chosen_flags(count), *truncations = chosen_flags(count), *resets = chosen_flags(count);
    const fv_rollout rollout = {
        (int64_t)steps, (int64_t)lanes, 0.5, 0.5, rewards, values, last_values, with_final_values ? final_values : NULL,
        terminations, truncations, with_resets ? resets : NULL, advantages, returns,
    };
    fv_gae(target, real_dtype, &rollout);
    for (size_t lane = 0; lane < lanes; lane++) {
        double carried = 0;
        for (size_t t = steps; t-- > 0;) {
            const size_t i = t * lanes + lane;
            double next = t == steps - 1 ? number_at(last_values, lane) : number_at(values, i + lanes);
            if (truncations[i] && with_final_values)
                next = number_at(final_values, i);
            if (terminations[i])
                next = 0;
            if (terminations[i] || truncations[i])
                carried = 0;
            carried = number_at(rewards, i) + next / 2 - number_at(values, i) + carried / 4;
            if (with_resets && resets[i])
                carried = 0;
            CHECK(number_at(advantages, i) == carried, "%g, expected %g: row %zu of %zu, lane %zu",
                  number_at(advantages, i), carried, t, steps, lane);
            CHECK(number_at(returns, i) == carried + number_at(values, i), "row %zu, lane %zu", t, lane);
        }
    }
    void *blocks[] = {rewards, values, last_values, final_values, advantages, returns, terminations, truncations, resets};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
}

static void test_advantages_are_those_of_one_lane_after_another(void)
{
    const size_t lanes[] = {1, 3, 16, 67};
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        for (size_t steps = 1; steps <= 5; steps++) /* few enough that a float holds every sum */
            for (int which = 0; which < 4; which++)
                check_gae(steps, lanes[i], which & 1, which >> 1);
}

#define ONCE(name) {#name, test_##name, 0, 0}
#define EVERY_TARGET(name) {#name, test_##name, 1, 0}
#define EVERY_TARGET_AND_TYPE(name) {#name, test_##name, 1, 1}
static const struct { const char *name; void (*run)(void); int every_target, every_type; } tests[] = {
    ONCE(streams_give_the_known_answers),
    ONCE(zero_words_on_top_change_nothing),
    ONCE(seeding_all_lanes_counts_up),
    ONCE(every_kernel_table_is_consistent),
    EVERY_TARGET_AND_TYPE(lanes_do_not_depend_on_each_other),
    EVERY_TARGET_AND_TYPE(all_compilations_give_the_same_bits),
    EVERY_TARGET_AND_TYPE(threads_and_chunks_change_nothing),
    EVERY_TARGET_AND_TYPE(few_lanes_start_no_threads),
    EVERY_TARGET_AND_TYPE(a_step_in_pieces_is_a_step),
    EVERY_TARGET(parameters_in_columns_are_the_same_numbers),
    EVERY_TARGET(a_lane_full_of_nan_harms_no_other),
    EVERY_TARGET(cartpole_falls_where_gymnasiums_does),
    EVERY_TARGET(a_reset_draws_four_numbers_of_its_own_lanes_alone),
    EVERY_TARGET(observe_writes_its_range_alone),
    EVERY_TARGET(the_engine_equals_hand_written_lanes),
    ONCE(the_engine_equals_hand_written_lanes_in_chunks),
    ONCE(no_lanes_and_a_million),
    ONCE(a_full_reset_forgets_what_was_pending),
    ONCE(the_limit_outlasts_a_long_clock),
    EVERY_TARGET(lanes_waiting_for_their_reset_draw_nothing),
    EVERY_TARGET(a_noisy_lane_draws_once_a_step_but_not_when_it_is_reset),
    EVERY_TARGET_AND_TYPE(discrete_actions_are_checked_to_the_edges_of_int64),
    EVERY_TARGET_AND_TYPE(the_first_bad_action_is_the_one_told),
    EVERY_TARGET_AND_TYPE(checks_take_no_actions_and_many),
    EVERY_TARGET_AND_TYPE(advantages_are_those_of_one_lane_after_another),
};

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s streams.txt\n", argv[0]);
        return 2;
    }
    known_answers = argv[1];
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int ran = 0;
        for (target = 0; fv_target_name(target) != NULL; target++) {
            if (!fv_target_runs_here(target) || (ran && !tests[i].every_target))
                continue;
            for (int type = 0; type <= tests[i].every_type; type++) {
                const int before = failures;
                real_dtype = type ? FV_FLOAT32 : FV_FLOAT64;
                running = tests[i].name;
                tests[i].run();
                ran = 1;
                printf("%s %s (%s, %s)\n", failures == before ? "ok    " : "FAILED", running, fv_target_name(target),
                       type ? "float32" : "float64");
                fflush(stdout);
            }
        }
    }
    printf("%d failures\n", failures);
    return failures != 0;
}
