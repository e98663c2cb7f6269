/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes over a socket: packets, one to a line, as a subscription takes them. What is
 * understood can be said again, what is kept is normal, and what is counted is what is there. */
#include <stdlib.h>

#include "pubsub/frame.h"
#include "pubsub/subscription_internal.h"
#include "pubsub/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The owner's own picture, made of what the handlers say. */
struct owner {
    size_t n_keys;
    int64_t restarted;
    bool is_synchronized;
};

static void on_create(void *arg, struct str key, const struct json *value)
{
    struct owner *o = arg;
    require(key.n > 0 && json_is(value, JSON_OBJECT));
    o->n_keys++;
}

static void on_modify(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) arg;
    require(key.n > 0 && json_is(old, JSON_OBJECT) && !json_identical(value, old));
}

static void on_delete(void *arg, struct str key, const struct json *last)
{
    struct owner *o = arg;
    require(key.n > 0 && json_is(last, JSON_OBJECT));
    o->n_keys--;
}

static void on_restarted(void *arg, int64_t counter)
{
    struct owner *o = arg;
    require(counter >= 0 && counter != o->restarted);
    o->restarted = counter;
}

static void on_synchronized(void *arg)
{
    struct owner *o = arg;
    require(!o->is_synchronized);
    o->is_synchronized = true;
}

static void check_frame(struct str packet)
{
    ARENA_AUTO a = arena_new();
    struct pubsub_frame f = {0}, again = {0};
    if (pubsub_frame_read(a, packet, &f) < 0)
        return;
    BUF_AUTO written = {0};
    /* With the words that older publishers leave out it may just be too long. */
    if (pubsub_frame_write(&written, &f) < 0)
        return;
    require(pubsub_frame_read(a, buf_str(&written), &again) == 0);
    require(again.word == f.word && str_eq(again.topic, f.topic) && str_eq(again.key, f.key));
    require(str_eq(again.value, f.value) && again.counter == f.counter);
}

static void check_kept(const struct subscription *s)
{
    size_t position = 0, n_bytes = 0;
    for (struct str key, text; subscription_next(s, &position, &key, &text);) {
        ARENA_AUTO a = arena_new();
        struct json *value = NULL;
        require(pubsub_value_parse(a, text, "/nowhere", &value) == 0);
        BUF_AUTO normal = {0};
        pubsub_value_text(&normal, value);
        require(str_eq(buf_str(&normal), text));
        n_bytes += key.n + text.n;
    }
    require(n_bytes == subscription_count(s).n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct subscription_handlers handlers = {on_create, on_modify, on_delete,
                                                          on_restarted, on_synchronized};
    static struct loop *loop; /* one for all inputs: making it costs more than they do */
    static struct pubsub *ps;
    if (!loop) {
        loop = loop_new();
        ps = pubsub_new(&(struct pubsub_options){.loop = loop,
                                                 .clock = &clock_system,
                                                 .run_directory = "/nowhere",
                                                 .persist_directory = "/nowhere"});
    }
    struct owner owner = {0};
    struct subscription *s = NULL;
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T")};
    require(subscription_new(ps, &name, &handlers, &owner, &s) == 0);

    struct str rest = str_range((const char *) data, size), packet;
    while (str_split(&rest, '\n', &packet)) {
        check_frame(packet);
        subscription_enter(s);
        subscription_take_packet(s, packet);
        require(subscription_leave(s));
    }
    check_kept(s);
    require(subscription_count(s).n_keys == owner.n_keys);
    require(subscription_restarted(s) == owner.restarted);
    require(subscription_is_synchronized(s) == owner.is_synchronized);

    subscription_free(s);
    loop_settle(loop);
    return 0;
}
