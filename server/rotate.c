/* SPDX-License-Identifier: Apache-2.0 */
#include "rotate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "vault.h"

const struct option_spec rotate_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"encrypt", OPTION_TEXT, "secrets", "as the server is given it", 0, 0},
    {"encryption-key-command", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {0},
};

/* Each step is on disk before the next: what was encrypted with a key lies there only together with
 * the key. */
static int rotate(struct vault *v, const char *path, size_t *ret_n_rows, char **ret_error)
{
    CLEANUP(store_reseal_closep) struct store_reseal *rs = NULL;
    struct store_options options = {.path = path, .cipher = vault_cipher(v)};
    int r = store_reseal_open(&options, &rs, ret_error);
    if (r == 0)
        r = vault_begin_rotation(v, ret_error);
    if (r == 0)
        r = store_reseal_run(rs, ret_n_rows, ret_error);
    if (r == 0)
        r = vault_end_rotation(v, ret_error);
    return r;
}

int rotate_key(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(vault_freep) struct vault *v = NULL;
    struct vault_options vault = {.data_dir = option_text(o, "data-dir"),
                                  .kinds = option_text(o, "encrypt"),
                                  .key_command = option_text(o, "encryption-key-command")};
    const char *path = arena_printf(a, "%s/objects.db", vault.data_dir).p;
    size_t n_rows = 0;
    char *error = NULL;
    (void) signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full disk, not the end */
    int r = vault_new(&vault, &v, &error);
    if (r == 0)
        r = rotate(v, path, &n_rows, &error);
    if (r < 0)
        fprintf(stderr, "seth: %s\n", error ? error : strerror(-r));
    else
        printf("key %.*s encrypts from now on; %zu texts written again with it\n"
               "%s holds no other key: older backups need the file as it was\n",
               STR_ARG(vault_key_id(a, v)), n_rows, vault_path(v));
    mem_free(error);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
