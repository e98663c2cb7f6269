/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/pace.h"

#include "base/random.h"

#define SECOND_US ((int64_t) 1000000)
#define DEFAULT_S 90u
#define FAST_S 3u
#define FIRST_COMPUTE_US (1200 * SECOND_US)
#define COMPUTE_US (1800 * SECOND_US)
#define BACKOFF_US (3600 * SECOND_US)
#define BACKOFF_MAX_S 300u
#define BACKOFF_AGAIN_US (300 * SECOND_US) /* several 429 in a row count as one */
#define CAREFUL_US (7200 * SECOND_US)      /* so long after a 429 */
#define CAREFUL_MIN_S 10u
#define UNREACHABLE_US (1200 * SECOND_US)
#define UNREACHABLE_MIN_S 180u
#define UNREACHABLE_SPAN_S 720u
#define FEW_FILES 5u
#define IN_A_ROW 3u

void pace_init(struct pace *p, int64_t now_us, bool is_fast)
{
    *p = (struct pace){.interval_s = DEFAULT_S,
                       .is_fast = is_fast,
                       .compute_us = is_fast ? now_us : now_us + FIRST_COMPUTE_US,
                       .is_failing = true,
                       .failing_since_us = now_us,
                       .random_below = random_below};
    if (is_fast)
        p->interval_s = FAST_S;
}

static unsigned by_waiting(size_t n)
{
    static const struct {
        size_t below;
        unsigned interval_s;
    } table[] = {{FEW_FILES, DEFAULT_S}, {25, 45}, {50, 30}, {200, 15}, {1000, 8}};
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        if (n < table[i].below)
            return table[i].interval_s;
    return 3;
}

static unsigned computed(struct pace *p, int64_t now_us, size_t n_waiting)
{
    unsigned s = by_waiting(n_waiting);
    if (p->refused_us && now_us - p->refused_us < CAREFUL_US)
        s = MAX(s * 2, CAREFUL_MIN_S);
    /* While there is more than a few it does not become slower. */
    if (n_waiting >= FEW_FILES && p->previous_s && p->previous_s < s)
        s = p->previous_s;
    p->previous_s = s;
    unsigned base = s * 80 / 100;
    return base + (unsigned) p->random_below((s - base) * 2);
}

static void compute(struct pace *p, int64_t now_us, size_t n_waiting)
{
    if (p->is_fast)
        p->interval_s = FAST_S;
    else if (p->is_failing && now_us - p->failing_since_us > UNREACHABLE_US)
        p->interval_s = UNREACHABLE_MIN_S + (unsigned) p->random_below(UNREACHABLE_SPAN_S);
    else
        p->interval_s = computed(p, now_us, n_waiting);
    p->compute_us = now_us + COMPUTE_US;
}

unsigned pace_next(struct pace *p, int64_t now_us, size_t n_waiting)
{
    bool is_over = p->backoff_until_us && now_us >= p->backoff_until_us;
    if (is_over)
        p->backoff_until_us = 0;
    if (!p->backoff_until_us && (is_over || now_us >= p->compute_us))
        compute(p, now_us, n_waiting);
    return p->interval_s;
}

bool pace_set_fast(struct pace *p, int64_t now_us, bool is_fast)
{
    if (is_fast == p->is_fast)
        return false;
    p->is_fast = is_fast;
    p->compute_us = now_us;
    return true;
}

bool pace_sent(struct pace *p)
{
    p->n_unavailable = 0;
    p->n_sent++;
    if (p->n_sent < IN_A_ROW || !p->is_failing)
        return false;
    p->is_failing = false;
    return true;
}

bool pace_unavailable(struct pace *p, int64_t now_us)
{
    p->n_sent = 0;
    p->n_unavailable++;
    if (p->n_unavailable < IN_A_ROW || p->is_failing)
        return false;
    p->is_failing = true;
    p->failing_since_us = now_us;
    return true;
}

void pace_refused(struct pace *p, int64_t now_us)
{
    if (!p->refused_us || now_us - p->refused_us > BACKOFF_AGAIN_US)
        p->interval_s = MIN(p->interval_s * 2, BACKOFF_MAX_S);
    p->refused_us = MAX(now_us, 1);
    p->backoff_until_us = now_us + BACKOFF_US;
}
