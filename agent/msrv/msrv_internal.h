/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this directory share. Between bytes and sockets stands the exchange: one
 * request and its answer, without I/O but for the files an answer names. */
#pragma once

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "http/bucket.h"
#include "http/h1.h"
#include "msrv/msrv.h"

/* ---- answers: answer.c ---------------------------------------------------------------------- */

#define ANSWER_MAX_HEADERS 8

/* A piece of a body: bytes, or a part of a file. */
struct part {
    struct str bytes;
    const char *path; /* NULL: bytes */
    uint64_t offset, length;
    uint32_t *crc; /* of a file: kept up to date as it is read; NULL: nobody asks */
    /* Makes the bytes, of the length already given, when their turn comes; NULL: they are there. */
    void (*make)(struct part *p, void *arg);
    void *make_arg;
};

struct answer {
    int status; /* 0: none yet */
    struct http_header headers[ANSWER_MAX_HEADERS];
    size_t n_headers;
    struct part *parts;
    size_t n_parts;
    bool is_proxied; /* the exporter answers */
};

/* A request as a handler sees it. */
struct request {
    struct msrv *msrv;
    struct arena *arena;
    const struct message *message;
    struct str path, query; /* as sent */
    struct str rest;        /* of the path, behind what the route names */
    struct str body;
    bool is_body_cut;           /* it was larger than MSRV_MAX_BODY_BYTES */
    struct str caller;          /* address and port, as in network.json */
    const struct msrv_app *app; /* NULL: unknown */
    void *found;                /* what on_loop leaves for on_worker */
    struct answer answer;
};

void answer_header(struct request *r, struct str name, struct str value);
/* The last body counts. Bytes live as long as the arena. */
void answer_bytes(struct request *r, struct str bytes);
void answer_parts(struct request *r, struct part *parts, size_t n_parts);
void answer_text(struct request *r, int status, const char *content_type, struct str body);
void answer_json(struct request *r, int status, const struct json *value);
/* As Go's http.Error: text, and a line's end behind it. */
void answer_error(struct request *r, int status, struct str message);
/* As the handlers of patches, discovery and TPM: text of the form {"message": "..."}. */
void answer_message(struct request *r, int status, struct str message);
uint64_t answer_length(const struct answer *a);
/* With the blank line. */
void answer_write_head(struct buf *out, const struct answer *a, int64_t wall_us);

#define HTTP_DATE_BYTES 30
/* "Mon, 02 Jan 2006 15:04:05 GMT" */
void http_date(int64_t wall_us, char out[HTTP_DATE_BYTES]);

/* ---- routes: route.c ------------------------------------------------------------------------ */

/* What a route does, in this order, until there is an answer. */
struct route {
    const char *method; /* NULL: any */
    const char *path;
    bool has_rest; /* more may follow the path */
    void (*on_loop)(struct request *r);
    void (*on_worker)(
        struct request *r);           /* may take long; only its group of the world's functions */
    void (*after)(struct request *r); /* on the loop again, after an answer of on_worker */
};

/* The route of the request, whose `rest` it sets; NULL: it is answered. */
const struct route *route_find(struct request *r);
/* A part of a path in clear; STR_NONE when it is no good encoding. */
struct str route_unescape(struct arena *a, struct str text);

/* identity.c */
void network_answer(struct request *r);
void external_ipv4_answer(struct request *r);
void hostname_answer(struct request *r);
void discover_answer(struct request *r);
/* metadata.c */
void kubeconfig_answer(struct request *r);
void custom_status_answer(struct request *r);
/* documents.c */
void location_answer(struct request *r);
void wwan_status_answer(struct request *r);
void wwan_metrics_answer(struct request *r);
void network_metrics_answer(struct request *r);
void diag_answer(struct request *r);
/* openstack.c */
void openstack_check(struct request *r);
void openstack_answer(struct request *r);
/* blobs.c */
void app_info_answer(struct request *r);
void app_blob_find(struct request *r);
void app_blob_answer(struct request *r);
/* tpm.c */
void signer_check(struct request *r);
void signer_answer(struct request *r);
void tpm_keys_answer(struct request *r);
void tpm_activate_answer(struct request *r);
/* patch.c */
void patch_description_answer(struct request *r);
void patch_find(struct request *r);
void patch_answer(struct request *r);
void patch_count(struct request *r);
/* visitors.c */
void metrics_answer(struct request *r);

/* ---- content.c, zip.c ----------------------------------------------------------------------- */

/* A regular file with its ranges and conditions, as Go's http.ServeContent; false: no such file,
 * nothing is answered. */
bool content_answer(struct request *r, const char *path);

