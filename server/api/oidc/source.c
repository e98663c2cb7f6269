/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/oidc/claims.h"
#include "api/oidc/oidc.h"
#include "base/alloc.h"
#include "base/log.h"
#include "pki/file.h"

/* One reading of the configuration with its issuers, side by side; immutable. */
struct setup {
    atomic_int n_refs;
    struct arena *arena;
    struct oidc_config config;
    struct oidc_issuer **issuers;
    uintptr_t number; /* of the reading */
};

struct oidc_source {
    struct token_source source;
    struct arena *arena;         /* of the options */
    struct oidc_options options; /* own copies */
    pthread_mutex_t lock;        /* of the pointer */
    struct setup *setup;
    atomic_uintptr_t number; /* of the setup in force */
};

static void setup_unref(struct setup *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; s->issuers && i < s->config.n_rules; i++)
        oidc_issuer_unref(s->issuers[i]);
    arena_free(s->arena);
    mem_free(s);
}

static struct setup *current(struct oidc_source *o)
{
    pthread_mutex_lock(&o->lock);
    struct setup *s = o->setup;
    atomic_fetch_add_explicit(&s->n_refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&o->lock);
    return s;
}

/* ---- configuration --------------------------------------------------------------------------- */

static bool is_given(const char *text)
{
    return text && text[0];
}

bool oidc_is_wanted(const struct oidc_options *o)
{
    return is_given(o->config_path) || oidc_flags_are_set(&o->flags);
}

static int read_file(struct arena *a, const char *path, struct str *ret, struct str *ret_error)
{
    BUF_AUTO text = {0};
    int r = pki_file_read(path, &text);
    if (r < 0)
        *ret_error = arena_printf(a, "cannot read it: %s", strerror(-r));
    else
        *ret = arena_str(a, buf_str(&text));
    return r;
}

static int read_config(const struct oidc_options *o, struct arena *a, struct oidc_config *ret,
                       struct str *ret_error)
{
    struct str text = STR_NONE;
    int r = 0;
    if (!is_given(o->config_path)) {
        if (is_given(o->flags.ca_file))
            r = read_file(a, o->flags.ca_file, &text, ret_error);
        return r < 0 ? r : oidc_config_of_flags(a, &o->flags, text, ret, ret_error);
    }
    if (oidc_flags_are_set(&o->flags)) {
        *ret_error = STR("--authentication-config and --oidc-* flags are mutually exclusive");
        return -EINVAL;
    }
    r = read_file(a, o->config_path, &text, ret_error);
    return r < 0 ? r : oidc_config_parse(a, text, ret, ret_error);
}

static int check_own_issuer(const struct oidc_options *o, struct arena *a,
                            const struct oidc_config *c, struct str *ret_error)
{
    for (size_t i = 0; i < c->n_rules; i++) {
        if (!str_eq(c->rules[i].issuer, o->own_issuer))
            continue;
        *ret_error = arena_printf(a,
                                  "jwt[%zu].issuer.url: Invalid value: \"%.*s\": it is the "
                                  "issuer of this server's ServiceAccount tokens",
                                  i, STR_ARG(o->own_issuer));
        return -EINVAL;
    }
    return 0;
}

static const char *named_file(const struct oidc_options *o)
{
    return is_given(o->config_path)     ? o->config_path
           : is_given(o->flags.ca_file) ? o->flags.ca_file
                                        : "--oidc-issuer-url";
}

/* Whoever was there before keeps its keys. */
static struct oidc_issuer *find_issuer(const struct setup *before, const struct oidc_rules *rules)
{
    for (size_t i = 0; before && i < before->config.n_rules; i++)
        if (oidc_issuer_is(before->issuers[i], rules))
            return oidc_issuer_ref(before->issuers[i]);
    return NULL;
}

