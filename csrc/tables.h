/* Transition tables: what the env files of finite problems step by, and the draw from them.
 *
 * fastvec/tables.py lays them out, from a problem's transitions and its distribution of first states. An env file
 * includes this after lane.h, and sets FV_NUM_TABLES to FV_NUM_TRANSITION_TABLES and more if it has tables of its own. */
#ifndef FV_TABLES_H
#define FV_TABLES_H

#ifndef FV_LANE_H
#error "an env file includes lane.h before tables.h"
#endif

/* A pair is a state and an action, numbered state * num_actions + action. */
enum {
    FV_NUM_ACTIONS,  /* int64: one number */
    FV_FIRST,        /* int64: where each pair's transitions begin; one more for where the last pair's end */
    FV_TRANSITIONS,  /* fv_transition: those of all pairs */
    FV_STARTS,       /* fv_transition: one for each first state */
    FV_NUM_TRANSITION_TABLES
};

typedef struct fv_transition {
    double below;       /* drawn by numbers that are below this and not below that of the transition before */
    double prob;
    double reward;
    int32_t next;
    int32_t terminated;
} fv_transition;

/* One random number chooses: the first transition whose sum of probabilities up to it is above the number; the very
 * first if rounding left no sum above it. `below` never falls from one transition to the next, so that halving finds it. */
FV_INLINE const fv_transition *fv_draw_from(fv_lane *lane, const fv_transition *list, int64_t count)
{
    const double number = fv_random(lane);
    const fv_transition *at = list;
    while (count > 1) {
        const int64_t half = count / 2;
        at += at[half - 1].below <= number ? half : 0;
        count -= half;
    }
    return at->below > number ? at : list;
}

FV_INLINE const fv_transition *fv_draw_start(fv_lane *lane)
{
    return fv_draw_from(lane, lane->tables[FV_STARTS], lane->table_sizes[FV_STARTS]);
}

FV_INLINE const fv_transition *fv_draw_transition(fv_lane *lane, int32_t state, int64_t action)
{
    const int64_t *first = lane->tables[FV_FIRST];
    const uint64_t num_actions = (uint64_t)*(const int64_t *)lane->tables[FV_NUM_ACTIONS];
    const uint64_t num_pairs = (uint64_t)lane->table_sizes[FV_FIRST] - 1;
    uint64_t pair = (uint64_t)state * num_actions + (uint64_t)action;
    /* Both were checked; but another thread may have written to the caller's actions since, and whatever they are now,
     * nothing outside of the tables is read. */
    pair = pair < num_pairs ? pair : 0;
    return fv_draw_from(lane, (const fv_transition *)lane->tables[FV_TRANSITIONS] + first[pair],
                        first[pair + 1] - first[pair]);
}

#endif
