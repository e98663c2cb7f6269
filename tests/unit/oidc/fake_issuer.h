/* SPDX-License-Identifier: Apache-2.0 */
/* An issuer over real HTTPS, whose keys the test changes, and its tokens. */
#pragma once

#include "api/oidc/rules.h"
#include "https.h"

#define FAKE_MAX_KEYS 4

struct fake_key {
    const char *kid; /* NULL: without */
    struct pki_key *key;
};

struct fake_issuer {
    struct https server;
    struct arena *arena;
    struct str url;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_key published[FAKE_MAX_KEYS];
    size_t n_published;
    bool fails;               /* answers 503 */
    bool holds;               /* answers no request for keys until it is false again */
    const char *garbage;      /* instead of the keys */
    const char *claims_to_be; /* another issuer's URL */
    const char *max_age;      /* Cache-Control of the keys */
    atomic_int n_discoveries, n_jwks;
};

void fake_issuer_start(struct fake_issuer *f);
void fake_issuer_stop(struct fake_issuer *f);
/* The server's address stays; keys are the test's. */
void fake_issuer_publish(struct fake_issuer *f, const struct fake_key *keys, size_t n);
/* Lets go of requests that were held. */
void fake_issuer_release(struct fake_issuer *f);
/* As the administrator would write them: audience "me", username "sub". In the issuer's arena. */
struct oidc_rules fake_issuer_rules(struct fake_issuer *f);

/* A token with these claims; the header names the key's kid. */
struct str fake_token(struct arena *a, const struct fake_key *k, struct str claims);
