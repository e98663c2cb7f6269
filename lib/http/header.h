/* SPDX-License-Identifier: Apache-2.0 */
/* A header of a request or an answer. */
#pragma once

#include "base/str.h"

struct http_header {
    struct str name; /* lower case in requests; any case in answers (sent lower case on HTTP/2) */
    struct str value;
    bool is_unique; /* another answer hardly has the same value: HPACK need not remember it */
};
