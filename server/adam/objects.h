/* SPDX-License-Identifier: Apache-2.0 */
/* Our objects as Adam's: shared by its REST API and by what takes over its store. Everything here
 * blocks; failures are negative errnos with st filled. */
#pragma once

#include "api/client.h"
#include "eve/config.pb-c.h"
#include "pki/pki.h"
#include "json/json.h"

/* Attempts at a write that others got in the way of. */
#define ADAM_MAX_ATTEMPTS 8
#define ADAM_MAX_SERIALS 10000

/* Who asks, and in which namespace. */
struct adam_place {
    struct kube_client *client;
    struct arena *arena;
    struct str namespace;
    struct status *st;
};

int adam_get(const struct adam_place *p, struct str resource, struct str name,
             struct json **ret_object);
int adam_write(const struct adam_place *p, enum verb verb, struct str resource, struct str name,
               const struct json *object, struct json **ret_object);
int adam_delete(const struct adam_place *p, struct str resource, struct str name);
int adam_delete_all(const struct adam_place *p, struct str resource);
/* Calls fn for each object until it returns other than 0, which is returned. Memory is that of a
 * page: what fn keeps it copies. */
int adam_each(const struct adam_place *p, struct str resource,
              int (*fn)(void *ctx, const struct json *object), void *ctx);

/* A name for an object after words that may have any characters: lower case, and told apart by a
 * digest where characters were lost. */
struct str adam_name_of(struct arena *a, struct str words);

/* An OnboardCertificate; the one with its common name is replaced. *ret_is_new may be NULL. */
int adam_put_onboard(const struct adam_place *p, const struct pki_cert *cert,
                     const struct str *serials, size_t n_serials, bool *ret_is_new);
/* The name of the OnboardCertificate with that common name, in the arena. -ENOENT without st. */
int adam_find_onboard(const struct adam_place *p, struct str common_name, struct str *ret_name);

struct adam_new_device {
    const struct pki_cert *cert;
    const struct pki_cert *onboard; /* NULL: none */
    struct str serial;              /* empty: none */
    struct str uuid;                /* empty: a new one */
    bool is_held_back; /* refused everywhere until adam_release_device(): it is not whole yet */
};
/* -EEXIST: a Device has the certificate already. */
int adam_create_device(const struct adam_place *p, const struct adam_new_device *d,
                       struct json **ret_device);
bool adam_is_held_back(const struct json *device);
int adam_release_device(const struct adam_place *p, const struct json *device);

/* The stored configuration of a Device: -ENOENT without st when it has none. */
int adam_get_config(const struct adam_place *p, const struct json *device,
                    Eve__Config__EdgeDevConfig **ret_config);
/* Replaces it, whatever it was. */
int adam_put_config(const struct adam_place *p, const struct json *device,
                    const Eve__Config__EdgeDevConfig *config, struct json **ret_object);
/* As Adam stores and takes it: protobuf JSON with both names of a field, or bytes. NULL with
 * *ret_error naming the place. */
Eve__Config__EdgeDevConfig *adam_read_config(struct arena *a, struct str text, bool is_binary,
                                             struct str *ret_error);

/* Adam's global options, a JSON object: checked whole, then written. -EINVAL with st filled (400)
 * when it is none. */
int adam_check_global_options(const struct adam_place *p, const struct json *options);
int adam_put_global_options(const struct adam_place *p, const struct json *options);

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The member of that name in any case, as Go finds it. */
struct json *adam_member(const struct json *object, const char *name);
void adam_add(struct arena *a, struct json *object, const char *key, struct str value);
/* The certificate in a spec, or NULL. */
struct pki_cert *adam_cert_of(const struct json *object, const char *field);
