/* SPDX-License-Identifier: Apache-2.0 */
/* The course of an attestation: what happens in which state, and nothing else. No I/O, no time.
 *
 *     NONE -> NONCE_WAIT -> INTERNAL_QUOTE_WAIT -> WAIT -> ESCROW_WAIT -> COMPLETE
 *                 ^                                 |        |  ^  |         |
 *                 |                                 v        v  |  v         |
 *                 +------- RESTART_WAIT <-----------+--------+  INTERNAL_    |
 *                               ^                               ESCROW_WAIT  |
 *                               +--------------------------------------------+
 *
 * A request that was not answered is repeated from its own state; an answer that says no begins
 * anew with another nonce. */
#pragma once

#include <stdbool.h>

/* As ZedAgentStatus.AttestState and device info number them. */
enum attest_state {
    ATTEST_NONE = 0,
    ATTEST_NONCE_WAIT = 1,
    ATTEST_INTERNAL_QUOTE_WAIT = 2,  /* whoever has the TPM */
    ATTEST_INTERNAL_ESCROW_WAIT = 3, /* whoever has the vault's key */
    ATTEST_WAIT = 4,
    ATTEST_ESCROW_WAIT = 5,
    ATTEST_RESTART_WAIT = 6,
    ATTEST_COMPLETE = 7,
    ATTEST_STATES,
};

enum attest_event {
    ATTEST_START,
    ATTEST_NONCE,     /* the controller gave one */
    ATTEST_QUOTE,     /* the TPM's owner has made it */
    ATTEST_GRANTED,   /* the controller took the quote */
    ATTEST_DENIED,    /* nonce, quote or certificate, or the token of an escrow, is not accepted */
    ATTEST_ESCROW,    /* the vault's key can be sent */
    ATTEST_NO_ESCROW, /* it is not known yet */
    ATTEST_RECORDED,  /* the controller keeps it, or there is nothing to keep */
    ATTEST_FAILED,    /* nobody answered, or nonsense */
    ATTEST_TIMEOUT,
    ATTEST_RESTART, /* the controller wants to be convinced again */
    ATTEST_EVENTS,
};

enum attest_action {
    ATTEST_DO_NOTHING,
    ATTEST_ASK_NONCE,
    ATTEST_ASK_QUOTE,
    ATTEST_SEND_QUOTE,
    ATTEST_SEND_ESCROW,
    ATTEST_START_TIMER, /* of a retry: ATTEST_TIMEOUT follows */
    ATTEST_FINISH,
};

struct attest_machine {
    enum attest_state state;
    bool restarts; /* as soon as the attempt under way is over, unless it is what was wanted */
};
/* What to do now. An event that means nothing in the state changes nothing: answers and timers may
 * come late. */
enum attest_action attest_machine_step(struct attest_machine *m, enum attest_event e);
const char *attest_state_name(enum attest_state s);
