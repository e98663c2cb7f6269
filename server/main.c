/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `seth`, one line each. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "commands.h"
#include "device_media.h"
#include "import_adam.h"
#include "kubeconfig.h"
#include "rotate.h"
#include "rotate_certs.h"
#include "serve.h"
#include "store/store.h"

const struct option_spec data_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {0},
};

static int finish(int r, char *error)
{
    if (r < 0)
        fprintf(stderr, "seth: %s\n", error ? error : strerror(-r));
    mem_free(error);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const char *database(struct arena *a, const struct options *o)
{
    return arena_printf(a, "%s/objects.db", option_text(o, "data-dir")).p;
}

static int backup(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    if (o->n_rest != 1) {
        fprintf(stderr, "seth: name the file to write: seth backup FILE\n");
        return EXIT_FAILURE;
    }
    int r = store_backup(database(a, o), o->rest[0], &error);
    return finish(r, error);
}

static int restore(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    if (o->n_rest != 1) {
        fprintf(stderr, "seth: name the backup: seth restore FILE\n");
        return EXIT_FAILURE;
    }
    int r = store_restore(o->rest[0], database(a, o), &error);
    return finish(r, error);
}

static const struct command commands[] = {
    {"server", "", "run the API server", serve_options, serve},
    {"kubeconfig", "", "write a kubeconfig for a user", kubeconfig_options, kubeconfig_command},
    {"backup", " FILE",
     "copy the store to FILE, while the server runs or not; the encryption keys are not in it",
     data_options, backup},
    {"restore", " FILE", "replace the store by a backup; the server must be stopped", data_options,
     restore},
    {"rotate-key", "", "encrypt with a new key, drop the old; the server must be stopped",
     rotate_options, rotate_key},
    {"rotate-certs", "",
     "new certificates for the controller (signing and ecdh if none is named), while the server "
     "runs or not",
     rotate_certs_options, rotate_certs_command},
    {"device-media", " DIR",
     "write what a new device needs in EVE's /config to DIR, and print its OnboardCertificate",
     device_media_options, device_media_command},
    {"import-adam", " DIR|redis://HOST:PORT",
     "take over devices, configurations and certificates of Adam; the server must be stopped",
     import_adam_options, import_adam_command},
    {"health", "", "ask the server of this data directory whether it is ready", data_options,
     health_command},
    {"version", "", "print the version", data_options, version_command},
    {"completion", " [COMMAND]", "print what may follow, for shells", data_options,
     completion_command},
    {"man", "", "print the manual page", data_options, manual_command},
    {0},
};

static const struct program seth = {
    .name = "seth",
    .title = "the controller for fleets of EVE devices",
    .description =
        "A server of the Kubernetes API over an embedded store, and the commands that look after "
        "it.\nEvery option may also be set in the environment, as\n"
        ".B SETH_NAME_OF_OPTION\n(upper case, underscores), or in the YAML file of\n"
        ".BR \\-\\-config .\nA flag beats the environment, which beats the file.\n",
    .files = ".TP\n.I /var/lib/seth\nthe data directory: objects.db, pki/, admin.kubeconfig\n"
             ".TP\n.I /etc/seth/seth.yaml\noptions of the service\n",
    .signals = ".TP\n.B SIGTERM\nends the server: it becomes unready, lets requests finish, ends "
               "watches.\n.TP\n.B SIGHUP\nreads certificates, tokens and policies again.\n",
    .commands = commands,
};

int main(int argc, char **argv)
{
    return program_main(&seth, argc, argv);
}
