/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a call from beginning to end on this thread, which sleeps while the store writes and may
 * wait for other servers. For controllers, and for calls that meet a webhook. */
#pragma once

#include "api/call.h"

/* c is as for call_run() without resume and on_done. */
void call_run_blocking(struct call *c);
