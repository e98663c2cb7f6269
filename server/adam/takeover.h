/* SPDX-License-Identifier: Apache-2.0 */
/* Adam's devices become ours: with their UUIDs, certificates, configurations, escrowed keys and
 * tokens, so that they notice nothing. What cannot be taken whole is named and left out; what is
 * there already is left alone, so that it may be done again. */
#pragma once

#include "adam/store.h"
#include "api/client.h"

struct adam_count {
    size_t n_new, n_there, n_left_out;
};

struct adam_takeover {
    struct kube_client *client; /* NULL: everything is looked at and nothing written */
    struct str namespace;
    /* How Adam and how this server call one encryption certificate in configurations; empty: it
     * does not come along. */
    struct str adam_cert_hash, our_cert_hash;
    /* A line for people, without its end. */
    void (*say)(void *ctx, struct str line);
    void *ctx;
    struct adam_count onboards, devices;
    bool has_options;     /* global ones were taken */
    bool are_options_bad; /* or could not be */
};

void adam_take_over(struct adam_takeover *t, const struct adam_store *s);
