/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd wants to hear of a service of type notify: states as text in a datagram to the
 * socket that NOTIFY_SOCKET names. Without one nothing happens. */
#pragma once

#include <stdint.h>

void notify_ready(void);
/* Before and after the configuration is read again. */
void notify_reloading(void);
void notify_stopping(void);
void notify_watchdog(void);
/* How often notify_watchdog() is due, in ms: half of what systemd allows; 0: it does not watch. */
int64_t notify_watchdog_ms(void);
