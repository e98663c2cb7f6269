/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/admission/admission.h"
#include "api/codec.h"
#include "api/delete_options.h"
#include "api/forecast.h"

#define DELETE_MAX_ATTEMPTS 64

static void attempt(struct call *c);

static void reply_removed(struct call *c, const struct json *object, struct object *gone)
{
    if (c->kind->hooks && c->kind->hooks->returns_deleted) {
        if (gone)
            call_reply_object(c, 200, gone);
        else
            call_reply_json(c, 200, object);
        return;
    }
    const struct json *meta = json_get(object, STR("metadata"));
    struct buf b = {0};
    status_write_deleted(&b, c->kind, json_get_str(meta, STR("name")),
                         json_get_str(meta, STR("uid")));
    call_reply_text(c, 200, &b);
}

struct deletion {
    struct delete_options options;
    const struct json *object; /* as it was read */
};

static void on_written(struct call *c)
{
    struct deletion *d = c->verb_state;
    int result = c->write.result;
    admission_release(c);
    if ((result == -ESTALE || result == -ENOENT) && c->n_attempts < DELETE_MAX_ATTEMPTS) {
        object_unref(TAKE(c->write.committed));
        attempt(c);
    } else if (result < 0) {
        (void) status_from_store(&c->status, c->kind, c->in.path.name, result);
        call_fail(c);
    } else if (c->write.condition == STORE_REMOVE) {
        reply_removed(c, d->object, c->write.committed);
    } else {
        call_reply_object(c, 200, c->write.committed);
    }
}

static int submit(struct call *c, struct object *current, struct json *marked)
{
    c->write.condition = marked ? STORE_REPLACE : STORE_REMOVE;
    c->write.key = c->key;
    c->write.expected_revision = current->revision;
    if (marked) {
        int r = codec_encode(registry_collection(c->registry, c->kind->collection), marked,
                             &c->write.object);
        if (r < 0)
            return status_from_store(&c->status, c->kind, c->in.path.name, r);
    } else {
        c->write.object = codec_farewell(current);
    }
    call_submit(c, on_written);
    return 0;
}

static void attempt(struct call *c)
{
    struct deletion *d = c->verb_state;
    c->n_attempts++;
    CLEANUP(object_unrefp) struct object *current = store_get(api_store(c->api), c->key);
    if (!current) {
        (void) status_not_found(&c->status, c->kind, c->in.path.name);
        call_fail(c);
        return;
    }
    struct json *marked = NULL;
    /* Marks are made on the stored form: a conversion must not be written back. */
    const struct kind *stored = registry_collection(c->registry, c->kind->collection);
    d->object = codec_decode(c->arena, current, stored);
    int step = delete_plan(c, &d->options, d->object, &marked);
    if (step < 0 || delete_admit(c, &d->options, current, d->object) < 0)
        call_fail(c);
    else if (step == DELETE_WAIT)
        call_reply_object(c, 200, current);
    else if (c->is_dry_run && !forecast_dry_write(c, d->object, NULL))
        call_fail(c);
    else if (c->is_dry_run && step == DELETE_REMOVE)
        reply_removed(c, d->object, NULL);
    else if (c->is_dry_run)
        call_reply_json(c, 200, marked);
    else if (submit(c, current, marked) < 0)
        call_fail(c);
}

void verb_delete(struct call *c)
{
    struct deletion *d = ARENA_NEW(c->arena, struct deletion);
    c->verb_state = d;
    if (delete_options_parse(c, &d->options) < 0) {
        call_fail(c);
        return;
    }
    attempt(c);
}
