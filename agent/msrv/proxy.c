/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics/ is the node exporter's: it is asked in the application's place, in HTTP/1.0, so that
 * its answer needs no decoding. Not more of it is held than the application is about to take. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "msrv/msrv_internal.h"

#define MAX_HEAD_BYTES ((size_t) 16 * 1024)

/* SENDING -> HEAD -> BODY -> OVER */
enum proxy_state { PROXY_SENDING, PROXY_HEAD, PROXY_BODY, PROXY_OVER };

struct proxy {
    struct conn *conn;
    enum proxy_state state;
    int fd;
    struct loop_fd *watch;
    struct buf request; /* to be sent */
    struct buf head;    /* received so far */
    bool has_length;
    uint64_t n_left; /* of the body, when its length is known */
};

static struct request *request_of(const struct proxy *p)
{
    return &p->conn->exchange.request;
}

static void on_closed(void *arg)
{
    struct proxy *p = arg;
    close(p->fd);
    buf_done(&p->request);
    buf_done(&p->head);
    mem_free(p);
}

void proxy_free(struct proxy *p)
{
    if (p)
        loop_fd_free(p->watch, on_closed, p);
}

/* No answer, or none that we understand. */
static void fail(struct conn *c)
{
    proxy_free(TAKE(c->proxy));
    answer_error(&c->exchange.request, 502, STR("Bad Gateway"));
    conn_answer(c);
}

bool proxy_is_over(const struct proxy *p)
{
    return p->state == PROXY_OVER;
}

bool proxy_give_up(struct proxy *p)
{
    if (p->state > PROXY_HEAD)
        return false;
    answer_error(request_of(p), 502, STR("Bad Gateway"));
    return true;
}

void proxy_resume(struct proxy *p)
{
    loop_fd_watch(p->watch, p->state == PROXY_SENDING ? LOOP_WRITABLE : LOOP_READABLE);
}

/* ---- the exporter's answer ------------------------------------------------------------------ */

static const struct str passed_on[] = {
    {"content-type", 12},
    {"content-encoding", 16},
    {"cache-control", 13},
    {"vary", 4},
};

/* "HTTP/1.1 200 OK" */
static int read_status(struct str line)
{
    int64_t status = 0;
    struct str code = str_sub(line, 9, 12);
    if (!str_starts_with(line, STR("HTTP/1.")) || line.n < 12 || line.p[8] != ' ')
        return -EBADMSG;
    if (str_to_i64(code, &status) < 0 || status < 200 || status > 599)
        return -EBADMSG;
    return (int) status;
}

static int read_header(struct proxy *p, struct str name, struct str value)
{
    struct request *r = request_of(p);
    if (str_eq_nocase(name, STR("transfer-encoding")))
        return -EBADMSG;
    if (str_eq_nocase(name, STR("content-length"))) {
        int64_t n = 0;
        if (str_to_i64(value, &n) < 0 || n < 0 || (p->has_length && (uint64_t) n != p->n_left))
            return -EBADMSG;
        p->has_length = true;
        p->n_left = (uint64_t) n;
    }
    for (size_t i = 0; i < N_ELEMENTS(passed_on); i++)
        if (str_eq_nocase(name, passed_on[i]) && r->answer.n_headers < N_ELEMENTS(passed_on))
            answer_header(r, passed_on[i], arena_str(r->arena, value));
    return 0;
}

static int read_head(struct proxy *p, struct str head)
{
    struct str line = STR("");
    if (!str_split(&head, '\n', &line))
        return -EBADMSG;
    int status = read_status(str_trim(line));
    if (status < 0)
        return status;
    while (str_split(&head, '\n', &line)) {
        line = str_trim(line);
        ptrdiff_t colon = str_find(line, ':');
        if (line.n == 0)
            continue;
        if (colon <= 0)
            return -EBADMSG;
        int e = read_header(p, str_sub(line, 0, (size_t) colon),
                            str_trim(str_from(line, (size_t) colon + 1)));
        if (e < 0)
            return e;
    }
    return status;
}

static void write_head(struct proxy *p, int status)
{
    struct conn *c = p->conn;
    struct request *r = request_of(p);
    const struct clock *clock = c->msrv->options.clock;
    char date[HTTP_DATE_BYTES];
    http_date(clock->wall_us(clock), date);
    bool has_body = status != 204 && status != 304;
    h1_write_head(&c->out, &(struct h1_answer){
                               .status = status,
                               .headers = r->answer.headers,
                               .n_headers = r->answer.n_headers,
                               .framing = !has_body ? H1_NO_BODY
                                                    : (p->has_length ? H1_LENGTH : H1_UNTIL_CLOSE),
                               .length = p->n_left,
                               .date = str_of(date),
                               .closes = true,
                           });
    p->state = PROXY_BODY;
    if (!has_body || str_is(r->message->method, "HEAD") || (p->has_length && p->n_left == 0))
        p->state = PROXY_OVER;
}

