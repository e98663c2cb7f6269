/* SPDX-License-Identifier: Apache-2.0 */
/* What any message of a device makes of a status: JSON that reads back, of bounded size, and the
 * same message again changes nothing more. The first byte chooses info or metrics. */
#include <stdlib.h>

#include "protobuf/message.h"
#include "reports/derive.h"

#define NOW_US ((int64_t) 1800000000 * 1000000)
#define MAX_STATUS_BYTES ((size_t) 64 * 1024)
#define OBJECT \
    "{\"apiVersion\":\"eve.lfedge.org/v1beta1\",\"kind\":\"Device\",\"metadata\":{\"namespace\":" \
    "\"n\",\"name\":\"x\",\"uid\":\"u\",\"generation\":2},\"spec\":{\"eve-os-version\":\"14\"}," \
    "\"status\":{\"capacity\":{\"ephemeral-storage\":\"10Gi\"}}}"

static void derive_info(struct derivation *d, const Eve__Info__ZInfoMsg *m)
{
    struct fact f;
    switch (m->info_content_case) {
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO: {
        struct contact_view v = {.contact = CONTACT_HEARD, .last_seen_us = NOW_US};
        v.word = derive_device(d, m->dinfo);
        derive_ready(d, &v);
        derive_heartbeat(d, NOW_US);
        break;
    }
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO:
        derive_application(d, m->ainfo);
        break;
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_VINFO:
        derive_volume(d, m->vinfo);
        break;
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_CINFO:
        f = fact_of_content(d->arena, m->cinfo);
        derive_shared(d, &f, 1);
        break;
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_NIINFO:
        f = fact_of_network(d->arena, m->niinfo);
        derive_shared(d, &f, 1);
        break;
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_HWINFO:
        derive_hardware(d, m->hwinfo);
        break;
    default:
        break;
    }
}

static void derive(struct derivation *d, struct str bytes, bool is_metrics)
{
    if (!is_metrics) {
        const Eve__Info__ZInfoMsg *m = PB_UNPACK(d->arena, eve__info__zinfo_msg, bytes);
        if (m)
            derive_info(d, m);
        return;
    }
    const Eve__Metrics__ZMetricMsg *m = PB_UNPACK(d->arena, eve__metrics__zmetric_msg, bytes);
    if (m && m->metric_content_case == EVE__METRICS__ZMETRIC_MSG__METRIC_CONTENT_DM)
        derive_metrics(d, m->dm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    ARENA_AUTO a = arena_new();
    struct json *object = json_parse_quick(a, STR(OBJECT));
    struct str bytes = str_range((const char *) data + 1, size - 1);
    struct derivation d;
    for (int i = 0; i < 2; i++) {
        derivation_init(&d, a, object);
        d.now_us = d.at_us = NOW_US;
        derive(&d, bytes, data[0] & 1);
        if (i && derivation_has_changed(&d))
            abort();
        (void) json_set(a, object, STR("status"), *d.status);
    }
    struct str text = json_text(a, d.status);
    if (text.n > MAX_STATUS_BYTES || !json_parse_quick(a, text))
        abort();
    return 0;
}
