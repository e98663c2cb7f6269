/* SPDX-License-Identifier: Apache-2.0 */
#include "import_adam.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "adam/takeover.h"
#include "api/api.h"
#include "api/auth/rbac.h"
#include "api/codec.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap.h"
#include "vault.h"

const struct option_spec import_adam_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"namespace", OPTION_TEXT, "default", "where the devices go; made when it is missing", 0, 0},
    {"certs", OPTION_TEXT, "",
     "directory of Adam's server, signing and encrypt certificates and keys, to be used on", 0, 0},
    {"dry-run", OPTION_ACTION, NULL, "look at everything and write nothing", 0, 0},
    {"encrypt", OPTION_TEXT, "secrets", "as the server is given it", 0, 0},
    {"encryption-key-command", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {0},
};

struct import {
    const struct options *options;
    struct arena *arena;
    struct vault *vault;
    struct store *store;
    struct rbac *rbac;
    struct api *api;
    struct kube_client *client;
    struct adam_certs *certs;
    char *error;
};

static void import_done(struct import *m)
{
    kube_client_free(m->client);
    api_free(m->api);
    if (m->rbac)
        rbac_free(m->rbac);
    store_close(m->store);
    vault_free(m->vault);
    adam_certs_free(m->certs);
    mem_free(m->error);
    arena_free(m->arena);
}

/* ---- our store, as the server opens it ------------------------------------------------------- */

static int make_directories(struct import *m, const char *data_dir)
{
    const char *const paths[] = {data_dir, arena_printf(m->arena, "%s/pki", data_dir).p};
    for (size_t i = 0; i < N_ELEMENTS(paths); i++)
        if (mkdir(paths[i], 0700) < 0 && errno != EEXIST)
            return error_set(&m->error, -errno, "cannot make the directory %s: %s", paths[i],
                             log_errno_text(-errno));
    return 0;
}

static int open_store(struct import *m, const char *data_dir)
{
    const struct vault_options vault = {.data_dir = data_dir,
                                        .kinds = option_text(m->options, "encrypt"),
                                        .key_command =
                                            option_text(m->options, "encryption-key-command")};
    int r = make_directories(m, data_dir);
    if (r == 0)
        r = vault_new(&vault, &m->vault, &m->error);
    if (r < 0)
        return r;
    r = store_open(
        &(struct store_options){.path = arena_printf(m->arena, "%s/objects.db", data_dir).p,
                                .parse_head = codec_parse_stored,
                                .cipher = vault_cipher(m->vault),
                                .clock = &clock_system},
        &m->store, &m->error);
    if (r == -EBUSY)
        return error_set(&m->error, r, "a server runs on %s: stop it first", data_dir);
    return r;
}

static int make_namespace(struct import *m, struct str name)
{
    struct status st;
    struct json object = json_object(), metadata = json_object();
    struct kube_request r = {.verb = VERB_GET,
                             .group = STR(""),
                             .version = STR("v1"),
                             .resource = STR("namespaces"),
                             .name = name};
    status_init(&st, m->arena);
    int result = kube_request(m->client, m->arena, &r, NULL, &st);
    if (result != -ENOENT)
        return result < 0 ? error_set(&m->error, result, "%.*s", STR_ARG(st.message)) : 0;
    (void) json_set(m->arena, &metadata, STR("name"), json_string(name));
    (void) json_set(m->arena, &object, STR("metadata"), metadata);
    r.verb = VERB_CREATE;
    r.name = STR_NONE;
    r.body = &object;
    result = kube_request(m->client, m->arena, &r, NULL, &st);
    return result < 0 ? error_set(&m->error, result, "--namespace: %.*s", STR_ARG(st.message)) : 0;
}

static int open_ours(struct import *m, struct str namespace)
{
    int r = open_store(m, option_text(m->options, "data-dir"));
    if (r < 0)
        return r;
    m->rbac = rbac_new(m->store);
    r = api_new(&(struct api_options){.store = m->store, .clock = &clock_system, .rbac = m->rbac},
                &m->api, &m->error);
    if (r < 0)
        return r;
    m->client = kube_client_local(m->api, "seth-import-adam");
    r = bootstrap_objects(m->client, &m->error);
    return r < 0 ? r : make_namespace(m, namespace);
}

/* ---- Adam's ---------------------------------------------------------------------------------- */

static int read_adams(struct import *m, const char *from, struct adam_store *ret)
{
    if (str_starts_with(str_of(from), STR("redis://")))
        return adam_store_read_redis(m->arena, from, ret, &m->error);
    return adam_store_read_directory(m->arena, from, ret, &m->error);
}

static void say(void *ctx, struct str line)
{
    (void) ctx;
    fprintf(stderr, "seth: %.*s\n", STR_ARG(line));
}

static void print_count(const char *what, const struct adam_count *c, bool is_dry_run)
{
    printf("%s: %zu %s, %zu there already, %zu left out\n", what, c->n_new,
           is_dry_run ? "can be taken over" : "taken over", c->n_there, c->n_left_out);
}

static void print_summary(const struct adam_takeover *t, bool is_dry_run)
{
    print_count("onboarding certificates", &t->onboards, is_dry_run);
    print_count("devices", &t->devices, is_dry_run);
    printf("global options: %s\n", t->are_options_bad ? "left out"
                                   : !t->has_options  ? "none"
                                   : is_dry_run       ? "can be taken over"
                                                      : "taken over");
}

static int write_certs(struct import *m)
{
    struct str options = STR("");
    const int r =
        adam_certs_write(m->certs, option_text(m->options, "data-dir"), &options, &m->error);
    if (r == 0)
        printf("certificates: taken over; start the server with\n%.*s", STR_ARG(options));
    return r;
}

/* Everything is read before anything is written. */
static int import(struct import *m, const char *from, bool is_dry_run, bool *ret_is_whole)
{
    struct adam_store store;
    const char *certs = option_text(m->options, "certs");
    struct adam_takeover t = {.namespace = str_of(option_text(m->options, "namespace")),
                              .say = say};
    int r = read_adams(m, from, &store);
    if (r == 0 && certs[0])
        r = adam_certs_read(m->arena, certs, &m->certs, &m->error);
    if (r == 0 && !is_dry_run)
        r = open_ours(m, t.namespace);
    if (r < 0)
        return r;
    t.client = m->client;
    t.adam_cert_hash = t.our_cert_hash = STR("");
    if (m->certs)
        adam_certs_hashes(m->certs, &t.adam_cert_hash, &t.our_cert_hash);
    adam_take_over(&t, &store);
    print_summary(&t, is_dry_run);
    *ret_is_whole = !t.onboards.n_left_out && !t.devices.n_left_out && !t.are_options_bad;
    if (m->certs && is_dry_run)
        printf("certificates: can be taken over\n");
    return m->certs && !is_dry_run ? write_certs(m) : 0;
}

int import_adam_command(const struct options *o)
{
    CLEANUP(import_done) struct import m = {.options = o, .arena = arena_new()};
    bool is_whole = false;
    if (o->n_rest != 1) {
        fprintf(stderr,
                "seth: name where Adam keeps its devices: seth import-adam DIR|redis://..\n");
        return EXIT_FAILURE;
    }
    (void) signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full disk, not the end */
    const int r = import(&m, o->rest[0], option_is_given(o, "dry-run"), &is_whole);
    if (r < 0)
        fprintf(stderr, "seth: %s\n", m.error ? m.error : log_errno_text(r));
    return r < 0 || !is_whole ? EXIT_FAILURE : EXIT_SUCCESS;
}
