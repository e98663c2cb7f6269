/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a command to the end of this life, and how long one may be without a controller.
 * Only time and decisions: no I/O.
 *
 *     IDLE -> DELAYED (30 s) -> HALTING (until applications are, 300 s) -> LEAVING (30 s) -> GONE
 *
 * A shutdown ends when applications have halted, and may be followed by a reboot. */
#pragma once

#include "base/lang.h"

#define OPERATION_DELAY_S 30
#define OPERATION_HALT_S 300

enum operation_kind { OPERATION_NONE, OPERATION_SHUTDOWN, OPERATION_REBOOT, OPERATION_POWEROFF };
enum operation_state {
    OPERATION_IDLE,
    OPERATION_DELAYED,
    OPERATION_HALTING,
    OPERATION_LEAVING,
    OPERATION_GONE,
};

struct operation {
    enum operation_kind kind;
    enum operation_state state;
    int64_t due_us; /* on the monotonic clock */
};

enum operation_action {
    OPERATION_WAIT,         /* until due_us, or applications have halted */
    OPERATION_WRITE_REASON, /* everything may end from now on */
    OPERATION_TELL_HALTED,
    OPERATION_GO, /* the machine's turn */
};

/* False: another goes on already that is not to be disturbed. */
bool operation_begin(struct operation *o, enum operation_kind kind, int64_t now_us);
/* The next thing to do; again until it is to wait. */
enum operation_action operation_step(struct operation *o, int64_t now_us, bool are_halted);
/* INT64_MAX: nothing is. */
int64_t operation_due_us(const struct operation *o);

/* ConfigGetStatus says when it changes, not how long it lasts: a controller that is reached is
 * reached all the time until we hear otherwise. */
struct outage {
    bool is_reached;
    int64_t since_us; /* when it was last, or this life began */
};
void outage_note(struct outage *o, bool is_reached, int64_t now_us);
/* When it has lasted longer than it may; INT64_MAX: there is none. */
int64_t outage_due_us(const struct outage *o, int64_t limit_s);

/* A vault that does not open is given time from when the controller is reached, which may have its
 * key. */
struct lockup {
    bool is_locked, is_reached;
    int64_t since_us; /* both */
};
void lockup_note(struct lockup *l, bool is_locked, bool is_reached, int64_t now_us);
int64_t lockup_due_us(const struct lockup *l, int64_t limit_s);
