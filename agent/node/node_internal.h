/* SPDX-License-Identifier: Apache-2.0 */
/* A node as its own files see it. */
#pragma once

#include "loop/loop.h"
#include "node/node.h"

/* The controller's certificates, verified. */
struct node_certs {
    struct arena *arena;
    struct node_controller_cert *items;
    size_t n;
    struct pki_public *signing;               /* NULL: a key that cannot have signed anything */
    unsigned char signing_hash[SHA256_BYTES]; /* of its PEM as delivered */
};
void node_certs_free(struct node_certs *c);

struct node_internal {
    char *directories[NODE_DIRECTORIES];
    struct subscription *items, *network, *onboarding;
    struct publication *leds;
    enum node_led led;
    struct node_certs *certs;                /* NULL: none are known */
    unsigned char proxy_certs[SHA256_BYTES]; /* of those in force; zero: there are none */
    struct loop_deferred deferred;
    unsigned pending; /* bits of enum node_change that watches have yet to hear of */
    struct list dispatching;
    struct uplink_envelope envelope;
    struct node *node;
};

/* Watches are told at the end of the turn. */
void node_changed(struct node *n, unsigned changes);

int node_make_directory(const char *path);
/* As node_file_write(), with the mode of the file. */
int node_file_write_mode(struct node *n, enum node_directory d, struct str name, struct str content,
                         unsigned mode);

/* What of the config directory says who we are. On failure *ret_what names the file. */
int node_identities_load(struct node *n, const char **ret_what);
void node_identity_done(struct node_identity *i);
/* From now on they believe these. */
int node_identities_trust(struct node *n, struct uplink_trust *trust);
