/* SPDX-License-Identifier: Apache-2.0 */
/* What a line of syslog or of the kernel says. No I/O. */
#pragma once

#include "base/str.h"

/* 0..7: "emerg" .. "debug". */
const char *loginput_severity(unsigned level);
/* Of a severity, or of a config item that says how far lines are wanted: EVE's words for both,
 * "all" and "none" (-1). 7 for what is none of them. */
int loginput_level(struct str word);

struct loginput {
    unsigned level; /* 0..7 */
    struct str source, pid, content;
    uint64_t sequence; /* of the kernel */
    int64_t boot_us;   /* of the kernel: since the start of the machine */
};

/* A datagram of syslog(3): `<pri>time [host] tag[pid]: content`. Whatever it is, it is a line. */
struct loginput loginput_syslog(struct str datagram);
/* A record of /dev/kmsg: `pri,sequence,us,flags;content`. -EBADMSG otherwise. */
int loginput_kernel(struct str record, struct loginput *ret);
