/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "pki/file.h"
#include "json/yaml.h"
#include "json/yaml_write.h"

#define DEFAULT_SERVER "https://127.0.0.1:6443"
#define ADMIN_USER "seth-admin"
#define ADMIN_GROUP "system:masters"
#define MAX_EXPIRY_S ((int64_t) 10 * 365 * 24 * 3600)

const struct option_spec kubeconfig_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"server", OPTION_TEXT, "", "URL of the server; empty: as in admin.kubeconfig", 0, 0},
    {"user", OPTION_TEXT, ADMIN_USER, "who the client is", 0, 0},
    {"group", OPTION_LIST, "", "groups of the user; of " ADMIN_USER ": " ADMIN_GROUP, 0, 0},
    {"namespace", OPTION_TEXT, "", "namespace of the context", 0, 0},
    {"expiry", OPTION_TEXT, "365d", "how long the certificate is good: 90m, 12h, 30d", 0, 0},
    {"token", OPTION_TEXT, "", "a bearer token instead of a certificate", 0, 0},
    {"oidc-issuer-url", OPTION_TEXT, "", "log in there instead, through kubectl oidc-login", 0, 0},
    {"oidc-client-id", OPTION_TEXT, "", "as which client", 0, 0},
    {"context-name", OPTION_TEXT, "seth", "name of the cluster and the context", 0, 0},
    {"output", OPTION_TEXT, "", "file to write; empty: standard output", 0, 0},
    {"merge", OPTION_TEXT, "", "kubeconfig to add to, for instance ~/.kube/config", 0, 0},
    {0},
};

static int fail(char **ret_error, int code, const char *format, const char *detail)
{
    struct buf b = {0};
    buf_append_str(&b, str_of(format));
    buf_append_str(&b, STR(": "));
    buf_append_str(&b, str_of(detail));
    *ret_error = buf_take(&b);
    return code;
}

/* ---- the document ------------------------------------------------------------------------- */

static void set(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_set(a, object, str_of(key), json_string(value));
}

static void set_data(struct arena *a, struct json *object, const char *key, struct str pem)
{
    set(a, object, key, base64_encode(a, pem, BASE64_STANDARD));
}

static struct json cluster_of(struct arena *a, const struct kubeconfig *k)
{
    struct json c = json_object();
    set(a, &c, "server", str_of(k->server));
    set_data(a, &c, "certificate-authority-data", k->root_pem);
    return c;
}

static struct json exec_of(struct arena *a, const struct kubeconfig *k)
{
    struct json exec = json_object(), arguments = json_array();
    const struct str list[] = {STR("oidc-login"), STR("get-token"),
                               arena_printf(a, "--oidc-issuer-url=%.*s", STR_ARG(k->oidc_issuer)),
                               arena_printf(a, "--oidc-client-id=%.*s", STR_ARG(k->oidc_client))};
    for (size_t i = 0; i < N_ELEMENTS(list); i++)
        (void) json_push(a, &arguments, json_string(list[i]));
    set(a, &exec, "apiVersion", STR("client.authentication.k8s.io/v1"));
    set(a, &exec, "command", STR("kubectl"));
    (void) json_set(a, &exec, STR("args"), arguments);
    set(a, &exec, "interactiveMode", STR("IfAvailable"));
    return exec;
}

static struct json user_of(struct arena *a, const struct kubeconfig *k)
{
    struct json u = json_object();
    if (k->oidc_issuer.n)
        (void) json_set(a, &u, STR("exec"), exec_of(a, k));
    if (k->token.n)
        set(a, &u, "token", k->token);
    if (k->cert_pem.n) {
        set_data(a, &u, "client-certificate-data", k->cert_pem);
        set_data(a, &u, "client-key-data", k->key_pem);
    }
    return u;
}

