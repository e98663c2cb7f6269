/* SPDX-License-Identifier: Apache-2.0 */
/* ListOptions: what list, watch and deletecollection may be asked, checked as kube-apiserver does.
 */
#pragma once

#include "api/call.h"

enum version_match { MATCH_UNSET, MATCH_EXACT, MATCH_NOT_OLDER };

struct list_options {
    struct selector selector;
    int64_t limit;
    struct str continue_token;
    int64_t revision; /* -1: not given */
    enum version_match match;
    bool sends_initial_events, has_initial_events; /* watch: the value, and whether it was given */
    bool allows_bookmarks;
    int64_t timeout_s; /* 0: not given */
};

int list_options_parse(struct call *c, bool is_watch, struct list_options *ret);
/* A resourceVersion parameter: -1 when absent. */
int list_options_revision(struct call *c, int64_t *ret_revision);
