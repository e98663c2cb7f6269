/* SPDX-License-Identifier: Apache-2.0 */
/* From the objects that apply to a device to what it is told: a pure function. No I/O, no clock,
 * no randomness; the same inputs, in whatever order, give the same bytes. Who finds the objects,
 * keeps what was derived and delivers the result is somebody else's affair. docs/COMPOSITION.md
 * has the rules. */
#pragma once

#include "base/arena.h"
#include "eve/common.pb-c.h"
#include "eve/config.pb-c.h"
#include "eve/info.pb-c.h"
#include "json/json.h"

/* Objects as the API serves them, in any order. */
struct compose_set {
    const struct json *const *items;
    size_t n;
};

/* A part that only the device can open. */
struct compose_sealed {
    const Eve__Common__CipherBlock *block;
    const Eve__Common__CipherContext *context;
};
/* Seals the plaintext (a packed EncryptionBlock) for the device. The identity names the place
 * ("datastore/<uuid>", "application/<uuid>", "network/<uuid>"): as long as identity, plaintext and
 * certificates are the same the answer must be the same bytes, or the configuration changes each
 * time it is made. 0; -EAGAIN: the device's certificate is not known yet; negative: cannot. */
typedef int compose_seal(void *ctx, struct arena *a, struct str identity, struct str plaintext,
                         struct compose_sealed *ret);

struct compose_inputs {
    const struct json *device;
    const struct json *namespace_options; /* ConfigMap <namespace>/eve-options, or NULL */
    const struct json *global_options;    /* ConfigMap eve-system/global-options, or NULL */
    const struct json *report;            /* compose_report() of the last it sent; NULL: none yet */

    /* Of the device's namespace, those that it has no use for may be among them. */
    struct compose_set network_configs, images, claims, secrets, config_maps;
    struct compose_set storage_classes;
    /* Only those that are the device's. */
    struct compose_set device_networks; /* whose selectors match it */
    struct compose_set volumes;         /* on it */
    struct compose_set applications;    /* scheduled onto it */

    compose_seal *seal;
    void *seal_ctx;
    const struct json *previous; /* `derived` of the last composition, or NULL */
    /* What the device was told before, or NULL: an application that is in it and cannot be composed
     * now stays as it was. Without it such ones are left out. Must live as long as the result. */
    const Eve__Config__EdgeDevConfig *last;
};

/* Where a part of the configuration comes from. */
struct compose_source {
    struct str path; /* in the configuration: apps[0].cipherData */
    const struct json *object;
    struct str field; /* of the object: spec.userData */
};
/* Why a part is not in the configuration. */
struct compose_problem {
    const struct json *object;
    struct str field;
    struct str message;
};

struct compose_result {
    Eve__Config__EdgeDevConfig *config; /* id.version and times are left to who delivers it */
    /* To be kept, and given as `previous` the next time, for as long as the Device is there: a
     * counter that begins anew restarts and purges applications. */
    struct json *derived;
    struct compose_source *sources; /* in the order of the lists, always the same */
    size_t n_sources;
    struct compose_problem *problems; /* by kind, name and field of the object */
    size_t n_problems;
};

/* Never fails: what cannot be composed is left out, whole, and is a problem. There is always a port
 * for management. Everything lives in the arena and may point into the inputs. */
void compose(struct arena *a, const struct compose_inputs *in, struct compose_result *ret);

/* The sources as DeviceConfig's status has them: kind and name are enough there, as all of them are
 * in its namespace, or in none. is_full: with apiVersion and namespace, for others. */
struct json *compose_sources_json(struct arena *a, const struct compose_result *r, bool is_full);

/* What composition needs of a device's report: {ports: [{label, type, group, interface}]}, `type` a
 * number of PhyIoType. */
struct json *compose_report(struct arena *a, const Eve__Info__ZInfoDevice *info);