static struct json context_of(struct arena *a, const struct kubeconfig *k)
{
    struct json c = json_object();
    set(a, &c, "cluster", k->name);
    set(a, &c, "user", k->user);
    if (k->namespace.n)
        set(a, &c, "namespace", k->namespace);
    return c;
}

/* Puts `value` into the list under its name, in place of one of that name. */
static void put(struct arena *a, struct json *config, const char *list_key, const char *key,
                struct str name, struct json value)
{
    struct json entry = json_object();
    set(a, &entry, "name", name);
    (void) json_set(a, &entry, str_of(key), value);
    struct json *list = json_get(config, str_of(list_key));
    if (!json_is(list, JSON_ARRAY)) {
        (void) json_set(a, config, str_of(list_key), json_array());
        list = json_get(config, str_of(list_key));
    }
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_get_str(item, STR("name")), name)) {
            *item = entry;
            return;
        }
    (void) json_push(a, list, entry);
}

static int read_existing(struct arena *a, struct str text, struct json **ret, char **ret_error)
{
    struct json_parse_result parsed = {0};
    if (yaml_parse(a, text, &parsed) < 0)
        return fail(ret_error, -EINVAL, "the kubeconfig to merge into is no YAML",
                    arena_strz(a, parsed.error));
    if (parsed.value->type == JSON_NULL)
        *parsed.value = json_object();
    struct str kind = json_get_str(parsed.value, STR("kind"));
    if (parsed.value->type != JSON_OBJECT || (kind.n && !str_is(kind, "Config")))
        return fail(ret_error, -EINVAL, "the file to merge into is no kubeconfig",
                    "its kind is not Config");
    *ret = parsed.value;
    return 0;
}

int kubeconfig_text(struct arena *a, const struct kubeconfig *k, struct str existing,
                    struct str *ret_text, char **ret_error)
{
    struct json fresh = json_object(), *config = &fresh;
    BUF_AUTO text = {0};
    int r = existing.p ? read_existing(a, existing, &config, ret_error) : 0;
    if (r < 0)
        return r;
    set(a, config, "apiVersion", STR("v1"));
    set(a, config, "kind", STR("Config"));
    put(a, config, "clusters", "cluster", k->name, cluster_of(a, k));
    put(a, config, "users", "user", k->user, user_of(a, k));
    put(a, config, "contexts", "context", k->name, context_of(a, k));
    set(a, config, "current-context", k->name);
    yaml_write(&text, config);
    *ret_text = arena_str(a, buf_str(&text));
    return 0;
}

/* ---- the command -------------------------------------------------------------------------- */

static int parse_expiry(struct arena *a, const char *text, int64_t *ret_s, char **ret_error)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 24 * 3600}};
    struct str s = str_of(text);
    int64_t n = 0;
    for (size_t i = 0; i < N_ELEMENTS(units) && s.n > 1; i++)
        if (s.p[s.n - 1] == units[i].unit && str_to_i64(str_sub(s, 0, s.n - 1), &n) == 0 && n > 0 &&
            n <= MAX_EXPIRY_S / units[i].seconds) {
            *ret_s = n * units[i].seconds;
            return 0;
        }
    return fail(ret_error, -EINVAL, arena_printf(a, "--expiry %s", text).p,
                "give a number and a unit, as in 90m, 12h or 30d, ten years at most");
}

static int read_file(struct arena *a, const char *path, struct str *ret, char **ret_error)
{
    BUF_AUTO text = {0};
    int r = pki_file_read(path, &text);
    if (r == -ENOENT)
        return r;
    if (r < 0)
        return fail(ret_error, r, path, strerror(-r));
    *ret = arena_str(a, buf_str(&text));
    return 0;
}

