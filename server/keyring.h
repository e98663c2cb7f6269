/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that data at rest is encrypted with, in a file of their own: the first one encrypts, all
 * decrypt. A key is known by a fingerprint of itself, so a wrong one is never mistaken for it. With
 * a key command (key_command.h) the file holds wrapped keys only. */
#pragma once

#include "base/clock.h"
#include "pki/aead.h"

#define KEYRING_MAX_KEYS 16
#define KEY_ID_BYTES 8

struct keyring_key {
    unsigned char id[KEY_ID_BYTES];
    unsigned char secret[AEAD_KEY_BYTES];
    char created[CLOCK_SECONDS_BYTES];
    char *wrapped; /* heap, base64 as the command gave it; NULL: not wrapped */
};

struct keyring {
    struct keyring_key keys[KEYRING_MAX_KEYS];
    size_t n;
};

/* command "": there is none. -ENOENT when there is no such file; else a failure also fills
 * *ret_error (heap), which names the file and what to do. */
int keyring_load(struct keyring *k, const char *path, const char *command, char **ret_error);
/* The same from the file's text. */
int keyring_parse(struct keyring *k, struct str text, const char *path, const char *command,
                  char **ret_error);
/* Appends the text of the file, with each key as it is. */
void keyring_write(const struct keyring *k, struct buf *to);
/* Wraps what is not wrapped yet if there is a command; then 0600, whole or not at all, durable when
 * it returns 0. Only for who holds the store. */
int keyring_save(struct keyring *k, const char *path, const char *command, char **ret_error);
/* Wipes the keys. */
void keyring_done(struct keyring *k);

/* A fresh key in front of the others; -ENOSPC: KEYRING_MAX_KEYS are there. */
int keyring_add(struct keyring *k);
void keyring_drop_all_but_first(struct keyring *k);
/* NULL: it has none of that id. */
const struct keyring_key *keyring_find(const struct keyring *k,
                                       const unsigned char id[KEY_ID_BYTES]);
bool keyring_is_wrapped(const struct keyring *k);
