/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/uplink_internal.h"

#include "base/alloc.h"

static struct str keep(struct str s)
{
    return s.n ? str_range(mem_dup(s.p, s.n), s.n) : STR_NONE;
}

static void replace(struct str *at, struct str by)
{
    const struct str copy = keep(by);
    mem_free((char *) at->p);
    *at = copy;
}

struct uplink *uplink_new(const struct uplink_options *o)
{
    struct uplink *u = NEW(struct uplink);
    u->o = *o;
    u->server = keep(str_trim(o->server));
    u->user_agent = keep(o->user_agent.n ? o->user_agent : STR("seth-agent/" SETH_VERSION));
    u->serial = keep(o->serial);
    u->soft_serial = keep(o->soft_serial);
    u->send_timeout_ms = UPLINK_SEND_TIMEOUT_MS;
    u->dial_timeout_ms = UPLINK_DIAL_TIMEOUT_MS;
    u->ports = uplink_ports_new(/* version= */ 0, NULL, 0);
    list_init(&u->calls);
    return u;
}

void uplink_free(struct uplink *u)
{
    if (!u)
        return;
    LIST_FOR_EACH (&u->calls, item)
        uplink_call_free(CONTAINER_OF(item, struct uplink_call, link));
    uplink_ports_unref(u->ports);
    uplink_tls_unref(u->tls);
    mem_free((char *) u->server.p);
    mem_free((char *) u->user_agent.p);
    mem_free((char *) u->serial.p);
    mem_free((char *) u->soft_serial.p);
    mem_free(u);
}

void uplink_set_ports(struct uplink *u, struct uplink_ports *ports)
{
    struct uplink_ports *before = u->ports;
    u->ports = uplink_ports_ref(ports);
    uplink_ports_unref(before);
}

void uplink_set_tls(struct uplink *u, struct uplink_tls *tls)
{
    struct uplink_tls *before = u->tls;
    u->tls = tls ? uplink_tls_ref(tls) : NULL;
    uplink_tls_unref(before);
}

void uplink_set_server(struct uplink *u, struct str server)
{
    replace(&u->server, str_trim(server));
}

void uplink_set_device(struct uplink *u, const struct uuid *device)
{
    u->device = *device;
}

void uplink_set_timeouts(struct uplink *u, int64_t send_ms, int64_t dial_ms)
{
    u->send_timeout_ms = send_ms > 0 ? send_ms : UPLINK_SEND_TIMEOUT_MS;
    u->dial_timeout_ms = dial_ms > 0 ? dial_ms : UPLINK_DIAL_TIMEOUT_MS;
}

struct uplink_metrics *uplink_metrics_of(struct uplink *u)
{
    return u->o.metrics;
}

const struct clock *uplink_clock(const struct uplink *u)
{
    return u->o.clock;
}

struct str uplink_url(const struct uplink *u, struct arena *a, bool with_device, struct str action)
{
    return uplink_url_build(a, u->o.api, u->server, with_device ? &u->device : NULL, action);
}
