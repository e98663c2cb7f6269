/* SPDX-License-Identifier: Apache-2.0 */
/* Images from a registry (the distribution specification of the OCI) over HTTPS, by curl: blobs go
 * from the network to disk as they come, redirects are followed without our credentials. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/log.h"
#include "pki/file.h"
#include "runtime/content_internal.h"
#include "runtime/curl.h"
#include "runtime/tree.h"

#define MAX_TOKEN_BYTES ((size_t) 64 * 1024)

static const char accepted[] =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

struct registry {
    struct content_source source;
    const struct content_task *task;
    struct registry_reference reference;
    struct arena *arena;
    const char *headers_path, *body_path, *ca_path; /* ca_path NULL: the machine's CAs */
    struct str authorization;                       /* "Bearer ...", once it was asked for */
};

/* ---- names --------------------------------------------------------------------------------- */

static bool has_only(struct str s, const char *more)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
              char_is_in(s.p[i], more)))
            return false;
    return s.n > 0;
}

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_valid(const struct registry_reference *r)
{
    return r->host.n <= 255 && r->repository.n <= 255 && r->tag.n <= 128 &&
           has_only(r->host, CAPITALS ".-:[]") && has_only(r->repository, "._-/") &&
           has_only(r->tag, CAPITALS "._-") && str_find_str(r->repository, STR("..")) < 0;
}

int registry_parse(struct arena *a, struct str url, struct registry_reference *ret)
{
    if (!str_starts_with(url, STR("docker://")))
        return -EINVAL;
    struct registry_reference r = {.tag = STR("latest")};
    struct str rest = str_from(url, strlen("docker://"));
    ptrdiff_t at = str_find(rest, '@');
    if (at >= 0) {
        if (image_digest_hex(str_from(rest, (size_t) at + 1), &r.hex) < 0)
            return -EINVAL;
        rest = str_sub(rest, 0, (size_t) at);
    }
    ptrdiff_t slash = str_find(rest, '/');
    if (slash <= 0)
        return -EINVAL;
    r.host = str_sub(rest, 0, (size_t) slash);
    r.repository = str_from(rest, (size_t) slash + 1);
    ptrdiff_t colon = str_find(r.repository, ':');
    if (colon >= 0) {
        r.tag = str_from(r.repository, (size_t) colon + 1);
        r.repository = str_sub(r.repository, 0, (size_t) colon);
    }
    if (str_is(r.host, "docker.io") || str_is(r.host, "index.docker.io")) {
        r.host = STR("registry-1.docker.io");
        if (str_find(r.repository, '/') < 0)
            r.repository = arena_printf(a, "library/%.*s", STR_ARG(r.repository));
    }
    if (!is_valid(&r))
        return -EINVAL;
    *ret = r;
    return 0;
}

struct str registry_challenge(struct str header, const char *parameter)
{
    for (size_t at = 0; at < header.n;) {
        struct str rest = str_from(header, at);
        ptrdiff_t found = str_find_str(rest, str_of(parameter));
        if (found < 0)
            return STR_NONE;
        size_t begin = at + (size_t) found, end = begin + strlen(parameter);
        at = begin + 1;
        bool is_word = begin == 0 || header.p[begin - 1] == ' ' || header.p[begin - 1] == ',';
        struct str value = str_from(header, end);
        if (!is_word || !str_starts_with(value, STR("=\"")))
            continue;
        value = str_from(value, 2);
        ptrdiff_t quote = str_find(value, '"');
        return quote < 0 ? STR_NONE : str_sub(value, 0, (size_t) quote);
    }
    return STR_NONE;
}

/* ---- one request --------------------------------------------------------------------------- */

struct request {
    struct str url;
    struct str authorization; /* STR_NONE: none */
    const char *to;
    int64_t max_bytes;
};

/* Returns the HTTP status. */
static int perform(const struct registry *r, const struct request *q, char **ret_error)
{
    const struct curl_request c = {
        .curl = r->task->curl,
        .url = q->url,
        .authorization = q->authorization,
        .accept = accepted,
        .to = q->to,
        .headers_to = r->headers_path,
        .ca_path = r->ca_path,
        .max_bytes = q->max_bytes,
        .is_cancelled = r->task->is_cancelled,
    };
    return curl_perform(&c, ret_error);
}

/* ---- authentication ------------------------------------------------------------------------ */

static struct str basic(struct registry *r)
{
    const struct runtime_content *c = r->task->asked;
    if (!c->user.n)
        return STR_NONE;
    struct str pair = arena_printf(r->arena, "%.*s:%.*s", STR_ARG(c->user), STR_ARG(c->password));
    return arena_printf(r->arena, "Basic %.*s",
                        STR_ARG(base64_encode(r->arena, pair, BASE64_STANDARD)));
}

static void append_encoded(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (has_only(str_range(s.p + i, 1), CAPITALS ".-_~"))
            buf_append_char(b, s.p[i]);
        else
            buf_printf(b, "%%%02X", (unsigned char) s.p[i]);
    }
}

static struct str find_challenge(struct registry *r)
{
    BUF_AUTO headers = {0};
    if (tree_read(AT_FDCWD, r->headers_path, CURL_MAX_HEADER_BYTES, &headers) < 0)
        return STR_NONE;
    struct str rest = buf_str(&headers), line, found = STR_NONE;
    const struct str name = STR("www-authenticate:");
    while (str_split(&rest, '\n', &line))
        if (line.n > name.n && str_eq_nocase(str_sub(line, 0, name.n), name))
            found = str_trim(str_from(line, name.n));
    return found.p ? arena_str(r->arena, found) : STR_NONE;
}

