/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as users of Kubernetes write them: Go's syntax (RE2), checked in Go's words,
 * run by PCRE2 with a limit on the work of one match. The only module that knows PCRE2. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#define PATTERN_MAX_BYTES (64 * 1024)
#define PATTERN_MATCH_LIMIT \
    100000 /* steps of one match; past them the text counts as no match \
            */

struct pattern;

/* Compiles for matching, to machine code if is_fast; shared by threads, freed with the arena.
 * -EINVAL: *ret_error says why, as Go does: error parsing regexp: missing closing ): `(` */
int pattern_compile(struct arena *a, struct str text, bool is_fast,
                    const struct pattern **ret_pattern, struct str *ret_error);
/* As pattern_compile() without the result. The error is in the arena. */
int pattern_check(struct arena *a, struct str text, struct str *ret_error);

/* The working memory of matches, for one thread at a time; {0} is ready. */
struct pattern_matcher {
    void *general, *match, *data; /* PCRE2's contexts, in `memory` while they fit */
    size_t n_used;
    _Alignas(16) char memory[1024];
};
/* Does some part of s match. s is valid UTF-8. */
bool pattern_matches(struct pattern_matcher *m, const struct pattern *pattern, struct str s);
void pattern_matcher_done(struct pattern_matcher *m);

/* The translation of Go's syntax into PCRE2's, appended to out. -EINVAL as above. */
int pattern_translate(struct arena *a, struct str text, struct buf *out, struct str *ret_error);