struct zip_entry {
    struct str name;
    const char *path; /* NULL: bytes */
    struct str bytes;
    uint64_t length;
};
/* An archive of entries as they are (nothing is compressed), made as it is sent. -EFBIG. */
int zip_answer(struct request *r, const struct zip_entry *entries, size_t n_entries);

/* ---- visitors.c: the rate of /metrics/ ------------------------------------------------------ */

struct visitors {
    struct map by_address;
    struct list by_age; /* latest last */
    struct msrv_rate rate;
};

void visitors_init(struct visitors *v);
void visitors_done(struct visitors *v);
void visitors_set_rate(struct visitors *v, const struct msrv_rate *rate);
bool visitors_admit(struct visitors *v, struct str address, int64_t now_ms);

/* ---- exchange.c: bytes to a request, a request to an answer -------------------------------- */

enum exchange_step {
    EXCHANGE_READING,
    EXCHANGE_CONTINUE, /* as READING; the client waits for "100 Continue" */
    EXCHANGE_TO_WORK,  /* exchange_work() on a worker, then exchange_finish() on the loop */
    EXCHANGE_ANSWERED,
};

struct exchange {
    struct msrv *msrv;
    struct arena *arena;
    struct h1 *h1;
    struct message message;
    struct request request;
    const struct route *route;
    struct str network, address;
    struct msrv_app app;
};

void exchange_init(struct exchange *x, struct msrv *m, struct str network, struct str address,
                   int port);
void exchange_done(struct exchange *x);
enum exchange_step exchange_feed(struct exchange *x, struct str bytes);
void exchange_work(struct exchange *x);
void exchange_finish(struct exchange *x);

/* ---- server.c, conn.c, proxy.c -------------------------------------------------------------- */

struct msrv {
    struct msrv_options options;
    struct visitors visitors;
    struct list listeners;
    struct list connections; /* oldest first */
    struct loop_timer *timer;
    bool is_timer_on, is_freed;
    char *diag_path; /* our copy: workers read it */
    size_t n_refs;   /* the owner's, and one of each connection and listener that is not gone yet */
    struct msrv_count count;
};

static inline int64_t msrv_now_ms(const struct msrv *m)
{
    return m->options.clock->monotonic_us(m->options.clock) / 1000;
}

struct msrv_listener {
    struct list link;
    struct msrv *msrv;
    char *network;
    int fd, port;
    struct loop_fd *watch;
    bool is_paused; /* there are no descriptors left: the timer tries again */
};

/* clang-format off */
/*     READING --> WORKING --> WRITING --> LINGERING
 *         \-------------------^  ^
 *          \--> PROXYING --------/     any --> CLOSING */
/* clang-format on */
enum conn_state {
    CONN_READING,
    CONN_WORKING, /* a worker makes the answer */
    CONN_WRITING,
    CONN_PROXYING,
    CONN_LINGERING, /* the answer is out, what still comes is dropped */
    CONN_CLOSING,
};

/* A read of an answer or of the exporter. */
#define CONN_CHUNK_BYTES ((size_t) 64 * 1024)

struct conn {
    struct list link;
    struct msrv *msrv;
    const struct msrv_listener *listener;
    enum conn_state state;
    uint32_t address_key;
    int fd;
    struct loop_fd *watch;
    struct exchange exchange;
    struct buf out;
    size_t out_at;    /* sent of it */
    size_t part;      /* being sent */
    uint64_t part_at; /* read of it */
    int file;         /* of the part; -1: not open */
    bool is_at_work;  /* a worker has it: nothing else touches it, nor closes it */
    int work_error;
    int64_t deadline_ms; /* 0: none */
    size_t n_moved;      /* bytes sent since the deadline was set */
    size_t n_lingered;
    bool is_reprieved; /* lingers once more, for a peer that has not taken all */
    struct proxy *proxy;
};

/* Takes the socket over. */
void conn_open(struct msrv_listener *l, int fd, uint32_t address_key, const char *address,
               int port);
/* Memory goes later; another call does no harm. */
void conn_close(struct conn *c);
/* Has not been answered, or has been. */
bool conn_is_idle(const struct conn *c);
void conn_on_deadline(struct conn *c);
/* Begins the answer that the exchange has. */
void conn_answer(struct conn *c);
/* Sends what waits, then goes on with what there is to send. */
void conn_pump(struct conn *c);
size_t conn_waiting(const struct conn *c);

/* Has the exporter answer. */
void proxy_start(struct conn *c);
/* The client has taken all that waited. */
void proxy_resume(struct proxy *p);
/* Nothing more is to come. */
bool proxy_is_over(const struct proxy *p);
/* Too late; true: there is an answer that says so. */
bool proxy_give_up(struct proxy *p);
void proxy_free(struct proxy *p);

void msrv_unref(struct msrv *m);
/* A connection has come: deadlines are looked after while there is any. */
void msrv_start_timer(struct msrv *m);
