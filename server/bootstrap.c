/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"

#include <errno.h>

static const struct str namespaces[] = {
    {"default", 7}, {"kube-system", 11}, {"kube-public", 11}, {"kube-node-lease", 15}};

int bootstrap_objects(struct kube_client *client, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(namespaces); i++) {
        struct json object = json_object();
        struct json *meta = json_ensure_object(a, &object, STR("metadata"));
        (void) json_set(a, meta, STR("name"), json_string(namespaces[i]));
        struct status st;
        status_init(&st, a);
        struct kube_request r = {.verb = VERB_CREATE,
                                 .group = STR(""),
                                 .version = STR("v1"),
                                 .resource = STR("namespaces"),
                                 .body = &object};
        int code = kube_request(client, a, &r, NULL, &st);
        if (code < 0 && code != -EEXIST) {
            struct buf b = {0};
            buf_printf(&b, "cannot create namespace %.*s: %.*s", STR_ARG(namespaces[i]),
                       STR_ARG(st.message));
            *ret_error = buf_take(&b);
            return code;
        }
    }
    return 0;
}
