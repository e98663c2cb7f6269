/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/workloads.h"

#define DEPLOYMENTS "applicationdeployments.eve.lfedge.org"
#define STATEFUL_SETS "applicationstatefulsets.eve.lfedge.org"
#define DAEMON_SETS "applicationdaemonsets.eve.lfedge.org"

bool workloads_is_one(struct str collection)
{
    return str_is(collection, DEPLOYMENTS) || str_is(collection, STATEFUL_SETS) ||
           str_is(collection, DAEMON_SETS);
}

static bool has_new_template(const struct forecast_change *c)
{
    const struct json *was = json_at(c->old, "spec", "template", NULL);
    const struct json *is = json_at(c->object, "spec", "template", NULL);
    return was && is && !json_equal(was, is);
}

/* What is replaced only by hand, or not now, is not counted. */
static bool rolls_out(const struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    const struct str type = json_str(json_at(spec, "updateStrategy", "type", NULL));
    return !str_is(type, "OnDelete") && !json_get_bool(spec, STR("paused"), false);
}

static int64_t replicas(const struct json *object)
{
    return object ? json_get_int(json_get(object, STR("spec")), STR("replicas"), 1) : 0;
}

/* Of a set with numbers, those below the partition stay. */
static int64_t kept_back(const struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *rolling = json_at(spec, "updateStrategy", "rollingUpdate", NULL);
    const int64_t first = json_get_int(json_get(spec, STR("ordinals")), STR("start"), 0);
    return MAX(json_get_int(rolling, STR("partition"), 0) - first, (int64_t) 0);
}

static void count_replicas(const struct forecast_change *c, struct workload_counts *counts)
{
    const int64_t was = replicas(c->old), is = replicas(c->object);
    counts->n_made += MAX(is - was, (int64_t) 0);
    counts->n_gone += MAX(was - is, (int64_t) 0);
    if (has_new_template(c) && rolls_out(c->object))
        counts->n_replaced += MAX(MIN(was, is) - kept_back(c->object), (int64_t) 0);
}

static void count_daemons(const struct forecast_change *c, struct workload_counts *counts)
{
    const struct json *status = json_get(c->old, STR("status"));
    const int64_t n = json_get_int(status, STR("currentNumberScheduled"), 0);
    if (!c->object)
        counts->n_gone += n;
    else if (!c->old)
        counts->is_everywhere = true;
    else if (has_new_template(c) && rolls_out(c->object))
        counts->n_replaced += n;
}

void workloads_count(const struct forecast_change *c, struct workload_counts *counts)
{
    if (str_is(c->collection, DAEMON_SETS))
        count_daemons(c, counts);
    else if (workloads_is_one(c->collection))
        count_replicas(c, counts);
}
