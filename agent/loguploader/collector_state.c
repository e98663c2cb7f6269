/* SPDX-License-Identifier: Apache-2.0 */
/* {"device":17,"apps":{"<uuid>":4}}: the next message id of each. Written before a raw file goes,
 * so that either this file or a raw file knows the last one. */
#include "loguploader/collector_internal.h"

#define STATE_FILE STR("newlog/collect/msgids.json")

void collector_state_load(struct collector *c)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct json_parse_result parsed = {0};
    if (node_file_read(c->node, NODE_PERSIST, STATE_FILE, &text) < 0 ||
        json_parse(a, buf_str(&text), &parsed) < 0)
        return;
    struct collector_stream *s = collector_stream_of(c, &(struct uuid){0});
    s->next_msgid = (uint64_t) MAX(json_get_int(parsed.value, STR("device"), 1), 1);
    const struct json *apps = json_get(parsed.value, STR("apps"));
    JSON_FOR_EACH_MEMBER (apps, m) {
        struct uuid app;
        if (uuid_parse(json_str(&m->key), &app) < 0 || uuid_is_zero(&app) ||
            !json_is(&m->value, JSON_INT) || m->value.i < 1)
            continue;
        collector_stream_of(c, &app)->next_msgid = (uint64_t) m->value.i;
    }
}

int collector_state_save(struct collector *c)
{
    BUF_AUTO text = {0};
    const char *separator = "";
    LIST_FOR_EACH (&c->streams, item) {
        const struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        char app[UUID_TEXT_BYTES];
        uuid_text(&s->app, app);
        if (uuid_is_zero(&s->app)) {
            buf_printf(&text, "{\"device\":%llu,\"apps\":{", (unsigned long long) s->next_msgid);
            continue;
        }
        buf_printf(&text, "%s\"%s\":%llu", separator, app, (unsigned long long) s->next_msgid);
        separator = ",";
    }
    buf_append_str(&text, STR("}}\n"));
    return node_file_write(c->node, NODE_PERSIST, STATE_FILE, buf_str(&text));
}
