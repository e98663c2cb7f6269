/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/image.h"

#include <errno.h>
#include <signal.h>
#include <sys/utsname.h>

#include "base/error.h"

int image_digest_hex(struct str digest, struct str *ret_hex)
{
    struct str hex = str_from(digest, strlen("sha256:"));
    if (!str_starts_with(digest, STR("sha256:")) || hex.n != IMAGE_HEX_BYTES)
        return -EINVAL;
    for (size_t i = 0; i < hex.n; i++)
        if (!((hex.p[i] >= '0' && hex.p[i] <= '9') || (hex.p[i] >= 'a' && hex.p[i] <= 'f')))
            return -EINVAL;
    *ret_hex = hex;
    return 0;
}

struct str image_architecture(void)
{
    static const struct {
        const char *machine, *go;
    } names[] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"},   {"armv7l", "arm"},
        {"i686", "386"},     {"riscv64", "riscv64"},
    };
    struct utsname u;
    if (uname(&u) < 0)
        return STR("unknown");
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (strcmp(u.machine, names[i].machine) == 0)
            return str_of(names[i].go);
    return STR("unknown");
}

/* ---- manifests ----------------------------------------------------------------------------- */

int image_classify(const struct json *document, enum image_document *ret)
{
    if (json_is(json_get(document, STR("manifests")), JSON_ARRAY))
        *ret = IMAGE_IS_INDEX;
    else if (json_is(json_get(document, STR("config")), JSON_OBJECT) &&
             json_is(json_get(document, STR("layers")), JSON_ARRAY))
        *ret = IMAGE_IS_MANIFEST;
    else
        return -EINVAL;
    return 0;
}

static int read_blob(const struct json *descriptor, struct image_blob *ret)
{
    struct image_blob b = {
        .size_bytes = json_get_int(descriptor, STR("size"), -1),
        .media_type = json_get_str(descriptor, STR("mediaType")),
        .role = json_str(json_at(descriptor, "annotations", "org.lfedge.eci.role", NULL)),
    };
    int e = image_digest_hex(json_get_str(descriptor, STR("digest")), &b.hex);
    if (e < 0 || b.size_bytes < 0)
        return -EINVAL;
    *ret = b;
    return 0;
}

static bool fits(const struct json *platform, struct str architecture)
{
    return str_is(json_get_str(platform, STR("os")), "linux") &&
           str_eq(json_get_str(platform, STR("architecture")), architecture);
}

int image_choose(const struct json *index, struct str architecture, struct image_blob *ret)
{
    const struct json *manifests = json_get(index, STR("manifests"));
    JSON_FOR_EACH_ITEM (manifests, m) {
        if (fits(json_get(m, STR("platform")), architecture))
            return read_blob(m, ret);
    }
    /* A layout made by hand often leaves the platform out. */
    if (json_count(manifests) == 1 && !json_get(manifests->items, STR("platform")))
        return read_blob(manifests->items, ret);
    return -ENOEXEC;
}

int image_read_manifest(struct arena *a, const struct json *manifest, struct image_manifest *ret,
                        char **ret_error)
{
    const struct json *layers = json_get(manifest, STR("layers"));
    struct image_manifest m = {.n_layers = json_count(layers)};
    if (m.n_layers > IMAGE_MAX_LAYERS)
        return error_set(ret_error, -EFBIG, "manifest: more than %d layers", IMAGE_MAX_LAYERS);
    if (read_blob(json_get(manifest, STR("config")), &m.config) < 0)
        return error_set(ret_error, -EINVAL, "manifest: its config has no valid digest and size");
    m.layers = ARENA_ARRAY(a, struct image_blob, m.n_layers + 1);
    for (size_t i = 0; i < m.n_layers; i++)
        if (read_blob(&layers->items[i], &m.layers[i]) < 0)
            return error_set(ret_error, -EINVAL, "manifest: layer %zu has no valid digest and size",
                             i);
    *ret = m;
    return 0;
}

/* ---- the configuration --------------------------------------------------------------------- */

int image_signal(struct str name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {
        {"HUP", SIGHUP},   {"INT", SIGINT},     {"QUIT", SIGQUIT},
        {"KILL", SIGKILL}, {"USR1", SIGUSR1},   {"USR2", SIGUSR2},
        {"TERM", SIGTERM}, {"WINCH", SIGWINCH}, {"PWR", SIGPWR},
    };
    int64_t number;
    if (str_to_i64(name, &number) == 0)
        return number > 0 && number <= SIGRTMAX ? (int) number : -EINVAL;
    if (str_starts_with(name, STR("SIGRTMIN+")))
        return str_to_i64(str_from(name, 9), &number) == 0 && number >= 0 && number <= 30
                   ? SIGRTMIN + (int) number
                   : -EINVAL;
    if (str_starts_with(name, STR("SIG")))
        name = str_from(name, 3);
    for (size_t i = 0; i < N_ELEMENTS(signals); i++)
        if (str_is(name, signals[i].name))
            return signals[i].number;
    return -EINVAL;
}

