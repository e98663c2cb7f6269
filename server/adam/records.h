/* SPDX-License-Identifier: Apache-2.0 */
/* A record of telemetry as Adam writes it. */
#pragma once

#include "reading/lines.h"

/* Appends a line of JSON, or the message itself when the reader wants bytes; nothing for what
 * cannot be read. */
void adam_write_line(const struct line *line, bool is_binary, struct buf *to);
