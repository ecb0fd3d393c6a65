/* Blackjack-v1: hit until close to 21, then stick and let the dealer play.
 * The game of example 5.1 in Sutton and Barto, "Reinforcement Learning: An Introduction" (2018), with cards from an
 * endless deck. A hand is the sum of its cards, with aces as 1, and whether there is an ace among them: at most one can
 * count 11. All draws are of the 32-bit stream, so that a reset may begin with the half of a word that a step left over. */
#define FV_NAME blackjack
#define FV_STATE_NAMES \
    "player_sum player_has_ace player_cards dealer_sum dealer_has_ace dealer_card dealer_suit dealer_face"
#define FV_STATE_TYPE int32_t
#define FV_PARAM_NAMES "natural sab"
#define FV_OBS(ARRAY) ARRAY(int64_t, player, 1) ARRAY(int64_t, dealer, 1) ARRAY(int64_t, ace, 1)
#define FV_ACTION FV_DISCRETE
#define FV_DRAWS_IN_STEP 1
#include "../lane.h"

typedef struct {
    int32_t player_sum, player_has_ace, player_cards;
    int32_t dealer_sum, dealer_has_ace;
    int32_t dealer_card; /* the one that shows */
    int32_t dealer_suit; /* clubs, diamonds, hearts, spades: shown in pictures only, as is the face */
    int32_t dealer_face; /* jack, queen, king of a ten; 0 for other cards */
} FV(state);

typedef struct {
    real natural; /* 1: winning with a natural pays 1.5, unless `sab` */
    real sab;     /* 1: a natural beats all but a natural */
} FV(params);

FV_INLINE int32_t FV(draw_card)(fv_lane *lane)
{
    const int32_t rank = (int32_t)fv_integers(lane, 13) + 1;
    return rank < 10 ? rank : 10;
}

/* An ace counts 11 where that is no bust. */
FV_INLINE int FV(usable_ace)(int32_t sum, int32_t has_ace) { return has_ace && sum + 10 <= 21; }
FV_INLINE int32_t FV(total)(int32_t sum, int32_t has_ace) { return FV(usable_ace)(sum, has_ace) ? sum + 10 : sum; }
FV_INLINE int32_t FV(score)(int32_t sum, int32_t has_ace)
{
    const int32_t total = FV(total)(sum, has_ace);
    return total > 21 ? 0 : total;
}

FV_INLINE void FV(reset)(FV(state) *s, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)p, (void)info;
    s->dealer_card = FV(draw_card)(lane);
    const int32_t hidden = FV(draw_card)(lane);
    s->dealer_sum = s->dealer_card + hidden;
    s->dealer_has_ace = s->dealer_card == 1 || hidden == 1;
    const int32_t first = FV(draw_card)(lane), second = FV(draw_card)(lane);
    s->player_sum = first + second;
    s->player_has_ace = first == 1 || second == 1;
    s->player_cards = 2;
    s->dealer_suit = (int32_t)fv_integers(lane, 4);
    s->dealer_face = s->dealer_card == 10 ? (int32_t)fv_integers(lane, 3) : 0;
}

FV_INLINE fv_outcome FV(step)(FV(state) *s, int64_t action, const FV(params) *p, FV(info) *info, fv_lane *lane)
{
    (void)info;
    if (action != 0) {
        const int32_t card = FV(draw_card)(lane);
        s->player_sum += card;
        s->player_has_ace |= card == 1;
        s->player_cards++;
        const int bust = s->player_sum > 21;
        return (fv_outcome){.reward = bust ? -1.0 : 0.0, .terminated = bust};
    }
    /* Two cards with an ace that sum to 11 are an ace and a ten. The dealer has two as yet. */
    const int player_natural = s->player_cards == 2 && s->player_has_ace && s->player_sum == 11;
    const int dealer_natural = s->dealer_has_ace && s->dealer_sum == 11;
    while (FV(total)(s->dealer_sum, s->dealer_has_ace) < 17) {
        const int32_t card = FV(draw_card)(lane);
        s->dealer_sum += card;
        s->dealer_has_ace |= card == 1;
    }
    const int32_t player = FV(score)(s->player_sum, s->player_has_ace);
    const int32_t dealer = FV(score)(s->dealer_sum, s->dealer_has_ace);
    double reward = (double)((player > dealer) - (player < dealer));
    if (p->sab != 0) {
        if (player_natural && !dealer_natural)
            reward = 1.0;
    } else if (p->natural != 0 && player_natural && reward == 1.0) {
        reward = 1.5;
    }
    return (fv_outcome){.reward = reward, .terminated = 1};
}

FV_INLINE void FV(observe)(const FV(state) *s, const FV(params) *p, FV(obs) *obs, fv_lane *lane)
{
    (void)p, (void)lane;
    obs->player[0] = FV(total)(s->player_sum, s->player_has_ace);
    obs->dealer[0] = s->dealer_card;
    obs->ace[0] = FV(usable_ace)(s->player_sum, s->player_has_ace);
}

#include "../kernel.h"