static int ask_token(struct registry *r, struct str challenge, char **ret_error)
{
    BUF_AUTO url = {0};
    BUF_AUTO text = {0};
    struct str realm = registry_challenge(challenge, "realm");
    struct str service = registry_challenge(challenge, "service");
    if (!str_starts_with(realm, STR("https://")))
        return error_set(ret_error, -EACCES, "the registry asks for a token from no https address");
    buf_append_str(&url, realm);
    buf_append_str(&url, str_find(realm, '?') < 0 ? STR("?service=") : STR("&service="));
    append_encoded(&url, service);
    buf_append_str(&url, STR("&scope="));
    append_encoded(
        &url, arena_printf(r->arena, "repository:%.*s:pull", STR_ARG(r->reference.repository)));
    const struct request q = {buf_str(&url), basic(r), r->body_path, MAX_TOKEN_BYTES};
    int status = perform(r, &q, ret_error);
    if (status < 0)
        return status;
    int e = tree_read(AT_FDCWD, r->body_path, MAX_TOKEN_BYTES, &text);
    const struct json *answer = e < 0 ? NULL : json_parse_quick(r->arena, buf_str(&text));
    struct str token = json_get_str(answer, STR("token"));
    if (!token.n)
        token = json_get_str(answer, STR("access_token"));
    if (status != 200 || !token.n)
        return error_set(ret_error, -EACCES, "%.*s gives no token (status %d)", STR_ARG(realm),
                         status);
    r->authorization = arena_printf(r->arena, "Bearer %.*s", STR_ARG(token));
    return 0;
}

static int authenticate(struct registry *r, char **ret_error)
{
    struct str challenge = find_challenge(r);
    if (challenge.n >= 7 && str_eq_nocase(str_sub(challenge, 0, 7), STR("Bearer ")))
        return ask_token(r, challenge, ret_error);
    r->authorization = basic(r);
    return r->authorization.p
               ? 0
               : error_set(ret_error, -EACCES, "the registry wants a user and a password");
}

/* Tokens may run out between two blobs of a large image: one more try with a new one. */
static int get(struct registry *r, struct str path, const char *to, int64_t max_bytes,
               char **ret_error)
{
    struct request q = {.to = to, .max_bytes = max_bytes};
    q.url = arena_printf(r->arena, "https://%.*s/v2/%.*s/%.*s", STR_ARG(r->reference.host),
                         STR_ARG(r->reference.repository), STR_ARG(path));
    for (int attempt = 0; attempt < 2; attempt++) {
        q.authorization = r->authorization;
        int status = perform(r, &q, ret_error);
        if (status < 0 || status == 200)
            return status < 0 ? status : 0;
        if (status != 401 || attempt == 1)
            return error_set(ret_error, status == 404 ? -ENOENT : -EIO, "%.*s: status %d",
                             STR_ARG(q.url), status);
        int e = authenticate(r, ret_error);
        if (e < 0)
            return e;
    }
    return -EACCES;
}

/* ---- the source ---------------------------------------------------------------------------- */

static int registry_manifest(struct content_source *s, struct str hex, struct buf *ret,
                             char **ret_error)
{
    struct registry *r = CONTAINER_OF(s, struct registry, source);
    struct str path = hex.p ? arena_printf(r->arena, "manifests/sha256:%.*s", STR_ARG(hex))
                            : arena_printf(r->arena, "manifests/%.*s", STR_ARG(r->reference.tag));
    int e = get(r, path, r->body_path, IMAGE_MAX_MANIFEST_BYTES, ret_error);
    if (e < 0)
        return e;
    e = tree_read(AT_FDCWD, r->body_path, IMAGE_MAX_MANIFEST_BYTES, ret);
    return e < 0 ? error_set(ret_error, e, "manifest: %s", log_errno_text(e)) : 0;
}

static int registry_blob(struct content_source *s, const struct image_blob *b, const char *to,
                         char **ret_error)
{
    struct registry *r = CONTAINER_OF(s, struct registry, source);
    struct str path = arena_printf(r->arena, "blobs/sha256:%.*s", STR_ARG(b->hex));
    return get(r, path, to, b->size_bytes, ret_error);
}

struct registry *registry_new(const struct content_task *t, const struct registry_reference *r,
                              const char *work_path)
{
    struct registry *s = NEW(struct registry);
    s->source = (struct content_source){registry_manifest, registry_blob};
    s->task = t;
    s->reference = *r;
    s->arena = arena_new();
    s->authorization = STR_NONE;
    s->headers_path = arena_printf(s->arena, "%s/headers", work_path).p;
    s->body_path = arena_printf(s->arena, "%s/body", work_path).p;
    if (t->asked->ca_pem.n) {
        s->ca_path = arena_printf(s->arena, "%s/ca.pem", work_path).p;
        (void) pki_file_write(s->ca_path, t->asked->ca_pem, 0600);
    }
    return s;
}

struct content_source *registry_source(struct registry *r)
{
    return &r->source;
}

void registry_free(struct registry *r)
{
    arena_free(r->arena);
    mem_free(r);
}
