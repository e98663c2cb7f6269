/* SPDX-License-Identifier: Apache-2.0 */
/* The script engine and the functions it calls. */
#include <duktape.h>
#include <stdlib.h>
#include <unistd.h>

/* sys/param.h came along. */
#undef MIN
#undef MAX

#include "base/alloc.h"
#include "controllerconn/pac.h"
#include "controllerconn/pac_functions.h"
#include "controllerconn/url.h"

#define MAX_RANGE_ARGS 7

struct evaluation {
    struct str script, url;
    const struct uplink_pac_world *world;
    struct buf *text;
    enum uplink_pac_result result;
    bool asks;
    size_t n_bytes; /* that the engine holds */
};

/* ---- memory -------------------------------------------------------------------------------- */

/* Each block has its size before it, aligned for anything. */
union block {
    size_t n;
    max_align_t align;
};

static void *limited_realloc(void *udata, void *p, duk_size_t n)
{
    struct evaluation *e = udata;
    union block *old = p ? (union block *) p - 1 : NULL;
    const size_t before = old ? old->n : 0;
    if (n > UPLINK_PAC_MAX_MEMORY_BYTES || e->n_bytes - before + n > UPLINK_PAC_MAX_MEMORY_BYTES)
        return NULL;
    union block *b = mem_realloc(old, sizeof(*b) + n);
    b->n = n;
    e->n_bytes += n - before;
    return b + 1;
}

static void *limited_alloc(void *udata, duk_size_t n)
{
    return n ? limited_realloc(udata, NULL, n) : NULL;
}

static void *limited_resize(void *udata, void *p, duk_size_t n)
{
    return limited_realloc(udata, p, n);
}

static void limited_free(void *udata, void *p)
{
    struct evaluation *e = udata;
    if (!p)
        return;
    union block *b = (union block *) p - 1;
    e->n_bytes -= b->n;
    mem_free(b);
}

/* ---- functions of the script --------------------------------------------------------------- */

static struct evaluation *evaluation_of(duk_context *ctx)
{
    duk_memory_functions f;
    duk_get_memory_functions(ctx, &f);
    return f.udata;
}

static struct str string_at(duk_context *ctx, duk_idx_t i)
{
    duk_size_t n = 0;
    const char *p = duk_safe_to_lstring(ctx, i, &n);
    return str_range(p, n);
}

/* The address of a name, itself if it is one; empty: it has none. Throws when nobody knows yet. */
static struct str resolve(duk_context *ctx, struct str name)
{
    struct evaluation *e = evaluation_of(ctx);
    if (uplink_address_is_literal(name))
        return name;
    for (size_t i = 0; i < e->world->n_names; i++)
        if (str_eq_nocase(e->world->names[i].name, name))
            return e->world->names[i].address;
    if (!e->asks && e->world->n_names < UPLINK_PAC_MAX_NAMES && name.n > 0 && name.n < 254) {
        e->asks = true; /* counts even if the script catches this */
        buf_reset(e->text);
        buf_append_str(e->text, name);
    }
    (void) duk_error(ctx, DUK_ERR_ERROR, "name not known yet");
    return STR_NONE;
}

static duk_ret_t push_bool(duk_context *ctx, bool b)
{
    duk_push_boolean(ctx, b);
    return 1;
}

static duk_ret_t is_plain_host_name(duk_context *ctx)
{
    return push_bool(ctx, str_find(string_at(ctx, 0), '.') < 0);
}

static duk_ret_t dns_domain_is(duk_context *ctx)
{
    const struct str host = string_at(ctx, 0), domain = string_at(ctx, 1);
    return push_bool(ctx, host.n >= domain.n &&
                              str_eq_nocase(str_from(host, host.n - domain.n), domain));
}

static duk_ret_t local_host_or_domain_is(duk_context *ctx)
{
    const struct str host = string_at(ctx, 0), full = string_at(ctx, 1);
    if (str_find(host, '.') >= 0)
        return push_bool(ctx, str_eq_nocase(host, full));
    const ptrdiff_t dot = str_find(full, '.');
    return push_bool(ctx, str_eq_nocase(host, dot < 0 ? full : str_sub(full, 0, (size_t) dot)));
}

static duk_ret_t is_resolvable(duk_context *ctx)
{
    return push_bool(ctx, resolve(ctx, string_at(ctx, 0)).n > 0);
}

static duk_ret_t is_in_net(duk_context *ctx)
{
    return push_bool(ctx, uplink_pac_is_in_net(resolve(ctx, string_at(ctx, 0)), string_at(ctx, 1),
                                               string_at(ctx, 2)));
}

static duk_ret_t dns_resolve(duk_context *ctx)
{
    const struct str address = resolve(ctx, string_at(ctx, 0));
    if (address.n == 0)
        duk_push_null(ctx);
    else
        (void) duk_push_lstring(ctx, address.p, address.n);
    return 1;
}

static duk_ret_t my_ip_address(duk_context *ctx)
{
    const struct str mine = evaluation_of(ctx)->world->my_address;
    (void) duk_push_lstring(ctx, mine.n ? mine.p : "127.0.0.1", mine.n ? mine.n : 9);
    return 1;
}