static int setup_new(const struct oidc_options *o, const struct setup *before,
                     struct setup **ret_setup, char **ret_error)
{
    struct setup *s = NEW(struct setup);
    atomic_init(&s->n_refs, 1);
    s->arena = arena_new();
    struct str error = STR_NONE;
    int r = read_config(o, s->arena, &s->config, &error);
    if (r == 0)
        r = check_own_issuer(o, s->arena, &s->config, &error);
    if (r < 0) {
        struct buf b = {0};
        buf_printf(&b, "authentication by OIDC: %s: %.*s", named_file(o), STR_ARG(error));
        *ret_error = buf_take(&b);
        setup_unref(s);
        return r;
    }
    s->issuers = ARENA_ARRAY(s->arena, struct oidc_issuer *, s->config.n_rules);
    for (size_t i = 0; i < s->config.n_rules; i++) {
        s->issuers[i] = find_issuer(before, &s->config.rules[i]);
        if (!s->issuers[i])
            s->issuers[i] = oidc_issuer_new(&o->outside, &s->config.rules[i]);
    }
    s->number = before ? before->number + 1 : 1;
    *ret_setup = s;
    return 0;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int verify_by(const struct oidc_options *o, const struct setup *s, struct arena *a,
                     const struct oidc_token *t, bool may_block, struct token_identity *ret,
                     struct str *ret_error)
{
    size_t i = 0;
    while (i < s->config.n_rules && !str_eq(s->config.rules[i].issuer, t->issuer))
        i++;
    if (i == s->config.n_rules)
        return -ENOENT;
    const struct clock *clock = o->outside.clock;
    enum jws_algorithm alg = JWS_RS256;
    /* The signature comes last: what does not hold anyway makes nobody ask the issuer. */
    int r = oidc_token_algorithm(a, &s->config.rules[i], t, &alg, ret_error);
    if (r == 0)
        r = oidc_claims_check(a, &s->config.rules[i], t->claims, clock->wall_us(clock), ret,
                              ret_error);
    if (r < 0)
        return r;
    *ret_error = STR("failed to verify signature: failed to verify id token signature");
    return oidc_issuer_verify(s->issuers[i], alg, t->kid, &t->jws, may_block);
}

static int verify(struct token_source *source, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    struct oidc_source *o = CONTAINER_OF(source, struct oidc_source, source);
    const struct audiences own = o->options.api_audiences;
    const struct audiences common =
        n_audiences ? audiences_common(a, own, (struct audiences){audiences, n_audiences})
                    : audiences_copy(a, own);
    struct token_identity identity = {0};
    struct oidc_token t;
    struct str error = STR_NONE;
    if ((n_audiences && !common.n) || oidc_token_parse(a, token, &t) < 0)
        return -ENOENT;
    struct setup *s = current(o);
    int r = verify_by(&o->options, s, a, &t, may_block, &identity, &error);
    if (r == 0) {
        identity.audiences = common.items;
        identity.n_audiences = common.n;
        /* Whatever may have been copied says which reading it is of, not where that is. */
        identity.basis = (void *) s->number;
        *ret = identity;
    } else if (r == -EACCES) {
        ret->error = arena_printf(a, "oidc: verify token: %.*s", STR_ARG(error));
        /* The client hears no more than 401: who set up the issuer has to find out here. */
        log_debug("refusing token", LOG_STR("issuer", t.issuer), LOG_STR("error", ret->error));
    }
    setup_unref(s);
    return r;
}

/* Who was let in under rules that have changed comes to be looked at again. */
static bool still_valid(struct token_source *source, const struct token_identity *i)
{
    struct oidc_source *o = CONTAINER_OF(source, struct oidc_source, source);
    return (uintptr_t) i->basis == atomic_load(&o->number);
}

static int reload(struct token_source *source, char **ret_error)
{
    struct oidc_source *o = CONTAINER_OF(source, struct oidc_source, source);
    struct setup *before = current(o), *fresh = NULL;
    int r = setup_new(&o->options, before, &fresh, ret_error);
    setup_unref(before);
    if (r < 0)
        return r;
    pthread_mutex_lock(&o->lock);
    before = o->setup;
    o->setup = fresh;
    atomic_store(&o->number, fresh->number);
    pthread_mutex_unlock(&o->lock);
    setup_unref(before);
    return 0;
}

static void free_source(struct token_source *source)
{
    struct oidc_source *o = CONTAINER_OF(source, struct oidc_source, source);
    setup_unref(o->setup);
    pthread_mutex_destroy(&o->lock);
    arena_free(o->arena);
    mem_free(o);
}

static const char *copy_text(struct arena *a, const char *text)
{
    return text ? arena_strz(a, str_of(text)) : NULL;
}

static struct oidc_options copy_options(struct arena *a, const struct oidc_options *o)
{
    struct oidc_options copy = *o;
    copy.api_audiences = audiences_copy(a, o->api_audiences);
    copy.own_issuer = o->own_issuer.p ? arena_str(a, o->own_issuer) : STR_NONE;
    copy.config_path = copy_text(a, o->config_path);
    copy.flags = (struct oidc_flags){
        .issuer_url = copy_text(a, o->flags.issuer_url),
        .client_id = copy_text(a, o->flags.client_id),
        .username_claim = copy_text(a, o->flags.username_claim),
        .username_prefix = copy_text(a, o->flags.username_prefix),
        .groups_claim = copy_text(a, o->flags.groups_claim),
        .groups_prefix = copy_text(a, o->flags.groups_prefix),
        .ca_file = copy_text(a, o->flags.ca_file),
        .required_claims = copy_text(a, o->flags.required_claims),
        .signing_algs = copy_text(a, o->flags.signing_algs),
    };
    return copy;
}

int oidc_source_new(const struct oidc_options *options, struct token_source **ret_source,
                    char **ret_error)
{
    struct setup *s = NULL;
    int r = setup_new(options, NULL, &s, ret_error);
    if (r < 0)
        return r;
    struct oidc_source *o = NEW(struct oidc_source);
    o->source = (struct token_source){.name = "oidc",
                                      .verify = verify,
                                      .still_valid = still_valid,
                                      .reload = reload,
                                      .free = free_source};
    o->arena = arena_new();
    o->options = copy_options(o->arena, options);
    pthread_mutex_init(&o->lock, NULL);
    o->setup = s;
    atomic_init(&o->number, s->number);
    *ret_source = &o->source;
    return 0;
}
