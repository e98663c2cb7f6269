/* SPDX-License-Identifier: Apache-2.0 */
/* What holds before a controller was heard of in this life. */
#include "base/log.h"
#include "zedagent/bootstrap.h"
#include "zedagent/zedagent_internal.h"

#define BOOTSTRAP STR("bootstrap-config.pb")
#define ROOT STR("root-certificate.pem")
#define GLOBAL_CONFIG STR("GlobalConfig/global.json")
#define AUTHORIZED_KEYS STR("authorized_keys")

/* NULL: there is none, or none to be believed. */
static const Eve__Config__EdgeDevConfig *read_bootstrap(struct zedagent *z, struct arena *a)
{
    BUF_AUTO file = {0};
    BUF_AUTO roots = {0};
    const Eve__Config__EdgeDevConfig *config = NULL;
    const char *reason = "";
    if (node_file_read(z->node, NODE_CONFIG, BOOTSTRAP, &file) < 0)
        return NULL;
    (void) node_file_read(z->node, NODE_CONFIG, ROOT, &roots);
    const int r =
        bootstrap_open(a, buf_str(&file), buf_str(&roots),
                       z->node->clock->wall_us(z->node->clock) / 1000000, &config, &reason);
    if (r == 0)
        return config;
    log_error("the bootstrap configuration is not used", LOG_TEXT("reason", reason), LOG_ERRNO(r));
    node_set_led(z->node, NODE_LED_BAD_BOOTSTRAP);
    return NULL;
}

static bool read_global(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO file = {0};
    struct json_parse_result parsed;
    if (node_file_read(z->node, NODE_CONFIG, GLOBAL_CONFIG, &file) < 0)
        return false;
    if (json_parse(a, buf_str(&file), &parsed) < 0 || items_read(z->items, parsed.value) < 0) {
        log_error("global.json is not usable, ignoring it");
        return false;
    }
    return true;
}

static void read_keys(struct zedagent *z)
{
    BUF_AUTO file = {0};
    if (node_file_read(z->node, NODE_CONFIG, AUTHORIZED_KEYS, &file) == 0)
        (void) items_set(z->items, STR("debug.enable.ssh"), str_trim(buf_str(&file)));
}

void start_items(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    const Eve__Config__EdgeDevConfig *config = checkpoint_read(z, a);
    const enum parse_source source = config ? PARSE_SAVED : PARSE_BOOTSTRAP;
    /* Reading it here is not yet what keeps it in force. */
    z->checkpoint = (struct checkpoint){0};
    if (!config && !checkpoint_exists(z))
        config = read_bootstrap(z, a);
    if (config) {
        apply_items(z, config, source);
        return;
    }
    if (!read_global(z))
        read_keys(z);
    apply_publish_items(z);
}

void start_bootstrap(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    const Eve__Config__EdgeDevConfig *config = checkpoint_exists(z) ? NULL : read_bootstrap(z, a);
    if (config)
        (void) apply_config(z, config, PARSE_BOOTSTRAP);
}
