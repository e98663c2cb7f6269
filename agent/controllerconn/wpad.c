/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/wpad.h"

#include <libpsl.h>

#include "base/alloc.h"
#include "base/base64.h"

#define CONTENT_TYPE "application/x-ns-proxy-autoconfig"

size_t uplink_wpad_urls(struct arena *a, struct str domain,
                        struct str ret_urls[UPLINK_WPAD_MAX_URLS])
{
    size_t n = 0;
    domain = str_trim(domain);
    while (domain.n > 0 && domain.p[domain.n - 1] == '.')
        domain.n--;
    while (domain.n > 0 && domain.n < 254 && n < UPLINK_WPAD_MAX_URLS) {
        /* Whoever owns wpad.co.uk must not become everybody's proxy. */
        if (psl_is_public_suffix(psl_builtin(), arena_strz(a, domain)))
            break;
        ret_urls[n++] = arena_printf(a, "http://wpad.%.*s/wpad.dat", STR_ARG(domain));
        const ptrdiff_t dot = str_find(domain, '.');
        if (dot < 0)
            break;
        domain = str_from(domain, (size_t) dot + 1);
    }
    return n;
}

struct uplink_wpad {
    struct uplink *uplink;
    struct arena *arena;
    struct str port;
    struct str urls[UPLINK_WPAD_MAX_URLS];
    size_t n_urls, at;
    struct uplink_call *call;
    struct buf words;
    void (*on_done)(void *arg, struct str pac, struct str url, struct str words);
    void *arg;
};

static void fetch_next(struct uplink_wpad *w);

void uplink_wpad_cancel(struct uplink_wpad *w)
{
    if (!w)
        return;
    if (w->call)
        uplink_cancel(w->call);
    buf_done(&w->words);
    arena_free(w->arena);
    mem_free(w);
}

static bool is_script(const struct uplink_answer *a)
{
    struct str type = a->content_type, first = STR_NONE;
    (void) str_split(&type, ';', &first);
    /* In base64 it must still fit the port's status. */
    return a->http_status == 200 && str_eq_nocase(str_trim(first), STR(CONTENT_TYPE)) &&
           a->body.n > 0 && a->body.n <= UPLINK_MAX_PAC_BYTES / 4 * 3 - 3;
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    struct uplink_wpad *w = arg;
    const struct str url = w->urls[w->at];
    w->call = NULL;
    if (a->error == 0 && is_script(a)) {
        w->on_done(w->arg, base64_encode(w->arena, a->body, BASE64_STANDARD), url, STR_NONE);
        uplink_wpad_cancel(w);
        return;
    }
    buf_printf(&w->words, "%s%.*s: %.*s", w->words.n ? "; " : "", STR_ARG(url),
               STR_ARG(a->error < 0 ? a->words : STR("no proxy script")));
    w->at++;
    if (w->at < w->n_urls) {
        fetch_next(w);
        return;
    }
    w->on_done(w->arg, STR_NONE, STR_NONE, buf_str(&w->words));
    uplink_wpad_cancel(w);
}

static void fetch_next(struct uplink_wpad *w)
{
    const struct uplink_request r = {.url = w->urls[w->at],
                                     .port = w->port,
                                     .forbids_proxy = true,
                                     .bails_on_http_error = true,
                                     .budget_ms = UPLINK_WPAD_TIMEOUT_MS};
    w->call = uplink_send(w->uplink, &r, on_answer, w);
}

struct uplink_wpad *uplink_wpad_start(struct uplink *u, const struct uplink_port *port,
                                      void (*on_done)(void *arg, struct str pac, struct str url,
                                                      struct str words),
                                      void *arg)
{
    struct uplink_wpad *w = NEW(struct uplink_wpad);
    w->uplink = u;
    w->arena = arena_new();
    w->port = arena_str(w->arena, port->name);
    w->on_done = on_done;
    w->arg = arg;
    if (port->wpad_url.n > 0)
        w->urls[w->n_urls++] = arena_str(w->arena, port->wpad_url);
    else
        w->n_urls = uplink_wpad_urls(w->arena, port->domain, w->urls);
    /* Without a domain there is still a name in the local one. */
    if (w->n_urls == 0)
        w->urls[w->n_urls++] = STR("http://wpad/wpad.dat");
    fetch_next(w);
    return w;
}
