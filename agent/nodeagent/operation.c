/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/operation.h"

#define SECOND_US INT64_C(1000000)

static void enter(struct operation *o, enum operation_state state, int64_t now_us, int64_t delay_s)
{
    o->state = state;
    o->due_us = now_us + delay_s * SECOND_US;
}

bool operation_begin(struct operation *o, enum operation_kind kind, int64_t now_us)
{
    /* What only halts applications gives way to what ends. */
    if (o->kind != OPERATION_NONE && (o->kind != OPERATION_SHUTDOWN || kind == OPERATION_SHUTDOWN))
        return false;
    o->kind = kind;
    enter(o, OPERATION_DELAYED, now_us, OPERATION_DELAY_S);
    return true;
}

enum operation_action operation_step(struct operation *o, int64_t now_us, bool are_halted)
{
    const bool is_due = now_us >= o->due_us;
    switch (o->state) {
    case OPERATION_DELAYED:
        if (!is_due)
            return OPERATION_WAIT;
        enter(o, OPERATION_HALTING, now_us, OPERATION_HALT_S);
        if (o->kind != OPERATION_SHUTDOWN)
            return OPERATION_WRITE_REASON;
        return operation_step(o, now_us, are_halted);
    case OPERATION_HALTING:
        if (!is_due && !are_halted)
            return OPERATION_WAIT;
        enter(o, o->kind == OPERATION_SHUTDOWN ? OPERATION_GONE : OPERATION_LEAVING, now_us,
              OPERATION_DELAY_S);
        return OPERATION_TELL_HALTED;
    case OPERATION_LEAVING:
        if (!is_due)
            return OPERATION_WAIT;
        o->state = OPERATION_GONE;
        return OPERATION_GO;
    case OPERATION_IDLE:
    case OPERATION_GONE:
        break;
    }
    return OPERATION_WAIT;
}

int64_t operation_due_us(const struct operation *o)
{
    return o->state == OPERATION_IDLE || o->state == OPERATION_GONE ? INT64_MAX : o->due_us;
}

void outage_note(struct outage *o, bool is_reached, int64_t now_us)
{
    if (o->is_reached && !is_reached)
        o->since_us = now_us;
    o->is_reached = is_reached;
}

int64_t outage_due_us(const struct outage *o, int64_t limit_s)
{
    return o->is_reached ? INT64_MAX : o->since_us + limit_s * SECOND_US;
}

void lockup_note(struct lockup *l, bool is_locked, bool is_reached, int64_t now_us)
{
    const bool was = l->is_locked && l->is_reached;
    l->is_locked = is_locked;
    /* Once is enough. */
    l->is_reached |= is_reached;
    if (!was)
        l->since_us = now_us;
}

int64_t lockup_due_us(const struct lockup *l, int64_t limit_s)
{
    return l->is_locked && l->is_reached ? l->since_us + limit_s * SECOND_US : INT64_MAX;
}
