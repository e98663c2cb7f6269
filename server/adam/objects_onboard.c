/* SPDX-License-Identifier: Apache-2.0 */
/* Onboarding certificates, which Adam knows by their common name. */
#include <errno.h>

#include "adam/objects.h"

#define RESOURCE STR("onboardcertificates")

/* ---- finding --------------------------------------------------------------------------------- */

struct search {
    struct arena *arena;
    struct str common_name;
    struct str found;
};

static int look(void *ctx, const struct json *object)
{
    struct search *s = ctx;
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_cert_freep) struct pki_cert *cert = adam_cert_of(object, "certificate");
    if (!cert || !str_eq(pki_cert_common_name(a, cert), s->common_name))
        return 0;
    s->found = arena_str(s->arena, json_str(json_at(object, "metadata", "name", NULL)));
    return 1;
}

int adam_find_onboard(const struct adam_place *p, struct str common_name, struct str *ret_name)
{
    struct search s = {.arena = p->arena, .common_name = common_name};
    const int r = adam_each(p, RESOURCE, look, &s);
    if (r > 0)
        *ret_name = s.found;
    return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct json spec_of(struct arena *a, const struct pki_cert *cert, const struct str *serials,
                           size_t n_serials)
{
    struct json spec = json_object(), list = json_array();
    for (size_t i = 0; i < n_serials; i++)
        (void) json_push(a, &list, json_string(serials[i]));
    adam_add(a, &spec, "certificate", pki_cert_pem(a, cert));
    (void) json_append_member(a, &spec, STR("serials"), list);
    return spec;
}

static int create(const struct adam_place *p, struct str name, struct json spec)
{
    struct json object = json_object(), metadata = json_object();
    adam_add(p->arena, &metadata, "name", name);
    adam_add(p->arena, &metadata, "namespace", p->namespace);
    adam_add(p->arena, &object, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    adam_add(p->arena, &object, "kind", STR("OnboardCertificate"));
    (void) json_append_member(p->arena, &object, STR("metadata"), metadata);
    (void) json_append_member(p->arena, &object, STR("spec"), spec);
    return adam_write(p, VERB_CREATE, RESOURCE, STR_NONE, &object, NULL);
}

/* The name is taken by a certificate with another common name. */
static struct str other_name(struct arena *a, const struct pki_cert *cert)
{
    unsigned char hash[SHA256_BYTES];
    pki_cert_fingerprint(cert, hash);
    return arena_printf(a, "onboard-%.*s", STR_ARG(pki_hex(a, hash, sizeof(hash) / 2)));
}

static int put_once(const struct adam_place *p, struct str common_name, const struct pki_cert *cert,
                    struct json spec, bool *ret_is_new)
{
    struct str name = STR_NONE;
    struct json *object = NULL;
    int r = adam_find_onboard(p, common_name, &name);
    *ret_is_new = r == -ENOENT;
    if (r == -ENOENT) {
        r = create(p, adam_name_of(p->arena, common_name), spec);
        return r == -EEXIST ? create(p, other_name(p->arena, cert), spec) : r;
    }
    if (r == 0)
        r = adam_get(p, RESOURCE, name, &object);
    if (r < 0)
        return r == -ENOENT ? -ESTALE : r;
    (void) json_set(p->arena, object, STR("spec"), spec);
    return adam_write(p, VERB_UPDATE, RESOURCE, name, object, NULL);
}

int adam_put_onboard(const struct adam_place *p, const struct pki_cert *cert,
                     const struct str *serials, size_t n_serials, bool *ret_is_new)
{
    const struct str common_name = pki_cert_common_name(p->arena, cert);
    const struct json spec = spec_of(p->arena, cert, serials, n_serials);
    bool is_new = false;
    int r = -ESTALE;
    for (int i = 0; i < ADAM_MAX_ATTEMPTS && (r == -ESTALE || r == -EEXIST); i++)
        r = put_once(p, common_name, cert, spec, &is_new);
    if (r == 0 && ret_is_new)
        *ret_is_new = is_new;
    return r;
}
