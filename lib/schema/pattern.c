/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

#include "base/alloc.h"

#define ERROR_TEXT_BYTES 256

struct pattern {
    pcre2_code *code;
    bool has_jit;
};

static void free_pattern(void *p)
{
    struct pattern *pattern = p;
    pcre2_code_free(pattern->code);
}

static pcre2_code *compile(struct arena *a, struct str text, struct str *ret_error)
{
    BUF_AUTO translated = {0};
    if (pattern_translate(a, text, &translated, ret_error) < 0)
        return NULL;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        abort();
    (void) pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code = 0;
    PCRE2_SIZE at = 0;
    struct str s = buf_str(&translated);
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR) s.p, s.n,
                                         PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY |
                                             PCRE2_NEVER_BACKSLASH_C,
                                         &code, &at, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        char reason[ERROR_TEXT_BYTES] = "";
        (void) pcre2_get_error_message(code, (PCRE2_UCHAR *) reason, sizeof(reason));
        *ret_error = arena_printf(a, "error parsing regexp: %s: `%.*s`", reason, STR_ARG(text));
    }
    return compiled;
}

int pattern_compile(struct arena *a, struct str text, bool is_fast,
                    const struct pattern **ret_pattern, struct str *ret_error)
{
    pcre2_code *code = compile(a, text, ret_error);
    if (!code)
        return -EINVAL;
    struct pattern *p = ARENA_NEW(a, struct pattern);
    p->code = code;
    p->has_jit = is_fast && pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    arena_on_free(a, free_pattern, p);
    *ret_pattern = p;
    return 0;
}

int pattern_check(struct arena *a, struct str text, struct str *ret_error)
{
    pcre2_code *code = compile(a, text, ret_error);
    if (!code)
        return -EINVAL;
    pcre2_code_free(code);
    return 0;
}

/* ---- matching ----------------------------------------------------------------------------- */

/* PCRE2's contexts are small and live in the matcher; only a match without JIT asks for more. */
static void *matcher_alloc(size_t n, void *ctx)
{
    struct pattern_matcher *m = ctx;
    size_t room = (n + 15) & ~(size_t) 15;
    if (room > sizeof(m->memory) - m->n_used)
        return mem_alloc(n);
    void *p = m->memory + m->n_used;
    m->n_used += room;
    return p;
}

static void matcher_free(void *p, void *ctx)
{
    struct pattern_matcher *m = ctx;
    if ((char *) p < m->memory || (char *) p >= m->memory + sizeof(m->memory))
        mem_free(p);
}

static void matcher_prepare(struct pattern_matcher *m)
{
    m->general = pcre2_general_context_create(matcher_alloc, matcher_free, m);
    m->match = pcre2_match_context_create(m->general);
    (void) pcre2_set_match_limit(m->match, PATTERN_MATCH_LIMIT);
    m->data = pcre2_match_data_create(1, m->general);
}

void pattern_matcher_done(struct pattern_matcher *m)
{
    if (!m->general)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->match);
    pcre2_general_context_free(m->general);
    m->general = NULL;
    m->n_used = 0;
}

bool pattern_matches(struct pattern_matcher *m, const struct pattern *pattern, struct str s)
{
    if (!m->general)
        matcher_prepare(m);
    PCRE2_SPTR text = (PCRE2_SPTR) (s.p ? s.p : "");
    int r = PCRE2_ERROR_JIT_STACKLIMIT;
    if (pattern->has_jit)
        r = pcre2_jit_match(pattern->code, text, s.n, 0, 0, m->data, m->match);
    /* The interpreter keeps its backtracking on the heap, where the JIT's small stack may not do.
     */
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(pattern->code, text, s.n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data,
                        m->match);
    return r >= 0;
}
