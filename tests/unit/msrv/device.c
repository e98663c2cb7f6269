/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *address;
    struct msrv_app app;
} apps[] = {
    {WEB_ADDRESS,
     {.uuid = {WEB_UUID, 36},
      .name = {"web", 3},
      .can_discover = true,
      .has_config = true,
      .is_openstack = true}},
    {DB_ADDRESS, {.uuid = {DB_UUID, 36}, .name = {"db", 2}, .has_config = true}},
    {ODD_ADDRESS, {.uuid = {ODD_UUID, 36}, .name = {"odd", 3}}},
    /* For tests with sockets. */
    {"127.0.1.2", {.uuid = {WEB_UUID, 36}, .name = {"web", 3}}},
    {"127.0.1.3", {.uuid = {DB_UUID, 36}, .name = {"db", 2}}},
};

static bool is_ready(void *ctx)
{
    return !((struct device *) ctx)->is_not_ready;
}

static int find_app(void *ctx, struct arena *a, struct str network, struct str address,
                    struct msrv_app *ret)
{
    const struct device *d = ctx;
    for (size_t i = 0; i < N_ELEMENTS(apps); i++) {
        if (str_is(address, apps[i].address) && str_is(network, "net")) {
            *ret = apps[i].app;
            ret->user_data = d->user_data;
            ret->user_data_cipher = d->has_cipher ? json_new(a, json_object()) : NULL;
            return 0;
        }
    }
    return -ENOENT;
}

static int external_ipv4(void *ctx, struct arena *a, const struct msrv_app *app,
                         struct str **ret_addresses, size_t *ret_n)
{
    const struct device *d = ctx;
    if (d->has_no_network)
        return -ENODEV;
    if (d->has_no_ports || str_is(app->name, "odd"))
        return -ENOENT;
    struct str *list = ARENA_ARRAY(a, struct str, 2);
    list[0] = STR("192.0.2.7");
    list[1] = STR("198.51.100.7");
    *ret_addresses = list;
    *ret_n = 2;
    return 0;
}

/* clang-format off */
static const char *const documents[] = {
    [MSRV_EDGE_NODE_INFO] =
        "{\"DeviceName\":\"edge-7\",\"DeviceID\":\"dev-id\",\"ProjectName\":\"p\",\"ProjectID\":\"pid\","
        "\"EnterpriseName\":\"e\",\"EnterpriseID\":\"eid\"}",
    [MSRV_LOCATION] = "{\"LogicalLabel\":\"modem\",\"Latitude\":48.1,\"HorizontalReliability\":\"high\"}",
    [MSRV_WWAN_STATUS] =
        "{\"networks\":[{\"logical-label\":\"m\",\"cellular-module\":{\"name\":\"secret\",\"imei\":\"1\"},"
        "\"sim-cards\":[{\"name\":\"secret\",\"iccid\":\"2\"}]}]}",
    [MSRV_WWAN_METRICS] = "{\"networks\":[]}",
    [MSRV_DEVICE_NETWORK_STATUS] =
        "{\"Ports\":[{\"IfName\":\"eth0\",\"Up\":true},{\"IfName\":\"\"},{\"IfName\":\"eth9\"}]}",
    [MSRV_NETWORK_METRICS] =
        "{\"MetricList\":[{\"IfName\":\"eth0\",\"TxBytes\":5,\"RxAclDrops\":3}]}",
};
/* clang-format on */

static const struct json *document(void *ctx, struct arena *a, enum msrv_document which)
{
    const struct device *d = ctx;
    return d->has_no_documents ? NULL : json_parse_quick(a, str_of(documents[which]));
}

static int neighbours(void *ctx, struct arena *a, struct msrv_neighbour **ret, size_t *ret_n)
{
    (void) ctx;
    static const struct msrv_neighbour list[] = {
        {{ODD_UUID, 36}, {NULL, 0}, {NULL, 0}},
        {{WEB_UUID, 36}, {"eth0", 4}, {WEB_ADDRESS, 8}},
        {{DB_UUID, 36}, {"eth0", 4}, {DB_ADDRESS, 8}},
        {{DB_UUID, 36}, {"eth1", 4}, {"fd00::3", 7}},
    };
    struct msrv_neighbour *copy = ARENA_ARRAY(a, struct msrv_neighbour, N_ELEMENTS(list));
    memcpy(copy, list, sizeof(list));
    *ret = copy;
    *ret_n = N_ELEMENTS(list);
    return 0;
}

static int blobs(void *ctx, struct arena *a, const struct msrv_app *app, struct msrv_blob **ret,
                 size_t *ret_n)
{
    const struct device *d = ctx;
    if (!str_is(app->name, "web"))
        return -ENOENT;
    struct msrv_blob *list = ARENA_ARRAY(a, struct msrv_blob, 2);
    list[0] = (struct msrv_blob){STR("my blob"), STR("meta"), d->blob_path};
    list[1] = (struct msrv_blob){STR("gone"), STR(""), "/nonexistent"};
    *ret = list;
    *ret_n = 2;
    return 0;
}

