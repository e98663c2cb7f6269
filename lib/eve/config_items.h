/* SPDX-License-Identifier: Apache-2.0 */
/* The configItems that EVE knows: their types, bounds and defaults, and whether a text is a value
 * of one. A controller refuses a bad one where it is written, a device keeps the value of before.
 */
#pragma once

#include "base/arena.h"

enum config_item_type {
    CONFIG_ITEM_INT,
    CONFIG_ITEM_BOOL,
    CONFIG_ITEM_TRISTATE,
    CONFIG_ITEM_LEVEL,  /* of the log of a service of EVE */
    CONFIG_ITEM_SYSLOG, /* of the kernel or syslog */
    CONFIG_ITEM_BASE64,
    CONFIG_ITEM_TEXT,
};

/* As EVE numbers them. */
enum config_item_tristate {
    CONFIG_ITEM_NONE = 0,
    CONFIG_ITEM_DISABLED = 1,
    CONFIG_ITEM_ENABLED = 2
};

struct config_item {
    const char *name;
    enum config_item_type type;
    int64_t min, max; /* CONFIG_ITEM_INT: of the widest version of EVE */
    int64_t number;   /* default of numbers, booleans and tristates */
    const char *text; /* default of the others */
};

/* The whole table, by name. */
const struct config_item *config_items(size_t *ret_n);
/* NULL: nobody knows it. Settings of one service (agent.<service>.debug.loglevel and the like) are
 * no part of the table: see config_item_of_agent(). */
const struct config_item *config_item_find(struct str name);
bool config_item_is_text(const struct config_item *item);

/* agent.<service>.<setting>, and as it was once written debug.<service>.<setting>: the service and
 * the setting as the device keeps it (static), debug.loglevel or debug.remote.loglevel. NULL: it is
 * none; otherwise what its values must be. */
const struct config_item *config_item_of_agent(struct str name, struct str *ret_agent,
                                               struct str *ret_setting);

struct config_item_value {
    int64_t number; /* of numbers, booleans and tristates */
    struct str text;
};
/* -EINVAL: it is no value of the item; *ret_reason, in the arena, says what it must be. */
int config_item_parse(struct arena *a, const struct config_item *item, struct str text,
                      struct config_item_value *ret, struct str *ret_reason);
/* As EVE writes a value: "true", "60", "enabled". */
struct str config_item_text(struct arena *a, const struct config_item *item,
                            const struct config_item_value *value);
