/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/takeover.h"

#include <errno.h>

#include "adam/objects.h"
#include "adam/takeover_internal.h"
#include "base/uuid.h"
#include "protobuf/message.h"
#include "roster/state.h"

/* Digits of the certificate's digest in the name of its Device. */
#define NAME_DIGITS 8

static void PRINTF_LIKE(3, 4) say(struct adam_takeover *t, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->say(t->ctx, arena_vprintf(a, format, args));
    va_end(args);
}

static struct adam_place place_of(const struct adam_takeover *t, struct arena *a, struct status *st)
{
    return (struct adam_place){t->client, a, t->namespace, st};
}

/* ---- onboarding certificates ----------------------------------------------------------------- */

static size_t split_serials(struct arena *a, struct str text, struct str **ret)
{
    struct str *serials = ARENA_ARRAY(a, struct str, ADAM_MAX_SERIALS);
    size_t n = 0, i = 0;
    while (i < text.n && n < ADAM_MAX_SERIALS) {
        const size_t begin = i;
        while (i < text.n && !memchr(" \t\r\n", text.p[i], 4))
            i++;
        if (i > begin)
            serials[n++] = str_sub(text, begin, i);
        else
            i++;
    }
    *ret = serials;
    return n;
}

/* 1: it is new; 0: it is there; a negative errno with *ret_reason. */
static int take_onboard(struct adam_takeover *t, struct arena *a,
                        const struct adam_stored_onboard *o, struct str *ret_reason)
{
    struct status st;
    struct str *serials = NULL, name = STR_NONE;
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    const char *reason = NULL;
    const struct adam_place place = place_of(t, a, &st);
    const size_t n = split_serials(a, o->serials, &serials);
    *ret_reason = o->problem;
    if (o->problem.p)
        return -EINVAL;
    if (pki_cert_decode(o->cert, &cert, &reason) < 0)
        *ret_reason = str_of(reason);
    else if (!pki_cert_common_name(a, cert).n)
        *ret_reason = STR("the certificate has no common name");
    else if (n == 0)
        *ret_reason = STR("it has no serial numbers, so nobody could register with it");
    if (ret_reason->p)
        return -EINVAL;
    if (!t->client)
        return 1;
    int r = adam_find_onboard(&place, pki_cert_common_name(a, cert), &name);
    if (r == 0)
        return 0;
    if (r == -ENOENT)
        r = adam_put_onboard(&place, cert, serials, n, /* ret_is_new= */ NULL);
    *ret_reason = st.message;
    return r < 0 ? r : 1;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* The Device with this certificate, by the names that it may have. -ENOENT: none. */
static int find_device(const struct adam_place *p, const struct pki_cert *cert,
                       struct json **ret_device)
{
    unsigned char hash[SHA256_BYTES], other[SHA256_BYTES];
    pki_cert_fingerprint(cert, hash);
    const struct str hex = pki_hex(p->arena, hash, sizeof(hash));
    for (size_t n = NAME_DIGITS; n <= hex.n; n += NAME_DIGITS) {
        const struct str name = arena_printf(p->arena, "eve-%.*s", STR_ARG(str_sub(hex, 0, n)));
        const int r = adam_get(p, STR("devices"), name, ret_device);
        if (r < 0)
            return r;
        CLEANUP(pki_cert_freep) struct pki_cert *has = adam_cert_of(*ret_device, "certificate");
        if (has)
            pki_cert_fingerprint(has, other);
        if (has && memcmp(hash, other, sizeof(hash)) == 0)
            return 0;
    }
    return -ENOENT;
}

static int save_state(const struct adam_place *p, const struct json *object,
                      const struct device_state *state)
{
    const struct json *metadata = json_get(object, STR("metadata"));
    const struct device device = {.namespace = p->namespace,
                                  .name = json_get_str(metadata, STR("name")),
                                  .uid = json_get_str(metadata, STR("uid"))};
    if (!state->certificates.p && !state->storage_keys.p && !state->integrity_token.p &&
        !state->has_tpm)
        return 0;
    return device_state_save(p->client, p->arena, &device, state, p->st);
}

/* The device is refused until it is whole: half of it would be told to drop what it runs. */
static int write_device(const struct adam_place *p, const struct taken_device *d,
                        struct json *object)
{
    int r = 0;
    if (!object)
        r = adam_create_device(p,
                               &(struct adam_new_device){.cert = d->cert,
                                                         .onboard = d->onboard,
                                                         .serial = d->serial,
                                                         .uuid = d->uuid,
                                                         .is_held_back = true},
                               &object);
    if (r == 0)
        r = save_state(p, object, &d->state);
    if (r == 0)
        r = adam_put_config(p, object, d->config, /* ret_object= */ NULL);
    if (r == 0)
        r = adam_release_device(p, object);
    return r;
}

static int put_device(struct adam_takeover *t, struct arena *a, const struct taken_device *d,
                      struct str *ret_reason)
{
    struct status st;
    struct json *object = NULL;
    const struct adam_place place = place_of(t, a, &st);
    int r = find_device(&place, d->cert, &object);
    if (r == 0 && !str_eq(json_str(json_at(object, "status", "uuid", NULL)), d->uuid)) {
        *ret_reason = STR("a Device with its certificate is there already, with another UUID");
        return -EEXIST;
    }
    if (r == 0 && !adam_is_held_back(object))
        return 0;
    if (r == 0 || r == -ENOENT)
        r = write_device(&place, d, r == 0 ? object : NULL);
    *ret_reason =
        r == -EEXIST ? STR("a Device in another namespace has its certificate") : st.message;
    return r < 0 ? r : 1;
}

/* The key is the same, so what was encrypted with it stays as it is. Returns how many parts are
 * encrypted with another one. */
static size_t relabel(const struct adam_takeover *t, Eve__Config__EdgeDevConfig *config)
{
    size_t n_foreign = 0;
    for (size_t i = 0; i < config->n_ciphercontexts; i++) {
        Eve__Common__CipherContext *context = config->ciphercontexts[i];
        const struct str hash = pb_bytes(context->controllercerthash);
        if (hash.n && str_starts_with(t->adam_cert_hash, hash))
            context->controllercerthash = pb_data(t->our_cert_hash);
        else if (!t->our_cert_hash.n || !str_eq(hash, t->our_cert_hash))
            n_foreign++;
    }
    return n_foreign;
}

static int take_device(struct adam_takeover *t, struct arena *a,
                       const struct adam_stored_device *stored, struct str *ret_reason)
{
    struct taken_device d = {0};
    int r = stored->problem.p ? -EINVAL : taken_device_read(a, stored, &d, ret_reason);
    if (stored->problem.p)
        *ret_reason = stored->problem;
    if (r == 0 && relabel(t, d.config))
        say(t, a,
            "%.*s: parts of its configuration are encrypted with a certificate that does not "
            "come along (--certs): the device cannot read them",
            STR_ARG(stored->where));
    if (r == 0)
        r = t->client ? put_device(t, a, &d, ret_reason) : 1;
    taken_device_done(&d);
    return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void count(struct adam_takeover *t, struct arena *a, struct adam_count *c, int result,
                  struct str where, struct str reason)
{
    if (result > 0)
        c->n_new++;
    else if (result == 0)
        c->n_there++;
    else
        c->n_left_out++;
    if (result < 0)
        say(t, a, "left out: %.*s: %.*s", STR_ARG(where), STR_ARG(reason));
}

static void take_options(struct adam_takeover *t, struct arena *a, struct str text)
{
    struct status st;
    struct json_parse_result parsed = {0};
    const struct adam_place place = place_of(t, a, &st);
    status_init(&st, a);
    int r = json_parse(a, text, &parsed);
    if (r < 0)
        st.message = parsed.error;
    else
        r = t->client ? adam_put_global_options(&place, parsed.value)
                      : adam_check_global_options(&place, parsed.value);
    t->has_options = r == 0;
    t->are_options_bad = r < 0;
    if (r < 0)
        say(t, a, "left out: the global options: %.*s", STR_ARG(st.message));
}

void adam_take_over(struct adam_takeover *t, const struct adam_store *s)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < s->n_onboards; i++) {
        struct str reason = STR_NONE;
        const int r = take_onboard(t, a, &s->onboards[i], &reason);
        count(t, a, &t->onboards, r, s->onboards[i].where, reason);
        arena_reset(a);
    }
    for (size_t i = 0; i < s->n_devices; i++) {
        struct str reason = STR_NONE;
        const int r = take_device(t, a, &s->devices[i], &reason);
        count(t, a, &t->devices, r, s->devices[i].where, reason);
        arena_reset(a);
    }
    if (s->global_options.p)
        take_options(t, a, s->global_options);
}
