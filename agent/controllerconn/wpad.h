/* SPDX-License-Identifier: Apache-2.0 */
/* Where a network keeps its proxy script, and fetching it: done by who watches over the ports, the
 * others see only the script. */
#pragma once

#include "controllerconn/uplink.h"

#define UPLINK_WPAD_MAX_URLS 16
#define UPLINK_WPAD_TIMEOUT_MS 15000

/* `http://wpad.<domain>/wpad.dat` for the domain and those above it, down to but not including
 * the public suffix. Returns how many. */
size_t uplink_wpad_urls(struct arena *a, struct str domain,
                        struct str ret_urls[UPLINK_WPAD_MAX_URLS]);

struct uplink_wpad;
/* Fetches from the port's own URL, or by discovery from its domain. `pac` is base64, absent with
 * `words` when there is none; valid during the call. Never before this returns. */
struct uplink_wpad *uplink_wpad_start(struct uplink *u, const struct uplink_port *port,
                                      void (*on_done)(void *arg, struct str pac, struct str url,
                                                      struct str words),
                                      void *arg);
/* NULL allowed. */
void uplink_wpad_cancel(struct uplink_wpad *w);
