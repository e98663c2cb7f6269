/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided about a configuration; its JSON is dpc_json.c. */
#include "nim/dpc.h"

#include "base/alloc.h"
#include "machine/machine.h"

static void results_done(struct dpc_results *r)
{
    mem_free(r->error);
    mem_free(r->warning);
    *r = (struct dpc_results){0};
}

void dpc_free(struct dpc *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_ports; i++) {
        mem_free(d->ports[i].name);
        mem_free(d->ports[i].label);
        results_done(&d->ports[i].results);
    }
    results_done(&d->results);
    mem_free(d->ports);
    mem_free(d->config);
    mem_free(d->key);
    mem_free(d);
}

static bool is_key(const struct dpc *d, const char *key)
{
    return strcmp(d->key, key) == 0;
}

bool dpc_is_from_controller(const struct dpc *d)
{
    return is_key(d, "zedagent") || is_key(d, "bootstrap");
}

bool dpc_is_manual(const struct dpc *d)
{
    return is_key(d, DPC_KEY_MANUAL);
}

bool dpc_is_last_resort(const struct dpc *d)
{
    return is_key(d, DPC_KEY_LAST_RESORT);
}

bool dpc_has_same_content(const struct dpc *d, const struct dpc *other)
{
    return d->version == other->version && strcmp(d->key, other->key) == 0 &&
           str_eq(str_range(d->config, d->config_bytes),
                  str_range(other->config, other->config_bytes));
}

bool dpc_port_is_management(const struct dpc *d, const struct dpc_port *p)
{
    return p->is_l3 && (p->is_management || d->version == 0);
}

struct dpc_port *dpc_find_port(const struct dpc *d, struct str name)
{
    for (size_t i = 0; i < d->n_ports; i++)
        if (str_is(name, d->ports[i].name))
            return &d->ports[i];
    return NULL;
}

bool dpc_is_usable(const struct dpc *d)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        const struct dpc_port *p = &d->ports[i];
        if (dpc_port_is_management(d, p) && p->dhcp != MACHINE_NONE && !p->has_invalid_config)
            return true;
    }
    return false;
}

bool dpc_is_testable(const struct dpc *d, int64_t wall_us)
{
    if (!dpc_is_usable(d))
        return false;
    if (d->results.failed_us == 0 || d->results.succeeded_us > d->results.failed_us)
        return true;
    /* A failure of the future: the clock has yet to be set, for which the network is needed. */
    return d->results.failed_us > wall_us ||
           wall_us - d->results.failed_us >= DPC_MIN_SINCE_FAILURE_US;
}

bool dpc_is_untested(const struct dpc *d)
{
    return d->results.failed_us == 0 && d->results.succeeded_us == 0 && dpc_is_usable(d);
}

bool dpc_was_working(const struct dpc *d)
{
    return d->results.succeeded_us != 0 && d->results.succeeded_us > d->results.failed_us;
}

/* ---- results ------------------------------------------------------------------------------- */

static void set_words(char **words, struct str text)
{
    mem_free(*words);
    *words = NULL;
    size_t n = MIN(text.n, (size_t) DPC_MAX_WORDS_BYTES);
    /* Not in the middle of a character. */
    while (n > 0 && n < text.n && ((unsigned char) text.p[n] & 0xc0) == 0x80)
        n--;
    if (n == 0)
        return;
    *words = str_dup(str_sub(text, 0, n));
}

void dpc_results_succeed(struct dpc_results *r, int64_t wall_us, struct str warning)
{
    /* Also on a clock that stands still between the two. */
    r->succeeded_us = MAX(wall_us, 1);
    if (r->failed_us >= r->succeeded_us)
        r->failed_us = r->succeeded_us - 1;
    set_words(&r->error, STR_NONE);
    set_words(&r->warning, warning);
}

void dpc_results_fail(struct dpc_results *r, int64_t wall_us, struct str error)
{
    r->failed_us = MAX(wall_us, 1);
    if (r->succeeded_us >= r->failed_us)
        r->succeeded_us = r->failed_us - 1;
    set_words(&r->error, error.n > 0 ? error : STR("unknown error"));
    set_words(&r->warning, STR_NONE);
}

void dpc_results_clear(struct dpc_results *r)
{
    results_done(r);
}

void dpc_results_forgive(struct dpc_results *r)
{
    r->failed_us = 0;
    set_words(&r->error, STR_NONE);
}

void dpc_take_results(struct dpc *d, struct dpc *from)
{
    results_done(&d->results);
    d->results = from->results;
    from->results = (struct dpc_results){0};
    d->ip_and_dns_us = from->ip_and_dns_us;
    d->state = from->state;
    for (size_t i = 0; i < d->n_ports; i++) {
        struct dpc_port *old = dpc_find_port(from, str_of(d->ports[i].name));
        if (!old || d->ports[i].has_invalid_config)
            continue;
        results_done(&d->ports[i].results);
        d->ports[i].results = old->results;
        old->results = (struct dpc_results){0};
    }
}
