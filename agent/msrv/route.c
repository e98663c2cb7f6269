/* SPDX-License-Identifier: Apache-2.0 */
/* Which path is whose. */
#include "msrv/msrv_internal.h"

/* clang-format off */
static const struct route routes[] = {
    {"GET",  "/eve/v1/network.json",            .on_loop = network_answer},
    {"GET",  "/eve/v1/external_ipv4",           .on_loop = external_ipv4_answer},
    {"GET",  "/eve/v1/hostname",                .on_loop = hostname_answer},
    {"POST", "/eve/v1/kubeconfig",              .on_loop = kubeconfig_answer},
    {"POST", "/eve/v1/app/appCustomStatus",     .on_loop = custom_status_answer},
    {"GET",  "/eve/v1/location.json",           .on_loop = location_answer},
    {"GET",  "/eve/v1/diag",                    .on_worker = diag_answer},
    {"GET",  "/eve/v1/discover-network.json",   .on_loop = discover_answer},
    {"GET",  "/eve/v1/wwan/status.json",        .on_loop = wwan_status_answer},
    {"GET",  "/eve/v1/wwan/metrics.json",       .on_loop = wwan_metrics_answer},
    {"GET",  "/eve/v1/networks/metrics.json",   .on_loop = network_metrics_answer},
    {"GET",  "/eve/v1/app/info.json",           .on_loop = app_info_answer},
    {"GET",  "/eve/app-custom-blobs",           .on_loop = app_blob_find, .on_worker = app_blob_answer},
    {"GET",  "/eve/app-custom-blobs/", true,    .on_loop = app_blob_find, .on_worker = app_blob_answer},
    {"POST", "/eve/v1/tpm/signer",              .on_loop = signer_check, .on_worker = signer_answer},
    {"GET",  "/eve/v1/tpm/activatecredential/", .on_worker = tpm_keys_answer},
    {"POST", "/eve/v1/tpm/activatecredential/", .on_worker = tpm_activate_answer},
    {"GET",  "/eve/v1/patch/description.json",  .on_loop = patch_description_answer},
    {"GET",  "/eve/v1/patch/download/", true,   .on_loop = patch_find, .on_worker = patch_answer, .after = patch_count},
    {NULL,   "/metrics",                        .on_loop = metrics_answer},
    {NULL,   "/metrics/",                       .on_loop = metrics_answer},
    {"GET",  "/openstack",                      .on_loop = openstack_check, .on_worker = openstack_answer},
    {"GET",  "/openstack/", true,               .on_loop = openstack_check, .on_worker = openstack_answer},
};
/* clang-format on */

static bool is_of(const struct route *t, struct str path)
{
    struct str own = str_of(t->path);
    return t->has_rest ? str_starts_with(path, own) : str_eq(path, own);
}

const struct route *route_find(struct request *r)
{
    const char *allowed = NULL, *also_allowed = NULL;
    for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
        const struct route *t = &routes[i];
        if (!is_of(t, r->path))
            continue;
        if (!t->method || str_is(r->message->method, t->method)) {
            r->rest = str_from(r->path, strlen(t->path));
            return t;
        }
        also_allowed = allowed;
        allowed = t->method;
    }
    if (!allowed) {
        answer_error(r, 404, STR("404 page not found"));
        return NULL;
    }
    r->answer.status = 405;
    answer_header(r, STR("Allow"),
                  also_allowed ? arena_printf(r->arena, "%s, %s", also_allowed, allowed)
                               : str_of(allowed));
    return NULL;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct str route_unescape(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        out[n++] = text.p[i];
        if (text.p[i] != '%')
            continue;
        int high = i + 2 < text.n ? hex_digit(text.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.p[i + 2]) : -1;
        if (low < 0 || (high | low) == 0)
            return STR_NONE;
        out[n - 1] = (char) (high << 4 | low);
        i += 2;
    }
    out[n] = '\0';
    return str_range(out, n);
}