/* Appends the strings of a list; null counts as an empty one, as Go writes it. */
static int append_texts(const struct json *list, struct str *texts, size_t *n)
{
    if (!list || json_is(list, JSON_NULL))
        return 0;
    if (!json_is(list, JSON_ARRAY))
        return -EINVAL;
    JSON_FOR_EACH_ITEM (list, item) {
        struct str s = json_str(item);
        if (!s.p || memchr(s.p, 0, s.n))
            return -EINVAL;
        texts[(*n)++] = s;
    }
    return 0;
}

int image_read_config(struct arena *a, const struct json *config, struct image_config *ret,
                      char **ret_error)
{
    const struct json *c = json_get(config, STR("config"));
    const struct json *entry = json_get(c, STR("Entrypoint")), *cmd = json_get(c, STR("Cmd"));
    const struct json *env = json_get(c, STR("Env"));
    struct image_config r = {.working_directory = STR("/"), .stop_signal = SIGTERM};
    if (json_count(entry) + json_count(cmd) > IMAGE_MAX_TEXTS || json_count(env) > IMAGE_MAX_TEXTS)
        return error_set(ret_error, -EFBIG, "image config: more than %d strings", IMAGE_MAX_TEXTS);
    r.args = ARENA_ARRAY(a, struct str, json_count(entry) + json_count(cmd) + 1);
    r.env = ARENA_ARRAY(a, struct str, json_count(env) + 1);
    if (append_texts(entry, r.args, &r.n_args) < 0 || append_texts(cmd, r.args, &r.n_args) < 0 ||
        append_texts(env, r.env, &r.n_env) < 0)
        return error_set(ret_error, -EINVAL,
                         "image config: Entrypoint, Cmd and Env must be lists of strings");
    r.user = json_get_str(c, STR("User"));
    struct str directory = json_get_str(c, STR("WorkingDir"));
    if (directory.n)
        r.working_directory =
            directory.p[0] == '/' ? directory : arena_printf(a, "/%.*s", STR_ARG(directory));
    struct str signal_name = json_get_str(c, STR("StopSignal"));
    if (signal_name.n && (r.stop_signal = image_signal(signal_name)) < 0)
        return error_set(ret_error, -EINVAL, "image config: no signal is called '%.*s'",
                         (int) MIN(signal_name.n, (size_t) 32), signal_name.p);
    *ret = r;
    return 0;
}

/* ---- users --------------------------------------------------------------------------------- */

/* The n-th field of a line of passwd or group. */
static struct str field(struct str line, int n)
{
    struct str part = STR_NONE;
    for (int i = 0; i <= n; i++)
        if (!str_split(&line, ':', &part))
            return STR_NONE;
    return part;
}

static bool to_id(struct str text, uint32_t *ret)
{
    int64_t v;
    if (str_to_i64(text, &v) < 0 || v < 0 || v > UINT32_MAX - 1)
        return false;
    *ret = (uint32_t) v;
    return true;
}

static struct str find_line(struct str text, int column, struct str value)
{
    struct str line;
    while (str_split(&text, '\n', &line))
        if (value.n && str_eq(field(line, column), value))
            return line;
    return STR_NONE;
}

int image_find_user(struct str user, struct str passwd, struct str group, struct image_user *ret)
{
    struct image_user u = {0, 0};
    ptrdiff_t colon = str_find(user, ':');
    struct str name = colon < 0 ? user : str_sub(user, 0, (size_t) colon);
    struct str group_name = colon < 0 ? STR_NONE : str_from(user, (size_t) colon + 1);
    if (name.n) {
        bool is_number = to_id(name, &u.uid);
        struct str line = find_line(passwd, is_number ? 2 : 0, name);
        if (!is_number && (!line.p || !to_id(field(line, 2), &u.uid)))
            return -ENOENT;
        if (line.p)
            (void) to_id(field(line, 3), &u.gid);
    }
    if (group_name.n && !to_id(group_name, &u.gid)) {
        struct str line = find_line(group, 0, group_name);
        if (!line.p || !to_id(field(line, 2), &u.gid))
            return -ENOENT;
    }
    *ret = u;
    return 0;
}
