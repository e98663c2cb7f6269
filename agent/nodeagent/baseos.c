/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/baseos.h"

#include "base/alloc.h"
#include "base/log.h"
#include "machine/machine.h"

#define STATE_ACTIVE STR("active")

/* SwState */
enum { SW_INITIAL = 100, SW_INSTALLED = 111 };

struct baseos {
    struct node *node;
    struct publication *partitions, *images, *counters;
    struct subscription *wanted;
    struct str version; /* heap */
};

static void publish(struct publication *p, struct str key, const struct json *value)
{
    const int r = publication_publish(p, key, value);
    if (r < 0)
        log_warning("the base image's state is not published, ignoring", LOG_ERRNO(r));
}

static struct str version_of(struct node *n, struct arena *a)
{
    struct machine_identity id = {0};
    return n->machine->functions->identity(n->machine, a, &id) == 0 ? str_trim(id.eve_version)
                                                                    : STR("");
}

static void publish_partition(struct baseos *b)
{
    ARENA_AUTO a = arena_new();
    struct json *v = json_new(a, json_object());
    json_append_member(a, v, STR("PartitionLabel"), json_string(BASEOS_PARTITION));
    json_append_member(a, v, STR("PartitionDevname"), json_string(STR("")));
    json_append_member(a, v, STR("PartitionState"), json_string(STATE_ACTIVE));
    json_append_member(a, v, STR("ShortVersion"), json_string(b->version));
    json_append_member(a, v, STR("LongVersion"), json_string(STR("")));
    json_append_member(a, v, STR("CurrentPartition"), json_bool(true));
    json_append_member(a, v, STR("TestComplete"), json_bool(false));
    publish(b->partitions, BASEOS_PARTITION, v);
    (void) publication_signal_restarted(b->partitions);
}

static void publish_counter(struct baseos *b, int64_t counter)
{
    ARENA_AUTO a = arena_new();
    struct json *v = json_new(a, json_object());
    json_append_member(a, v, STR("CurrentRetryUpdateCounter"), json_int(counter));
    publish(b->counters, STR("global"), v);
}

/* ---- what the controller wants -------------------------------------------------------------- */

static struct json *image_value(struct baseos *b, struct arena *a, const struct json *wanted)
{
    struct json *v = json_new(a, json_object());
    const struct str version = json_get_str(wanted, STR("BaseOsVersion"));
    const bool is_ours = str_eq(version, b->version);
    const struct str problem =
        is_ours ? STR("")
                : arena_printf(a,
                               "image '%.*s' cannot be installed: this device's system is updated "
                               "by its own means, and runs '%.*s'",
                               STR_ARG(version), STR_ARG(b->version));
    const int64_t now_us = b->node->clock->wall_us(b->node->clock);
    json_append_member(a, v, STR("BaseOsVersion"), json_string(version));
    json_append_member(a, v, STR("Activated"),
                       json_bool(is_ours && json_get_bool(wanted, STR("Activate"), false)));
    json_append_member(a, v, STR("TooEarly"), json_bool(false));
    json_append_member(a, v, STR("ContentTreeUUID"),
                       json_string(json_get_str(wanted, STR("ContentTreeUUID"))));
    json_append_member(a, v, STR("PartitionLabel"),
                       json_string(is_ours ? BASEOS_PARTITION : STR("")));
    json_append_member(a, v, STR("PartitionDevice"), json_string(STR("")));
    json_append_member(a, v, STR("PartitionState"), json_string(is_ours ? STATE_ACTIVE : STR("")));
    json_append_member(a, v, STR("State"), json_int(is_ours ? SW_INSTALLED : SW_INITIAL));
    json_append_member(a, v, STR("Error"), json_string(problem));
    json_append_member(a, v, STR("ErrorTime"), *node_json_time(a, is_ours ? 0 : now_us));
    return v;
}

static void on_wanted(void *arg, struct str key, const struct json *value)
{
    struct baseos *b = arg;
    ARENA_AUTO a = arena_new();
    publish(b->images, key, image_value(b, a, value));
    publish_counter(b, json_get_int(value, STR("RetryUpdateCounter"), 0));
}

static void on_wanted_again(void *arg, struct str key, const struct json *value,
                            const struct json *old)
{
    (void) old;
    on_wanted(arg, key, value);
}

static void on_unwanted(void *arg, struct str key, const struct json *last)
{
    (void) last;
    struct baseos *b = arg;
    (void) publication_unpublish(b->images, key);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_topics(struct baseos *b)
{
    static const struct subscription_handlers handlers = {
        .on_create = on_wanted, .on_modify = on_wanted_again, .on_delete = on_unwanted};
    const struct pubsub_name partitions = {.agent = STR("baseosmgr"), .topic = STR("ZbootStatus")};
    const struct pubsub_name images = {.agent = STR("baseosmgr"), .topic = STR("BaseOsStatus")};
    const struct pubsub_name counters = {.agent = STR("baseosmgr"),
                                         .topic = STR("BaseOSMgrStatus")};
    const struct pubsub_name wanted = {.agent = STR("zedagent"), .topic = STR("BaseOsConfig")};
    struct pubsub *ps = b->node->pubsub;
    int r = publication_new(ps, &partitions, &b->partitions);
    if (r == 0)
        r = publication_new(ps, &images, &b->images);
    if (r == 0)
        r = publication_new(ps, &counters, &b->counters);
    return r < 0 ? r : subscription_new(ps, &wanted, &handlers, b, &b->wanted);
}

int baseos_new(struct node *n, struct baseos **ret)
{
    ARENA_AUTO a = arena_new();
    struct baseos *b = NEW(struct baseos);
    const struct str version = version_of(n, a);
    b->node = n;
    b->version = str_range(mem_dup(version.p, version.n), version.n);
    const int r = open_topics(b);
    if (r < 0) {
        baseos_free(b);
        return r;
    }
    publish_partition(b);
    publish_counter(b, 0);
    *ret = b;
    return 0;
}

void baseos_free(struct baseos *b)
{
    if (!b)
        return;
    subscription_free(b->wanted);
    publication_free(b->partitions);
    publication_free(b->images);
    publication_free(b->counters);
    mem_free((char *) (uintptr_t) b->version.p);
    mem_free(b);
}
