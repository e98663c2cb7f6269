/* SPDX-License-Identifier: Apache-2.0 */
#include "api/watch_event.h"

#include "api/codec.h"

static const struct str heads[] = {
    [WATCH_ADDED] = {"{\"type\":\"ADDED\",\"object\":", 25},
    [WATCH_MODIFIED] = {"{\"type\":\"MODIFIED\",\"object\":", 28},
    [WATCH_DELETED] = {"{\"type\":\"DELETED\",\"object\":", 27},
};

void watch_event_cache_done(struct watch_event_cache *cache)
{
    for (size_t i = 0; i < cache->n_forms; i++)
        slice_unref(cache->forms[i].text);
    object_unref(cache->departed);
    *cache = (struct watch_event_cache){0};
}

struct object *watch_event_departed(struct watch_event_cache *cache, const struct store_event *e)
{
    if (!cache->departed) {
        cache->departed = codec_farewell(e->previous);
        object_set_revision(cache->departed, e->revision);
    }
    return cache->departed;
}

static bool is_same_form(const struct watch_event_form *a, const struct watch_event_form *b)
{
    return a->kind == b->kind && a->object == b->object && a->form == b->form &&
           a->include == b->include && a->is_v1 == b->is_v1 && a->with_columns == b->with_columns &&
           a->type == b->type;
}

static struct slice write_form(const struct reply_form *f, enum watch_event_type type,
                               struct object *o, bool with_columns)
{
    ARENA_AUTO a = arena_new();
    struct buf b = {0};
    buf_append_str(&b, heads[type]);
    reply_write(&b, f, codec_decode(a, o, f->kind), with_columns);
    buf_append_str(&b, STR("}\n"));
    size_t n = b.n;
    return slice_adopt(buf_take(&b), n);
}

/* A form other than the stored text is written for the first watcher and shared with the next. */
static struct slice cached_form(struct watch_event_cache *cache, const struct reply_form *f,
                                enum watch_event_type type, struct object *o, bool with_columns)
{
    struct watch_event_form wanted = {
        .kind = f->kind,
        .object = o,
        .form = f->media.form,
        .include = f->include,
        .is_v1 = str_is(f->media.version, "v1"),
        .with_columns = with_columns,
        .type = type,
    };
    for (size_t i = 0; i < cache->n_forms; i++)
        if (is_same_form(&cache->forms[i], &wanted))
            return slice_ref(cache->forms[i].text);
    wanted.text = write_form(f, type, o, with_columns);
    if (cache->n_forms == WATCH_EVENT_FORMS)
        return wanted.text;
    cache->forms[cache->n_forms++] = wanted;
    return slice_ref(wanted.text);
}

size_t watch_event_slices(struct watch_event_cache *cache, const struct reply_form *f,
                          enum watch_event_type type, struct object *o, bool with_columns,
                          struct slice *ret_slices)
{
    if (f->media.form != MEDIA_OBJECT || f->kind->from_stored || !f->kind->is_storage) {
        ret_slices[0] = cached_form(cache, f, type, o, with_columns);
        return 1;
    }
    ret_slices[0] = slice_static(heads[type]);
    size_t n = 1 + codec_slices(o, f->kind, false, ret_slices + 1);
    ret_slices[n++] = slice_static(STR("}\n"));
    return n;
}
