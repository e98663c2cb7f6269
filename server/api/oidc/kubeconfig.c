/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/kubeconfig.h"

#include <errno.h>

#include "api/oidc/config.h"
#include "base/base64.h"
#include "pki/file.h"
#include "json/yaml.h"

struct reader {
    struct arena *arena;
    struct str directory;
    struct str error;
};

static int fail(struct reader *r, int result, const char *format, ...) PRINTF_LIKE(3, 4);
static int fail(struct reader *r, int result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    r->error = arena_vprintf(r->arena, format, args);
    va_end(args);
    return result;
}

static int read_file(struct reader *r, struct str path, struct str *ret)
{
    BUF_AUTO text = {0};
    bool is_relative = path.n > 0 && path.p[0] != '/';
    struct str full =
        is_relative ? arena_printf(r->arena, "%.*s/%.*s", STR_ARG(r->directory), STR_ARG(path))
                    : arena_str(r->arena, path);
    int result = pki_file_read(full.p, &text);
    if (result < 0)
        return fail(r, result, "cannot read %.*s: %s", STR_ARG(full), strerror(-result));
    *ret = arena_str(r->arena, buf_str(&text));
    return 0;
}

/* The member itself in base64 as <name>-data, which wins, or the file it names. */
static int read_data(struct reader *r, const struct json *object, const char *name, struct str *ret)
{
    struct str key = arena_printf(r->arena, "%s-data", name);
    struct str data = json_get_str(object, key), path = json_get_str(object, str_of(name));
    if (data.n > 0) {
        if (base64_decode(r->arena, data, BASE64_STANDARD, ret, NULL) < 0)
            return fail(r, -EINVAL, "%.*s is no base64", STR_ARG(key));
        return 0;
    }
    return path.n > 0 ? read_file(r, path, ret) : 0;
}

/* The `what` of the entry of that name in a list of {name, what}. */
static const struct json *find_named(const struct json *root, const char *list, struct str name,
                                     const char *what)
{
    JSON_FOR_EACH_ITEM (json_get(root, str_of(list)), one)
        if (str_eq(json_get_str(one, STR("name")), name))
            return json_get(one, str_of(what));
    return NULL;
}

static int read_cluster(struct reader *r, const struct json *cluster, struct kubeconfig *ret)
{
    struct str server = json_get_str(cluster, STR("server"));
    struct str server_name = json_get_str(cluster, STR("tls-server-name"));
    if (!str_starts_with(server, STR("https://")))
        return fail(r, -EINVAL, "server \"%.*s\" is no https URL", STR_ARG(server));
    if (json_get_bool(cluster, STR("insecure-skip-tls-verify"), false))
        return fail(r, -EINVAL,
                    "insecure-skip-tls-verify is not supported: name the server's "
                    "certificate-authority");
    if (read_data(r, cluster, "certificate-authority", &ret->ca_pem) < 0)
        return -EINVAL;
    if (ret->ca_pem.p && !oidc_is_ca(ret->ca_pem))
        return fail(r, -EINVAL, "certificate-authority holds no PEM certificate");
    ret->server = arena_str(r->arena, server);
    ret->server_name = server_name.n > 0 ? arena_str(r->arena, server_name) : STR_NONE;
    return 0;
}

static int read_user(struct reader *r, const struct json *user, struct kubeconfig *ret)
{
    static const char *const refused[] = {"exec", "auth-provider", "username", "password"};
    for (size_t i = 0; i < N_ELEMENTS(refused); i++)
        if (json_get(user, str_of(refused[i])))
            return fail(r, -EINVAL, "%s is not supported: use a client certificate or a token",
                        refused[i]);
    struct str path = json_get_str(user, STR("tokenFile"));
    if (read_data(r, user, "client-certificate", &ret->cert_pem) < 0 ||
        read_data(r, user, "client-key", &ret->key_pem) < 0 ||
        (path.n > 0 && read_file(r, path, &ret->token) < 0))
        return -EINVAL;
    if (!ret->cert_pem.p != !ret->key_pem.p)
        return fail(r, -EINVAL, "client-certificate and client-key come together");
    if (path.n == 0 && json_get_str(user, STR("token")).n > 0)
        ret->token = arena_str(r->arena, json_get_str(user, STR("token")));
    ret->token = str_trim(ret->token);
    if (ret->token.n == 0)
        ret->token = STR_NONE;
    return 0;
}

static int read_all(struct reader *r, const struct json *root, struct kubeconfig *ret)
{
    struct str current = json_get_str(root, STR("current-context"));
    const struct json *context = find_named(root, "contexts", current, "context");
    if (!context)
        return fail(r, -EINVAL, "there is no context \"%.*s\"", STR_ARG(current));
    struct str cluster_name = json_get_str(context, STR("cluster"));
    const struct json *cluster = find_named(root, "clusters", cluster_name, "cluster");
    if (!cluster)
        return fail(r, -EINVAL, "there is no cluster \"%.*s\"", STR_ARG(cluster_name));
    struct str user_name = json_get_str(context, STR("user"));
    const struct json *user = find_named(root, "users", user_name, "user");
    if (user_name.n > 0 && !user)
        return fail(r, -EINVAL, "there is no user \"%.*s\"", STR_ARG(user_name));
    return read_cluster(r, cluster, ret) < 0 || (user && read_user(r, user, ret) < 0) ? -EINVAL : 0;
}

int kubeconfig_parse(struct arena *a, struct str text, struct str directory, struct kubeconfig *ret,
                     struct str *ret_error)
{
    struct reader r = {.arena = a, .directory = directory};
    struct json_parse_result parsed = {0};
    struct kubeconfig k = {0};
    int result = yaml_parse(a, text, &parsed) < 0 ? fail(&r, -EINVAL, "%.*s", STR_ARG(parsed.error))
                                                  : read_all(&r, parsed.value, &k);
    if (result < 0)
        *ret_error = r.error;
    else
        *ret = k;
    return result;
}

int kubeconfig_load(struct arena *a, const char *path, struct kubeconfig *ret,
                    struct str *ret_error)
{
    BUF_AUTO text = {0};
    struct str whole = str_of(path);
    ptrdiff_t slash = str_find_last(whole, '/');
    int result = pki_file_read(path, &text);
    if (result < 0) {
        *ret_error = arena_printf(a, "cannot read it: %s", strerror(-result));
        return result;
    }
    return kubeconfig_parse(a, buf_str(&text),
                            slash < 0 ? STR(".") : str_sub(whole, 0, (size_t) slash), ret,
                            ret_error);
}
