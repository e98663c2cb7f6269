/* SPDX-License-Identifier: Apache-2.0 */
/* What cloud-init asks of OpenStack: the last part of the path decides. */
#include <errno.h>

#include "base/base64.h"
#include "msrv/msrv_internal.h"

static struct str last_part(struct str path)
{
    if (str_ends_with(path, STR("/")))
        path = str_sub(path, 0, path.n - 1);
    return str_from(path, (size_t) (str_find_last(path, '/') + 1));
}

void openstack_check(struct request *r)
{
    if (!r->app)
        answer_error(r, 501,
                     arena_printf(r->arena, "no AppNetworkStatus for %.*s", STR_ARG(r->caller)));
    else if (!r->app->has_config)
        answer_error(r, 501,
                     arena_printf(r->arena, "no AppNetworkConfig for %.*s", STR_ARG(r->app->uuid)));
    else if (!r->app->is_openstack)
        answer_error(
            r, 404, arena_printf(r->arena, "no MetaDataOpenStack for %.*s", STR_ARG(r->app->uuid)));
}

static void answer_root(struct request *r)
{
    answer_text(r, 200, "text/plain", STR("latest\n"));
}

static void answer_meta_data(struct request *r)
{
    struct json *out = json_new(r->arena, json_object());
    struct json name = json_string(r->app->name.p ? r->app->name : STR(""));
    json_append_member(r->arena, out, STR("hostname"), name);
    json_append_member(r->arena, out, STR("keys"), json_null());
    json_append_member(r->arena, out, STR("launch_index"), json_int(0));
    json_append_member(r->arena, out, STR("name"), name);
    json_append_member(r->arena, out, STR("public_keys"), json_object());
    json_append_member(r->arena, out, STR("uuid"), json_string(r->app->uuid));
    answer_json(r, 200, out);
}

static void answer_network_data(struct request *r)
{
    answer_text(r, 200, "application/json", STR("{\"networks\":[],\"services\":[]}"));
}

static int find_user_data(struct request *r, struct str *ret)
{
    const struct msrv_options *o = &r->msrv->options;
    *ret = r->app->user_data;
    if (!r->app->user_data_cipher)
        return 0;
    return o->world->decrypt_user_data ? o->world->decrypt_user_data(o->ctx, r->arena, r->app, ret)
                                       : -EOPNOTSUPP;
}

static void answer_user_data(struct request *r)
{
    struct str text = STR(""), bytes = STR("");
    if (find_user_data(r, &text) < 0) {
        answer_error(r, 500,
                     arena_printf(r->arena, "cannot get userData for %.*s", STR_ARG(r->app->uuid)));
        return;
    }
    if (text.n && base64_decode(r->arena, text, BASE64_STANDARD, &bytes, NULL) < 0) {
        answer_error(
            r, 500,
            arena_printf(r->arena, "cannot decode userData for %.*s", STR_ARG(r->app->uuid)));
        return;
    }
    answer_text(r, 200, "text/yaml", bytes);
}

static void answer_vendor_data(struct request *r)
{
    answer_text(r, 200, "application/json", STR("{}"));
}

static const struct {
    const char *name;
    void (*answer)(struct request *r);
} documents[] = {
    {"openstack", answer_root},
    {"meta_data.json", answer_meta_data},
    {"network_data.json", answer_network_data},
    {"user_data", answer_user_data},
    {"vendor_data.json", answer_vendor_data},
};

void openstack_answer(struct request *r)
{
    struct str name = last_part(r->path);
    for (size_t i = 0; i < N_ELEMENTS(documents); i++) {
        if (str_is(name, documents[i].name)) {
            documents[i].answer(r);
            return;
        }
    }
    answer_error(r, 404, STR("not found"));
}
