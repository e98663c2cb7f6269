/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration comes into force, in the order of EVE's parser. */
#include "base/log.h"
#include "protobuf/message.h"
#include "zedagent/gotype.h"
#include "zedagent/zedagent_internal.h"

/* ---- items ---------------------------------------------------------------------------------- */

void apply_publish_items(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    const struct json *map =
        z->node->is_simulated ? items_write_brief(a, z->items) : items_write(a, z->items);
    const int r = publication_publish(z->topics.items, STR("global"), map);
    if (r < 0)
        log_error("ConfigItemValueMap is not published, ignoring", LOG_ERRNO(r));
}

static void hash_items(const Eve__Config__EdgeDevConfig *config, unsigned char *ret)
{
    Eve__Config__EdgeDevConfig part = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    part.n_configitems = config->n_configitems;
    part.configitems = config->configitems;
    parse_hash_message(&part.message, ret);
}

void apply_items(struct zedagent *z, const Eve__Config__EdgeDevConfig *config,
                 enum parse_source source)
{
    unsigned char hash[SHA256_BYTES];
    const bool is_bootstrap = source == PARSE_BOOTSTRAP;
    hash_items(config, hash);
    if (z->items_source != PARSE_NOWHERE && is_bootstrap == (z->items_source == PARSE_BOOTSTRAP) &&
        memcmp(z->items_hash, hash, sizeof(hash)) == 0)
        return;
    memcpy(z->items_hash, hash, sizeof(hash));
    z->items_source = source;
    /* Before a controller has spoken, keyboard and screen are allowed. */
    if (!is_bootstrap)
        items_begin(z->items);
    for (size_t i = 0; i < config->n_configitems; i++)
        (void) items_set(z->items, pb_text(config->configitems[i]->key),
                         pb_text(config->configitems[i]->value));
    apply_publish_items(z);
    cycle_follow_items(z);
    certs_follow_items(z);
    status_merge_maintenance(z);
    zedagent_emit(z, ZEDAGENT_FACTS);
}

/* ---- small things --------------------------------------------------------------------------- */

static void keep_names(struct zedagent *z, const Eve__Config__EdgeDevConfig *c)
{
    struct zedagent_facts *f = &z->facts;
    arena_reset(z->names);
    f->device_name = arena_str(z->names, pb_text(c->device_name));
    f->project_name = arena_str(z->names, pb_text(c->project_name));
    f->project_id = arena_str(z->names, pb_text(c->project_id));
    f->enterprise_name = arena_str(z->names, pb_text(c->enterprise_name));
    f->enterprise_id = arena_str(z->names, pb_text(c->enterprise_id));
}

/* False: it is older than what is in force. */
static bool take_time(struct zedagent *z, const Eve__Config__EdgeDevConfig *c)
{
    const int64_t at_us = parse_timestamp_us(c);
    if (at_us && z->config_timestamp_us > at_us)
        return false;
    z->config_timestamp_us = at_us ? at_us : z->config_timestamp_us;
    z->facts.config_received_us = at_us ? at_us : z->node->clock->wall_us(z->node->clock);
    return true;
}

static void take_loc(struct zedagent *z, const Eve__Config__LOCConfig *c)
{
    ARENA_AUTO a = arena_new();
    struct gotype g = gotype_new(a);
    const struct str url = c ? pb_text(c->loc_url) : STR("");
    struct json *store = url.n && c->n_datastore_collect_info_id
                             ? publication_get(a, z->topics.sections[SECTION_DATASTORES],
                                               str_of(c->datastore_collect_info_id[0]))
                             : NULL;
    gotype_text(&g, "LocURL", url);
    gotype_value(&g, "CollectInfoDatastore", store ? store : json_new(a, json_object()));
    (void) publication_publish(z->topics.loc, STR("global"), g.object);
    (void) zedagent_keep(&z->loc_url, url);
}

static void take_epoch(struct zedagent *z, int64_t epoch)
{
    if (z->facts.controller_epoch == epoch)
        return;
    z->facts.controller_epoch = epoch;
    zedagent_emit(z, ZEDAGENT_EPOCH);
}

