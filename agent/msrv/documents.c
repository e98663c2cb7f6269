/* SPDX-License-Identifier: Apache-2.0 */
/* What the device says of itself: location, modems, ports, diagnosis. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "msrv/msrv_internal.h"

static const struct json *find(struct request *r, enum msrv_document which)
{
    const struct msrv_options *o = &r->msrv->options;
    return o->world->document ? o->world->document(o->ctx, r->arena, which) : NULL;
}

static void answer_document(struct request *r, const struct json *value)
{
    if (value)
        answer_json(r, 200, value);
    else
        r->answer.status = 204;
}

void location_answer(struct request *r)
{
    answer_document(r, find(r, MSRV_LOCATION));
}

void wwan_metrics_answer(struct request *r)
{
    answer_document(r, find(r, MSRV_WWAN_METRICS));
}

/* ---- modems --------------------------------------------------------------------------------- */

/* An empty name is left out by those who write it, so it is removed here. Both spellings: the topic
 * is written with lower-case names, older code with Go's. */
static void remove_name(struct json *module_or_sim)
{
    if (!json_is(module_or_sim, JSON_OBJECT))
        return;
    (void) json_remove(module_or_sim, STR("name"));
    (void) json_remove(module_or_sim, STR("Name"));
}

static struct json *get_either(struct json *object, struct str key, struct str other_key)
{
    struct json *v = json_get(object, key);
    return v ? v : json_get(object, other_key);
}

/* The names of modules and SIM cards are EVE's own and mean nothing to applications. */
void wwan_status_answer(struct request *r)
{
    const struct json *status = find(r, MSRV_WWAN_STATUS);
    if (!status) {
        r->answer.status = 204;
        return;
    }
    struct json out = json_clone(r->arena, status);
    struct json *networks = get_either(&out, STR("networks"), STR("Networks"));
    JSON_FOR_EACH_ITEM (networks, network) {
        remove_name(get_either(network, STR("cellular-module"), STR("Module")));
        struct json *cards = get_either(network, STR("sim-cards"), STR("SimCards"));
        JSON_FOR_EACH_ITEM (cards, card) {
            remove_name(card);
        }
    }
    answer_json(r, 200, &out);
}

/* ---- ports ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;  /* in the answer */
    const char *topic; /* in NetworkMetrics */
} counters[] = {
    {"TxBytes", "TxBytes"},
    {"RxBytes", "RxBytes"},
    {"TxDrops", "TxDrops"},
    {"RxDrops", "RxDrops"},
    {"TxPkts", "TxPkts"},
    {"RxPkts", "RxPkts"},
    {"TxErrors", "TxErrors"},
    {"RxErrors", "RxErrors"},
    {"TxACLDrops", "TxAclDrops"},
    {"RxACLDrops", "RxAclDrops"},
    {"TxACLRateLimitDrops", "TxAclRateLimitDrops"},
    {"RxACLRateLimitDrops", "RxAclRateLimitDrops"},
};

static const struct json *find_metric(const struct json *list, struct str interface)
{
    JSON_FOR_EACH_ITEM (list, metric) {
        if (str_eq(json_get_str(metric, STR("IfName")), interface))
            return metric;
    }
    return NULL;
}

static void add_port(struct arena *a, struct json *out, const struct json *port,
                     const struct json *metric)
{
    struct json *item = json_push(a, out, json_object());
    json_append_member(a, item, STR("IfName"), json_string(json_get_str(port, STR("IfName"))));
    json_append_member(a, item, STR("Up"), json_bool(json_get_bool(port, STR("Up"), false)));
    for (size_t i = 0; i < N_ELEMENTS(counters); i++) {
        /* Beyond int64 it is a double already: it is passed on as it is. */
        const struct json *v = json_get(metric, str_of(counters[i].topic));
        json_append_member(a, item, str_of(counters[i].name), json_is_number(v) ? *v : json_int(0));
    }
}

void network_metrics_answer(struct request *r)
{
    const struct json *status = find(r, MSRV_DEVICE_NETWORK_STATUS);
    const struct json *metrics = status ? find(r, MSRV_NETWORK_METRICS) : NULL;
    if (!metrics) {
        r->answer.status = 204;
        return;
    }
    struct json *out = json_new(r->arena, json_array());
    const struct json *list = json_get(metrics, STR("MetricList"));
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port) {
        struct str interface = json_get_str(port, STR("IfName"));
        const struct json *metric = interface.n ? find_metric(list, interface) : NULL;
        if (metric)
            add_port(r->arena, out, port, metric);
    }
    answer_json(r, 200, out);
}

/* ---- diagnosis ------------------------------------------------------------------------------ */

/* One byte more than the limit tells that there is too much. */
static ssize_t read_up_to(int fd, char *out, size_t n_bytes)
{
    size_t n = 0;
    while (n < n_bytes) {
        ssize_t r = read(fd, out + n, n_bytes - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        n += (size_t) r;
    }
    return (ssize_t) n;
}

void diag_answer(struct request *r)
{
    const char *path = r->msrv->options.diag_path;
    if (!r->app) {
        answer_error(r, 403,
                     arena_printf(r->arena, "diagHandler: no AppNetworkStatus for %.*s",
                                  STR_ARG(r->caller)));
        return;
    }
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0) {
        bool is_absent = !path || errno == ENOENT;
        answer_error(r, is_absent ? 404 : 500,
                     is_absent ? STR("diagHandler: file not found") : STR("diagHandler: read"));
        return;
    }
    char *text = arena_alloc(r->arena, MSRV_MAX_DIAG_BYTES + 1);
    ssize_t n = read_up_to(fd, text, MSRV_MAX_DIAG_BYTES + 1);
    close(fd);
    if (n < 0)
        answer_error(r, 500, STR("diagHandler: read"));
    else if (n > MSRV_MAX_DIAG_BYTES)
        answer_error(r, 500, STR("diagHandler: size exceeds limit. Expected <= 65535"));
    else
        answer_text(r, 200, "text", str_range(text, (size_t) n));
}