static int envelopes(void *ctx, struct arena *a, const struct msrv_app *app,
                     struct msrv_envelope **ret, size_t *ret_n)
{
    struct device *d = ctx;
    if (!str_is(app->name, "web"))
        return -ENOENT;
    struct msrv_patch_file *files = ARENA_ARRAY(a, struct msrv_patch_file, 3);
    files[0] = (struct msrv_patch_file){.kind = MSRV_PATCH_BINARY,
                                        .name = STR("a.bin"),
                                        .sha = STR("abc"),
                                        .size = d->patch_size,
                                        .path = d->patch_path};
    files[1] = (struct msrv_patch_file){
        .kind = MSRV_PATCH_ENCRYPTED_INLINE, .name = STR("secret"), .size = 4};
    files[2] = (struct msrv_patch_file){.kind = MSRV_PATCH_VOLUME,
                                        .name = STR("vol"),
                                        .image_name = STR("img"),
                                        .image_id = STR("id")};
    struct msrv_envelope *list = ARENA_ARRAY(a, struct msrv_envelope, 2);
    list[0] = (struct msrv_envelope){STR("p1"), STR("v1"), files, 3};
    list[1] = (struct msrv_envelope){STR("p2"), STR("v2"), NULL, 0};
    *ret = list;
    *ret_n = 2;
    return 0;
}

static void count_patch(void *ctx, const struct msrv_app *app, const struct msrv_envelope *e,
                        enum msrv_patch_use use)
{
    (void) app;
    (void) e;
    struct device *d = ctx;
    d->n_described += use == MSRV_PATCH_DESCRIBED;
    d->n_downloaded += use == MSRV_PATCH_DOWNLOADED;
}

static int publish_metadata(void *ctx, struct str key, const struct json *value)
{
    struct device *d = ctx;
    if (d->fails_publish)
        return -EMSGSIZE;
    d->published_key = arena_str(d->arena, key);
    d->published = json_text(d->arena, value);
    d->n_published++;
    return 0;
}

static int decrypt_user_data(void *ctx, struct arena *a, const struct msrv_app *app,
                             struct str *ret)
{
    (void) a;
    (void) app;
    const struct device *d = ctx;
    *ret = STR("I2RlY3J5cHRlZAo=");
    return d->fails_tpm ? -EBADMSG : 0;
}

static int sign(void *ctx, struct arena *a, struct str payload, struct str *ret)
{
    const struct device *d = ctx;
    if (d->fails_tpm)
        return -EIO;
    *ret = arena_printf(a, "signed:%zu", payload.n);
    return 0;
}

static int decrypt(void *ctx, struct arena *a, const struct msrv_patch_file *file, struct str *ret)
{
    (void) a;
    (void) file;
    const struct device *d = ctx;
    if (d->fails_tpm)
        return -EIO;
    *ret = STR("c2VjcmV0");
    return 0;
}

static int tpm_keys(void *ctx, struct arena *a, struct msrv_tpm_keys *ret)
{
    (void) a;
    const struct device *d = ctx;
    *ret = (struct msrv_tpm_keys){STR("ek"), STR("aik"), STR("name")};
    return d->fails_tpm ? -EIO : 0;
}

static int tpm_activate(void *ctx, struct arena *a, const struct msrv_tpm_challenge *challenge,
                        struct msrv_tpm_proof *ret)
{
    const struct device *d = ctx;
    ret->secret =
        arena_printf(a, "%.*s+%.*s", STR_ARG(challenge->credential), STR_ARG(challenge->secret));
    ret->signature = challenge->data;
    return d->fails_tpm ? -EIO : 0;
}

const struct msrv_world device_world = {
    .is_ready = is_ready,
    .find_app = find_app,
    .external_ipv4 = external_ipv4,
    .document = document,
    .neighbours = neighbours,
    .blobs = blobs,
    .envelopes = envelopes,
    .count_patch = count_patch,
    .publish_metadata = publish_metadata,
    .decrypt_user_data = decrypt_user_data,
    .sign = sign,
    .decrypt = decrypt,
    .tpm_keys = tpm_keys,
    .tpm_activate = tpm_activate,
};

/* ---- files ---------------------------------------------------------------------------------- */

void device_write(struct device *d, const char *path, const void *bytes, size_t n)
{
    (void) d;
    FILE *f = fopen(path, "w");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

void device_init(struct device *d)
{
    *d = (struct device){.root = "/tmp/msrv-XXXXXX", .arena = arena_new(), .patch_size = 11};
    clock_virtual_init(&d->clock, (int64_t) 1000000 * 1000000);
    if (!mkdtemp(d->root))
        abort();
    d->blob_path = arena_strz(d->arena, arena_printf(d->arena, "%s/blob", d->root));
    d->patch_path = arena_strz(d->arena, arena_printf(d->arena, "%s/patch", d->root));
    d->diag_path = arena_strz(d->arena, arena_printf(d->arena, "%s/diag.out", d->root));
    device_write(d, d->blob_path, "0123456789", 10);
    device_write(d, d->patch_path, "patch bytes", 11);
}

void device_done(struct device *d)
{
    (void) unlink(d->blob_path);
    (void) unlink(d->patch_path);
    (void) unlink(d->diag_path);
    (void) rmdir(d->root);
    arena_free(d->arena);
}
