/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `seth`, one line each. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "identity.h"
#include "rotate.h"
#include "serve.h"
#include "store/store.h"

static const struct option_spec data_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {0},
};

static const struct option_spec kubeconfig_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"server", OPTION_TEXT, "https://127.0.0.1:6443", "URL of the server", 0, 0},
    {"user", OPTION_TEXT, "seth-admin", "user name of the certificate", 0, 0},
    {"group", OPTION_TEXT, "system:masters", "group of the certificate", 0, 0},
    {"days", OPTION_INT, "365", "validity", 1, 3650},
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

static int kubeconfig(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    struct str text = STR_NONE, group = str_of(option_text(o, "group"));
    struct kubeconfig_options k = {.data_dir = option_text(o, "data-dir"),
                                   .server = option_text(o, "server"),
                                   .user = str_of(option_text(o, "user")),
                                   .groups = &group,
                                   .n_groups = group.n > 0,
                                   .valid_days = option_int(o, "days")};
    int r = identity_kubeconfig(a, &k, &text, &error);
    if (r == 0)
        printf("%.*s", STR_ARG(text));
    return finish(r, error);
}

static int version(const struct options *o)
{
    (void) o;
    printf("seth %s\n", SETH_VERSION);
    return EXIT_SUCCESS;
}

static const struct command {
    const char *name, *arguments, *help;
    const struct option_spec *options;
    int (*run)(const struct options *o);
} commands[] = {
    {"server", "", "run the API server", serve_options, serve},
    {"kubeconfig", "", "print a kubeconfig with a fresh client certificate", kubeconfig_options,
     kubeconfig},
    {"backup", " FILE",
     "copy the store to FILE, while the server runs or not; the encryption keys are not in it",
     data_options, backup},
    {"restore", " FILE", "replace the store by a backup; the server must be stopped", data_options,
     restore},
    {"rotate-key", "", "encrypt with a new key, drop the old; the server must be stopped",
     rotate_options, rotate_key},
    {"version", "", "print the version", data_options, version},
};

static int help(FILE *to)
{
    fprintf(to, "seth, the controller for fleets of EVE devices.\n\nUsage: seth COMMAND "
                "[options]\n\nCommands:\n");
    for (size_t i = 0; i < N_ELEMENTS(commands); i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "\n`seth COMMAND --help` lists its options.\n");
    return to == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr);
    if (str_is(str_of(argv[1]), "--help") || str_is(str_of(argv[1]), "-h") ||
        str_is(str_of(argv[1]), "help"))
        return help(stdout);
    for (size_t i = 0; i < N_ELEMENTS(commands); i++) {
        if (!str_is(str_of(argv[1]), commands[i].name))
            continue;
        ARENA_AUTO a = arena_new();
        struct options options = {0};
        struct str usage = arena_printf(a, "seth %s [options]%s\n\n%s", commands[i].name,
                                        commands[i].arguments, commands[i].help);
        int r = options_parse(a, commands[i].options, usage.p, argc - 2, argv + 2, &options);
        return r != 0 ? (r < 0 ? EXIT_FAILURE : EXIT_SUCCESS) : commands[i].run(&options);
    }
    fprintf(stderr, "seth: unknown command '%s'\n\n", argv[1]);
    return help(stderr);
}
