/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/machine.h"

#include "base/lang.h"

struct move {
    enum attest_state state;
    enum attest_event event;
    enum attest_action action;
    enum attest_state next;
};

/* clang-format off */
static const struct move moves[] = {
    {ATTEST_NONE,                 ATTEST_START,     ATTEST_ASK_NONCE,   ATTEST_NONCE_WAIT},
    {ATTEST_NONE,                 ATTEST_RESTART,   ATTEST_ASK_NONCE,   ATTEST_NONCE_WAIT},

    {ATTEST_NONCE_WAIT,           ATTEST_NONCE,     ATTEST_ASK_QUOTE,   ATTEST_INTERNAL_QUOTE_WAIT},
    {ATTEST_NONCE_WAIT,           ATTEST_FAILED,    ATTEST_START_TIMER, ATTEST_NONCE_WAIT},
    {ATTEST_NONCE_WAIT,           ATTEST_TIMEOUT,   ATTEST_ASK_NONCE,   ATTEST_NONCE_WAIT},

    {ATTEST_INTERNAL_QUOTE_WAIT,  ATTEST_QUOTE,     ATTEST_SEND_QUOTE,  ATTEST_WAIT},

    {ATTEST_WAIT,                 ATTEST_GRANTED,   ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},
    {ATTEST_WAIT,                 ATTEST_DENIED,    ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
    {ATTEST_WAIT,                 ATTEST_FAILED,    ATTEST_START_TIMER, ATTEST_WAIT},
    {ATTEST_WAIT,                 ATTEST_TIMEOUT,   ATTEST_SEND_QUOTE,  ATTEST_WAIT},

    {ATTEST_ESCROW_WAIT,          ATTEST_RECORDED,  ATTEST_FINISH,      ATTEST_COMPLETE},
    {ATTEST_ESCROW_WAIT,          ATTEST_NO_ESCROW, ATTEST_DO_NOTHING,  ATTEST_INTERNAL_ESCROW_WAIT},
    {ATTEST_ESCROW_WAIT,          ATTEST_DENIED,    ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
    {ATTEST_ESCROW_WAIT,          ATTEST_FAILED,    ATTEST_START_TIMER, ATTEST_ESCROW_WAIT},
    {ATTEST_ESCROW_WAIT,          ATTEST_TIMEOUT,   ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},

    {ATTEST_INTERNAL_ESCROW_WAIT, ATTEST_ESCROW,    ATTEST_SEND_ESCROW, ATTEST_ESCROW_WAIT},

    {ATTEST_RESTART_WAIT,         ATTEST_TIMEOUT,   ATTEST_ASK_NONCE,   ATTEST_NONCE_WAIT},

    {ATTEST_COMPLETE,             ATTEST_RESTART,   ATTEST_START_TIMER, ATTEST_RESTART_WAIT},
};
/* clang-format on */

static const struct move *find(enum attest_state state, enum attest_event event)
{
    for (size_t i = 0; i < N_ELEMENTS(moves); i++)
        if (moves[i].state == state && moves[i].event == event)
            return &moves[i];
    return NULL;
}

enum attest_action attest_machine_step(struct attest_machine *m, enum attest_event e)
{
    const struct move *move = find(m->state, e);
    if (!move) {
        m->restarts |= e == ATTEST_RESTART;
        return ATTEST_DO_NOTHING;
    }
    /* Who was not convinced before this moment is now. */
    if (m->state == ATTEST_RESTART_WAIT || e == ATTEST_GRANTED)
        m->restarts = false;
    m->state = move->next;
    if (m->state != ATTEST_COMPLETE || !m->restarts)
        return move->action;
    m->state = ATTEST_RESTART_WAIT;
    return ATTEST_START_TIMER;
}

const char *attest_state_name(enum attest_state s)
{
    static const char *const names[ATTEST_STATES] = {
        "none",        "nonce wait",         "internal quote wait", "internal escrow wait",
        "attest wait", "attest escrow wait", "restart wait",        "complete"};
    return s < ATTEST_STATES ? names[s] : "?";
}
