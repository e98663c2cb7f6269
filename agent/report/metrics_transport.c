/* SPDX-License-Identifier: Apache-2.0 */
/* How the way to the controller does, over all services: their MetricsMaps added up by interface
 * and URL. */
#include "report/metrics.h"

#define MAX_INTERFACES 64
#define MAX_URLS 512

static Eve__Metrics__ZedcloudMetric *interface_of(struct world *w, Eve__Metrics__DeviceMetric *d,
                                                  struct str name)
{
    for (size_t i = 0; i < d->n_zedcloud; i++)
        if (str_eq(pb_text(d->zedcloud[i]->ifname), name))
            return d->zedcloud[i];
    if (d->n_zedcloud == MAX_INTERFACES)
        return NULL;
    Eve__Metrics__ZedcloudMetric *z =
        MAKE(w, Eve__Metrics__ZedcloudMetric, eve__metrics__zedcloud_metric);
    z->ifname = make_text(w, name);
    PUSH(w, d, zedcloud, z);
    return z;
}

static Eve__Metrics__UrlcloudMetric *url_of(struct world *w, Eve__Metrics__ZedcloudMetric *z,
                                            struct str url)
{
    for (size_t i = 0; i < z->n_urlmetrics; i++)
        if (str_eq(pb_text(z->urlmetrics[i]->url), url))
            return z->urlmetrics[i];
    if (z->n_urlmetrics == MAX_URLS)
        return NULL;
    Eve__Metrics__UrlcloudMetric *u =
        MAKE(w, Eve__Metrics__UrlcloudMetric, eve__metrics__urlcloud_metric);
    u->url = make_text(w, url);
    PUSH(w, z, urlmetrics, u);
    return u;
}

static void add_url(Eve__Metrics__UrlcloudMetric *u, const struct json *counts)
{
    u->trymsgcount += make_number(counts, STR("TryMsgCount"));
    u->trybytecount += make_number(counts, STR("TryByteCount"));
    u->sentmsgcount += make_number(counts, STR("SentMsgCount"));
    u->sentbytecount += make_number(counts, STR("SentByteCount"));
    u->recvmsgcount += make_number(counts, STR("RecvMsgCount"));
    u->recvbytecount += make_number(counts, STR("RecvByteCount"));
    u->total_time_spent += make_number(counts, STR("TotalTimeSpent"));
    u->sess_resume_count += make_number(counts, STR("SessionResume"));
}

static void set_later(struct world *w, Google__Protobuf__Timestamp **at, const struct json *value)
{
    const int64_t us = node_json_time_us(value);
    const int64_t old = *at ? (*at)->seconds * 1000000 + (*at)->nanos / 1000 : 0;
    if (us > old)
        *at = make_time(w, us);
}

static void add_map(struct world *w, Eve__Metrics__DeviceMetric *d, const struct json *map)
{
    JSON_FOR_EACH_MEMBER (map, m) {
        Eve__Metrics__ZedcloudMetric *z = interface_of(w, d, json_str(&m->key));
        if (!z)
            continue;
        z->failures += NUMBER(&m->value, "FailureCount");
        z->success += NUMBER(&m->value, "SuccessCount");
        z->authverifyfailure += NUMBER(&m->value, "AuthFailCount");
        set_later(w, &z->lastfailure, json_get(&m->value, STR("LastFailure")));
        set_later(w, &z->lastsuccess, json_get(&m->value, STR("LastSuccess")));
        JSON_FOR_EACH_MEMBER (json_get(&m->value, STR("URLCounters")), url) {
            Eve__Metrics__UrlcloudMetric *u = url_of(w, z, json_str(&url->key));
            if (u)
                add_url(u, &url->value);
        }
    }
}

void metrics_transport(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    if (w->ground->own_metrics.n)
        add_map(w, d, json_parse_quick(w->arena, w->ground->own_metrics));
    for (enum report_topic t = REPORT_FIRST_MAP; t <= REPORT_LAST_MAP; t++)
        add_map(w, d, world_only(w, t));
}

void metrics_ciphers(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    for (enum report_topic t = REPORT_FIRST_CIPHER; t <= REPORT_LAST_CIPHER; t++) {
        const struct json *value = world_only(w, t);
        if (!value)
            continue;
        Eve__Metrics__CipherMetric *c =
            MAKE(w, Eve__Metrics__CipherMetric, eve__metrics__cipher_metric);
        c->agent_name = TEXT(w, value, "AgentName");
        c->failure_count = NUMBER(value, "FailureCount");
        c->success_count = NUMBER(value, "SuccessCount");
        c->last_failure = TIME(w, value, "LastFailure");
        c->last_success = TIME(w, value, "LastSuccess");
        int code = 0;
        JSON_FOR_EACH_ITEM (json_get(value, STR("TypeCounters")), count) {
            if (json_is(count, JSON_INT) && count->i) {
                Eve__Metrics__TypeCounter *tc =
                    MAKE(w, Eve__Metrics__TypeCounter, eve__metrics__type_counter);
                tc->error_code = (Eve__Metrics__CipherError) code;
                tc->count = (uint64_t) count->i;
                PUSH(w, c, tc, tc);
            }
            code++;
        }
        PUSH(w, d, cipher, c);
    }
}
