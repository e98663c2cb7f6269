/* SPDX-License-Identifier: Apache-2.0 */
/* Encryption of objects at rest: which kinds, with which keys. Gives the store its cipher; the keys
 * lie in <data-dir>/pki/encryption-keys.yaml, made at the first start. Holds for one store at a
 * time. */
#pragma once

#include "base/arena.h"
#include "store/store.h"

struct vault;

struct vault_options {
    const char *data_dir;
    const char *kinds; /* what to encrypt: "secrets,configmaps", names as collections of the store
                          have; "*": everything, "none": nothing any more */
    const char *key_command; /* key_command.h; "": none */
};

/* Failure: -EINVAL and *ret_error (heap). Touches no file: that is left to the store's opening. */
int vault_new(const struct vault_options *o, struct vault **ret_vault, char **ret_error);
/* After the store. NULL allowed. */
void vault_free(struct vault *v);
DEFINE_CLEANUP(struct vault *, vault_free)
/* For struct store_options; lives as long as the vault. */
const struct store_cipher *vault_cipher(struct vault *v);

/* Between store_reseal_open() and store_reseal_run(): a new key encrypts from now on, and is on
 * disk when this returns 0. Keys of a rotation that was interrupted are used rather than another
 * one. */
int vault_begin_rotation(struct vault *v, char **ret_error);
/* After store_reseal_run(): forgets the others. */
int vault_end_rotation(struct vault *v, char **ret_error);
/* The id of the key that encrypts, in hexadecimal; in the arena. */
struct str vault_key_id(struct arena *a, const struct vault *v);
/* Where the keys are. */
const char *vault_path(const struct vault *v);