static void pass_body(struct proxy *p, struct str bytes)
{
    if (p->state != PROXY_BODY)
        return;
    if (p->has_length)
        bytes = str_sub(bytes, 0, (size_t) MIN((uint64_t) bytes.n, p->n_left));
    buf_append_str(&p->conn->out, bytes);
    p->n_left -= p->has_length ? bytes.n : 0;
    if (p->has_length && p->n_left == 0)
        p->state = PROXY_OVER;
}

/* The client is served first; it resumes us. */
static void pass_on(struct proxy *p)
{
    loop_fd_watch(p->watch, 0);
    conn_pump(p->conn);
}

static void take_head(struct proxy *p, struct str bytes)
{
    buf_append_str(&p->head, bytes);
    struct str text = buf_str(&p->head);
    ptrdiff_t end = str_find_str(text, STR("\r\n\r\n"));
    if (end < 0 && text.n <= MAX_HEAD_BYTES)
        return;
    int status = end < 0 ? -EMSGSIZE : read_head(p, str_sub(text, 0, (size_t) end));
    if (status < 0) {
        request_of(p)->answer.n_headers = 0;
        fail(p->conn);
        return;
    }
    write_head(p, status);
    pass_body(p, str_from(text, (size_t) end + 4));
    pass_on(p);
}

/* An answer that breaks off, breaks off for the application, too. */
static void on_end(struct proxy *p)
{
    if (p->state == PROXY_HEAD) {
        fail(p->conn);
        return;
    }
    if (p->has_length) {
        conn_close(p->conn);
        return;
    }
    p->state = PROXY_OVER;
    pass_on(p);
}

static void on_readable(struct proxy *p)
{
    char bytes[16 * 1024];
    ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        on_end(p);
        return;
    }
    if (p->state == PROXY_HEAD) {
        take_head(p, str_range(bytes, (size_t) n));
        return;
    }
    pass_body(p, str_range(bytes, (size_t) n));
    pass_on(p);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void add_header(struct proxy *p, struct str name)
{
    struct str value = message_header(request_of(p)->message, name);
    if (value.p)
        buf_printf(&p->request, "%.*s: %.*s\r\n", STR_ARG(name), STR_ARG(value));
}

static void write_request(struct proxy *p)
{
    const struct request *r = request_of(p);
    buf_printf(&p->request, "%.*s /metrics%s%.*s HTTP/1.0\r\nHost: localhost:%d\r\n",
               STR_ARG(r->message->method), r->query.n ? "?" : "", STR_ARG(r->query),
               p->conn->msrv->options.exporter_port);
    add_header(p, STR("accept"));
    add_header(p, STR("accept-encoding"));
    add_header(p, STR("content-type"));
    buf_printf(&p->request, "X-Forwarded-For: %.*s\r\nContent-Length: %zu\r\n\r\n",
               STR_ARG(p->conn->exchange.address), r->body.n);
    buf_append_str(&p->request, r->body);
}

static void on_writable(struct proxy *p)
{
    ssize_t n = send(p->fd, p->request.p, p->request.n, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        fail(p->conn);
        return;
    }
    buf_consume(&p->request, (size_t) n);
    if (p->request.n > 0)
        return;
    p->state = PROXY_HEAD;
    loop_fd_watch(p->watch, LOOP_READABLE);
}

static void on_ready(void *arg, unsigned ready)
{
    (void) ready;
    struct proxy *p = arg;
    if (p->state == PROXY_SENDING)
        on_writable(p);
    else
        on_readable(p);
}

static int connect_exporter(const struct msrv_options *o)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t) o->exporter_port)};
    if (inet_pton(AF_INET, o->exporter_address, &to.sin_addr) != 1)
        return -EINVAL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *) &to, sizeof(to)) < 0 && errno != EINPROGRESS) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

void proxy_start(struct conn *c)
{
    int fd = connect_exporter(&c->msrv->options);
    if (fd < 0) {
        fail(c);
        return;
    }
    struct proxy *p = NEW(struct proxy);
    *p = (struct proxy){.conn = c, .fd = fd};
    p->watch = loop_fd_new(c->msrv->options.loop, fd, on_ready, p);
    if (!p->watch) {
        on_closed(p);
        fail(c);
        return;
    }
    c->proxy = p;
    write_request(p);
    loop_fd_watch(p->watch, LOOP_WRITABLE);
}