static duk_ret_t dns_domain_levels(duk_context *ctx)
{
    const struct str host = string_at(ctx, 0);
    unsigned n = 0;
    for (size_t i = 0; i < host.n; i++)
        n += host.p[i] == '.';
    duk_push_uint(ctx, n);
    return 1;
}

static duk_ret_t sh_exp_match(duk_context *ctx)
{
    return push_bool(ctx, uplink_pac_glob(string_at(ctx, 0), string_at(ctx, 1)));
}

static duk_ret_t convert_addr(duk_context *ctx)
{
    uint32_t v = 0;
    (void) uplink_pac_ipv4(string_at(ctx, 0), &v);
    duk_push_uint(ctx, v);
    return 1;
}

static duk_ret_t alert(duk_context *ctx)
{
    (void) ctx;
    return 0;
}

typedef bool range_function(const struct uplink_pac_arg *args, size_t n, const struct tm *now);

static duk_ret_t in_range(duk_context *ctx, range_function *is_in)
{
    struct uplink_pac_arg args[MAX_RANGE_ARGS];
    size_t n = (size_t) MIN(duk_get_top(ctx), MAX_RANGE_ARGS);
    for (size_t i = 0; i < n; i++) {
        const bool is_number = duk_is_number(ctx, (duk_idx_t) i);
        args[i] =
            (struct uplink_pac_arg){.is_number = is_number,
                                    .number = is_number ? duk_get_number(ctx, (duk_idx_t) i) : 0,
                                    .word = is_number ? STR_NONE : string_at(ctx, (duk_idx_t) i)};
    }
    const time_t now_s = (time_t) (evaluation_of(ctx)->world->wall_us / 1000000);
    struct tm now;
    if (n > 0 && str_is(args[n - 1].word, "GMT")) {
        (void) gmtime_r(&now_s, &now);
        n--;
    } else {
        (void) localtime_r(&now_s, &now);
    }
    return push_bool(ctx, is_in(args, n, &now));
}

static duk_ret_t weekday_range(duk_context *ctx)
{
    return in_range(ctx, uplink_pac_weekday_range);
}

static duk_ret_t date_range(duk_context *ctx)
{
    return in_range(ctx, uplink_pac_date_range);
}

static duk_ret_t time_range(duk_context *ctx)
{
    return in_range(ctx, uplink_pac_time_range);
}

static const duk_function_list_entry functions[] = {
    {"isPlainHostName", is_plain_host_name, 1},
    {"dnsDomainIs", dns_domain_is, 2},
    {"localHostOrDomainIs", local_host_or_domain_is, 2},
    {"isResolvable", is_resolvable, 1},
    {"isInNet", is_in_net, 3},
    {"dnsResolve", dns_resolve, 1},
    {"convert_addr", convert_addr, 1},
    {"myIpAddress", my_ip_address, 0},
    {"dnsDomainLevels", dns_domain_levels, 1},
    {"shExpMatch", sh_exp_match, 2},
    {"weekdayRange", weekday_range, DUK_VARARGS},
    {"dateRange", date_range, DUK_VARARGS},
    {"timeRange", time_range, DUK_VARARGS},
    {"alert", alert, 1},
    {NULL, NULL, 0},
};

/* ---- evaluation ---------------------------------------------------------------------------- */

/* Runs protected: what it throws ends it. */
static duk_ret_t run(duk_context *ctx, void *arg)
{
    struct evaluation *e = arg;
    struct uplink_url u;
    if (uplink_url_parse(e->url, &u) < 0)
        return 0;
    duk_push_global_object(ctx);
    duk_put_function_list(ctx, -1, functions);
    duk_pop(ctx);
    duk_eval_lstring_noresult(ctx, e->script.p, e->script.n);
    (void) duk_get_global_string(ctx, "FindProxyForURL");
    (void) duk_push_lstring(ctx, e->url.p, e->url.n);
    (void) duk_push_lstring(ctx, u.host.p, u.host.n);
    duk_call(ctx, 2);
    duk_size_t n = 0;
    const char *answer = duk_get_lstring(ctx, -1, &n);
    if (answer && n <= UPLINK_PAC_MAX_ANSWER_BYTES && !e->asks) {
        buf_append(e->text, answer, n);
        e->result = UPLINK_PAC_ANSWERED;
    }
    return 0;
}

/* Only what is not protected gets here: the heap cannot be used any more. */
static void on_fatal(void *udata, const char *message)
{
    (void) udata;
    (void) message;
    abort();
}

enum uplink_pac_result uplink_pac_evaluate(struct str script, struct str url,
                                           const struct uplink_pac_world *w, struct buf *ret_text)
{
    struct evaluation e = {
        .script = script, .url = url, .world = w, .text = ret_text, .result = UPLINK_PAC_FAILED};
    duk_context *ctx = duk_create_heap(limited_alloc, limited_resize, limited_free, &e, on_fatal);
    if (!ctx)
        return UPLINK_PAC_FAILED;
    (void) duk_safe_call(ctx, run, &e, /* nargs= */ 0, /* nrets= */ 1);
    duk_destroy_heap(ctx);
    return e.asks ? UPLINK_PAC_ASKS : e.result;
}
