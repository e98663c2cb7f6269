/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

/* Nobody waits for an answer, and systemd's absence is no reason to fail. */
static void tell(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* the abstract name space */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void) sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *) &to,
                  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n));
    (void) close(fd);
}

void notify_ready(void)
{
    tell("READY=1");
}

void notify_reloading(void)
{
    char text[64];
    (void) snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                    clock_system.monotonic_us(&clock_system));
    tell(text);
}

void notify_stopping(void)
{
    tell("STOPPING=1");
}

void notify_watchdog(void)
{
    tell("WATCHDOG=1");
}

int64_t notify_watchdog_ms(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t period = 0, whose = getpid();
    if (!us || str_to_i64(str_of(us), &period) < 0 || period <= 0)
        return 0;
    if (pid && (str_to_i64(str_of(pid), &whose) < 0 || whose != getpid()))
        return 0;
    return period / 2000 > 0 ? period / 2000 : 1;
}