const char *kubeconfig_server(struct arena *a, const char *data_dir)
{
    struct str text = STR_NONE;
    struct json_parse_result parsed = {0};
    char *error = NULL;
    int r = read_file(a, arena_printf(a, "%s/admin.kubeconfig", data_dir).p, &text, &error);
    mem_free(error);
    if (r < 0 || yaml_parse(a, text, &parsed) < 0)
        return DEFAULT_SERVER;
    JSON_FOR_EACH_ITEM (json_get(parsed.value, STR("clusters")), item) {
        struct str server = json_str(json_at(item, "cluster", "server", NULL));
        if (server.n)
            return arena_strz(a, server);
    }
    return DEFAULT_SERVER;
}

static size_t split_groups(struct arena *a, const struct options *o, struct str **ret)
{
    struct str rest = str_of(option_text(o, "group")), one = STR_NONE;
    struct str *groups = ARENA_ARRAY(a, struct str, rest.n + 1);
    size_t n = 0;
    while (str_split(&rest, ',', &one))
        if (str_trim(one).n)
            groups[n++] = str_trim(one);
    if (n == 0 && str_is(str_of(option_text(o, "user")), ADMIN_USER))
        groups[n++] = STR(ADMIN_GROUP);
    *ret = groups;
    return n;
}

/* What proves who the client is: one of three. */
static int add_proof(struct arena *a, const struct options *o, struct kubeconfig *k,
                     char **ret_error)
{
    int64_t expiry_s = 0;
    struct str *groups = NULL;
    k->token = str_of(option_text(o, "token"));
    k->oidc_issuer = str_of(option_text(o, "oidc-issuer-url"));
    k->oidc_client = str_of(option_text(o, "oidc-client-id"));
    if ((k->token.n > 0) + (k->oidc_issuer.n > 0) > 1)
        return fail(ret_error, -EINVAL, "--token", "cannot go with --oidc-issuer-url");
    if ((k->oidc_issuer.n > 0) != (k->oidc_client.n > 0))
        return fail(ret_error, -EINVAL, "--oidc-issuer-url", "goes with --oidc-client-id");
    int r = parse_expiry(a, option_text(o, "expiry"), &expiry_s, ret_error);
    if (r < 0)
        return r;
    struct identity_client c = {
        .data_dir = option_text(o, "data-dir"), .user = k->user, .valid_s = expiry_s};
    c.n_groups = split_groups(a, o, &groups);
    c.groups = groups;
    if (k->token.n || k->oidc_issuer.n)
        return identity_root(a, c.data_dir, &k->root_pem, ret_error);
    return identity_issue(a, &c, &k->cert_pem, &k->key_pem, &k->root_pem, ret_error);
}

static int write_out(const struct options *o, struct str text, char **ret_error)
{
    const char *merge = option_text(o, "merge"), *output = option_text(o, "output");
    const char *path = output[0] ? output : merge;
    if (!path[0]) {
        (void) printf("%.*s", STR_ARG(text));
        return 0;
    }
    int r = pki_file_write(path, text, 0600);
    return r < 0 ? fail(ret_error, r, path, strerror(-r)) : 0;
}

static int run(struct arena *a, const struct options *o, char **ret_error)
{
    const char *merge = option_text(o, "merge"), *server = option_text(o, "server");
    struct str existing = STR_NONE, text = STR_NONE;
    struct kubeconfig k = {.server = server[0] ? server
                                               : kubeconfig_server(a, option_text(o, "data-dir")),
                           .name = str_of(option_text(o, "context-name")),
                           .user = str_of(option_text(o, "user")),
                           .namespace = str_of(option_text(o, "namespace"))};
    int r = merge[0] ? read_file(a, merge, &existing, ret_error) : 0;
    if (r < 0 && r != -ENOENT)
        return r;
    r = add_proof(a, o, &k, ret_error);
    if (r == 0)
        r = kubeconfig_text(a, &k, existing, &text, ret_error);
    return r < 0 ? r : write_out(o, text, ret_error);
}

int kubeconfig_command(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    int r = run(a, o, &error);
    if (r < 0)
        fprintf(stderr, "seth: %s\n", error ? error : strerror(-r));
    mem_free(error);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
