/* SPDX-License-Identifier: Apache-2.0 */
/* Why the device started, as the life before has written it down; and the writing. The files are
 * those that EVE's agents leave when they die. */
#pragma once

#include "node/node.h"

/* As NodeAgentStatus and device info number them. */
enum boot_reason {
    BOOT_NONE = 0,
    BOOT_FIRST = 1,
    BOOT_REBOOT_COMMAND = 2,
    BOOT_UPDATE = 3,
    BOOT_FALLBACK = 4,
    BOOT_DISCONNECT = 5,
    BOOT_FATAL = 6,
    BOOT_OUT_OF_MEMORY = 7,
    BOOT_WATCHDOG_HUNG = 8,
    BOOT_WATCHDOG_PID = 9,
    BOOT_KERNEL = 10,
    BOOT_POWER_FAIL = 11,
    BOOT_UNKNOWN = 12,
    BOOT_VAULT_FAILURE = 13,
    BOOT_POWEROFF_COMMAND = 14,
    BOOT_KUBE_TRANSITION = 15,
    BOOT_HARDWARE_WATCHDOG = 16,
    BOOT_PARSE_FAIL = 255,
};
const char *boot_reason_name(enum boot_reason r);
/* Of a file; empty: BOOT_NONE. */
enum boot_reason boot_reason_parse(struct str text);

#define REASONS_MAX_BYTES ((size_t) 16 * 1024)
/* A longer stack is cut. */
#define REASONS_MAX_STACK_BYTES 1600

struct reasons {
    struct str reason, stack, image;
    enum boot_reason boot;
    int64_t wall_us;          /* when the life before came to its end, as far as that is known */
    uint32_t restart_counter; /* how many lives there were */
};
/* Reads them and clears them: each is told of one start. Strings in the arena. */
struct reasons reasons_take(struct node *n, struct arena *a);
/* On disk before it returns. The first reason of a life is the one that counts; later words are
 * added to its own. */
int reasons_leave(struct node *n, struct str reason, enum boot_reason boot);
