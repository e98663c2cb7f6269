/* SPDX-License-Identifier: Apache-2.0 */
/* The formats with a grammar of their own. */
#pragma once

#include "base/str.h"

bool format_is_uri(struct str s); /* what Go's url.ParseRequestURI accepts */
bool format_is_email(
    struct str s); /* what Go's mail.ParseAddress accepts, without comments and groups */
bool format_is_hostname(struct str s);
bool format_is_duration(struct str s); /* Go's 1h2m, and 3 days, 2 weeks */
