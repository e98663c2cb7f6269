/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/curl.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/child.h"

/* A large layer on a slow line; stalls end earlier. */
#define REQUEST_MS ((int64_t) 6 * 3600 * 1000)

/* As curl's configuration file wants it; a line break would begin another option. */
static int option(struct buf *b, const char *name, struct str value)
{
    buf_printf(b, "%s = \"", name);
    for (size_t i = 0; i < value.n; i++) {
        if ((unsigned char) value.p[i] < ' ')
            return -EINVAL;
        if (value.p[i] == '"' || value.p[i] == '\\')
            buf_append_char(b, '\\');
        buf_append_char(b, value.p[i]);
    }
    buf_append_str(b, STR("\"\n"));
    return 0;
}

static int write_authorization(struct buf *b, struct str authorization)
{
    BUF_AUTO line = {0};
    buf_printf(&line, "Authorization: %.*s", STR_ARG(authorization));
    return option(b, "header", buf_str(&line));
}

static int write_options(const struct curl_request *q, struct buf *b)
{
    const char *schemes = q->allows_http ? "=http,https" : "=https";
    buf_append_str(b, STR("silent\nlocation\nmax-redirs = 5\nconnect-timeout = 20\n"
                          "speed-limit = 500\nspeed-time = 60\nwrite-out = \"%{http_code}\"\n"));
    int e = option(b, "proto", str_of(schemes)) | option(b, "proto-redir", str_of(schemes)) |
            option(b, "url", q->url) | option(b, "output", str_of(q->to));
    if (q->headers_to)
        e |= option(b, "dump-header", str_of(q->headers_to));
    if (q->accept)
        e |= option(b, "header", str_of(q->accept));
    if (q->authorization.p)
        e |= write_authorization(b, q->authorization);
    if (q->ca_path)
        e |= option(b, "cacert", str_of(q->ca_path));
    return e ? -EINVAL : 0;
}

static const char *reason(int code)
{
    switch (code) {
    case 5:
    case 6:
        return "the name cannot be resolved";
    case 7:
        return "no connection";
    case 28:
        return "no answer in time";
    case 35:
    case 60:
        return "its TLS certificate is not trusted";
    case 128 + 25:
        return "larger than it says";
    default:
        return "the transfer failed";
    }
}

int curl_perform(const struct curl_request *q, char **ret_error)
{
    BUF_AUTO options = {0};
    BUF_AUTO output = {0};
    (void) unlink(q->to);
    if (write_options(q, &options) < 0)
        return error_set(ret_error, -EINVAL, "'%.*s': not a valid URL", STR_ARG(q->url));
    const char *const argv[] = {q->curl, "-q", "-K", "-", NULL};
    const struct child c = {
        .argv = argv,
        .input = buf_str(&options),
        .out_fd = -1,
        .err_fd = -1,
        /* Small files share the limit with curl's others. */
        .max_file_bytes = MAX(q->max_bytes, (int64_t) CURL_MAX_HEADER_BYTES),
        .timeout_ms = REQUEST_MS,
        .is_cancelled = q->is_cancelled,
    };
    int code = child_run(&c, &output);
    int64_t status;
    if (code < 0)
        return error_set(ret_error, code, "curl: %s", log_errno_text(code));
    if (code > 0)
        return error_set(ret_error, -EIO, "%.*s: %s (curl %d)", STR_ARG(q->url), reason(code),
                         code);
    return str_to_i64(buf_str(&output), &status) < 0 ? -EIO : (int) status;
}