static void take_settings(struct zedagent *z, const Eve__Config__EdgeDevConfig *c)
{
    if (z->has_api_maintenance != (bool) c->maintenance_mode) {
        z->has_api_maintenance = c->maintenance_mode;
        status_merge_maintenance(z);
    }
    z->fallback_counter = (uint32_t) items_int(z->items, "force.fallback.counter");
}

/* ---- sections ------------------------------------------------------------------------------- */

/* A device that leaves its cluster keeps what runs until it has started alone. */
static void watch_departure(struct zedagent *z, const Eve__Config__EdgeDevConfig *c)
{
    ARENA_AUTO a = arena_new();
    const struct json *cluster =
        publication_get(a, z->topics.sections[SECTION_CLUSTER], STR("global"));
    if (!c->cluster) {
        z->is_departing = z->is_departing || (z->is_kube && z->was_in_cluster);
        z->was_in_cluster = false;
        return;
    }
    if (!json_get_bool(cluster, STR("Valid"), false))
        return;
    z->was_in_cluster = true;
    if (!z->is_departing)
        return;
    z->is_departing = false;
    topics_forget(z, SECTION_CONTENT_TREES);
    topics_forget(z, SECTION_VOLUMES);
    topics_forget(z, SECTION_APPS);
}

static enum apply_result take_sections(struct zedagent *z, const Eve__Config__EdgeDevConfig *c,
                                       enum parse_source source)
{
    ARENA_AUTO a = arena_new();
    const bool is_bootstrap = source == PARSE_BOOTSTRAP;
    const bool is_updating = !is_bootstrap && neighbours_is_updating(z, c);
    struct parse p = {.arena = a,
                      .config = c,
                      .source = source,
                      .now_us = z->node->clock->wall_us(z->node->clock),
                      .received_us = z->facts.config_received_us};
    for (int id = 0; id < SECTIONS; id++) {
        if (is_bootstrap && !parse_sections[id].is_for_bootstrap)
            continue;
        /* The next base OS will start applications, not this one. */
        if (id == SECTION_APPS && is_updating)
            return APPLY_SKIPPED_UPDATE;
        topics_apply(z, (enum section_id) id, &p);
        if (id == SECTION_CLUSTER)
            watch_departure(z, c);
    }
    return APPLY_OK;
}

static void watch_certs(struct zedagent *z, const Eve__Config__EdgeDevConfig *c)
{
    const struct str hash = pb_text(c->controllercert_confighash);
    const bool is_first = !z->certs_config_hash.p;
    if (!zedagent_keep(&z->certs_config_hash, hash) || is_first)
        return;
    certs_hurry(z);
    zedagent_emit(z, ZEDAGENT_NEEDS_CERTS);
}

enum apply_result apply_config(struct zedagent *z, const Eve__Config__EdgeDevConfig *c,
                               enum parse_source source)
{
    const bool is_commanding = source == PARSE_CONTROLLER || source == PARSE_LOC;
    enum apply_result result;
    if (!take_time(z, c))
        return APPLY_OBSOLETE;
    keep_names(z, c);
    take_epoch(z, c->controller_epoch);
    if (source != PARSE_BOOTSTRAP)
        take_loc(z, c->loc_config);
    apply_items(z, c, source);
    take_settings(z, c);
    if (is_commanding) {
        const bool reboots = command_take(z, COMMAND_REBOOT, c->reboot);
        if (command_take(z, COMMAND_SHUTDOWN, c->shutdown) || reboots)
            return APPLY_SKIPPED_REBOOT;
    }
    if (z->facts.is_rebooting)
        return APPLY_SKIPPED_REBOOT;
    if (z->facts.is_maintenance)
        return APPLY_OK;
    if (source != PARSE_BOOTSTRAP) {
        watch_certs(z, c);
        local_follow_config(z, c);
    }
    result = take_sections(z, c, source);
    if (result == APPLY_OK) {
        local_prune(z);
        z->facts.config_processed_us = z->facts.config_received_us;
    }
    return result;
}
