/* SPDX-License-Identifier: Apache-2.0 */
/* What the server offers on the Kubernetes port beside the Kubernetes API: paths of their own, but
 * the same door, so that users, rights, limits, audit and metrics hold for them too. */
#pragma once

#include "api/request.h"
#include "api/status.h"
#include "api/user.h"
#include "base/buf.h"

/* Lives until the answer is out or the stream closed. */
struct annex_request {
    struct arena *arena;
    enum http_method method;
    struct str path; /* decoded */
    struct request_query query;
    struct request_path resource; /* is_resource: what rights were asked for */
    struct user user;
    struct str accept, content_type, body;
    bool wants_stream; /* X-Stream: true */
    struct str source; /* the peer's address */
};

/* A body that comes piece by piece. The server pulls: it asks for more when the peer has taken what
 * there was. One call at a time, on worker threads; cancel() also on a loop's. */
enum annex_read { ANNEX_END, ANNEX_MORE, ANNEX_WAIT };
struct annex_stream {
    /* Appends about `room` bytes, whole lines or frames. ANNEX_WAIT: nothing for now (what was
     * appended goes out). */
    enum annex_read (*read)(struct annex_stream *s, struct buf *to, size_t room);
    /* After ANNEX_WAIT: calls wake(arg) once, from any thread, when read() has more to say; at once
     * is allowed. */
    void (*wait)(struct annex_stream *s, void (*wake)(void *arg), void *arg);
    /* Ends a wait(), woken or not: wake is not called any more when it returns. Does not block. */
    void (*cancel)(struct annex_stream *s);
    void (*close)(struct annex_stream *s); /* the last call: frees */
};

struct annex_answer {
    int code;
    struct str content_type;
    struct str body;             /* in the request's arena, or static */
    struct annex_stream *stream; /* instead of body */
};

struct annex {
    void *ctx;
    /* On the loop, before rights are asked for: is the path ours? May fill *resource and *verb: the
     * right that is needed is then that on a resource (devices/log in its namespace), else that on
     * the path with the method. -ENOENT: not ours; other negatives with st filled: refused. */
    int (*claim)(void *ctx, struct arena *a, struct str path, enum http_method method,
                 struct request_path *resource, enum verb *verb, struct status *st);
    /* Nobody needs rights for it from this address (the flag for old tools). NULL: everybody does.
     */
    bool (*is_open)(void *ctx, struct str path, struct str source);
    /* On a worker; may block. 0, or a negative errno with st filled. */
    int (*answer)(void *ctx, const struct annex_request *q, struct annex_answer *ret,
                  struct status *st);
};
