/* SPDX-License-Identifier: Apache-2.0 */
/* The global configuration of a device: what the controller's configItems say, within their bounds,
 * as the services read it and as the topic ConfigItemValueMap carries it. Which items there are,
 * their types, bounds and defaults is the table of lib/eve/config_items.h. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct items;

/* All defaults. */
struct items *items_new(void);
void items_free(struct items *i);
/* From the topic's JSON: what is absent or of another type has its default. -EINVAL: no object. */
int items_read(struct items *i, const struct json *map);
struct json *items_write(struct arena *a, const struct items *i);
/* Only what is not the default: the same to whoever reads the topic, and a hundredth of its size
 * where there are thousands. */
struct json *items_write_brief(struct arena *a, const struct items *i);

/* The name must be in the table and of the type. */
int64_t items_int(const struct items *i, const char *name);
bool items_bool(const struct items *i, const char *name);
struct str items_text(const struct items *i, const char *name);
enum items_tristate { ITEMS_NONE = 0, ITEMS_DISABLED = 1, ITEMS_ENABLED = 2 };
enum items_tristate items_tristate(const struct items *i, const char *name);
/* What the log of a service keeps, or sends to the controller: its own setting or the default. */
struct str items_agent_level(const struct items *i, struct str agent, bool is_remote);

/* Back to the defaults for all that the controller does not name, before its items are set (some
 * have another default then: debug.enable.usb). */
void items_begin(struct items *i);
/* As the controller has it. -EINVAL: out of bounds or not of the type: the value of before stays,
 * and the error is kept for the device's report; -ENOENT: nobody knows it
 * (agent.<name>.debug.loglevel and the like are known). */
int items_set(struct items *i, struct str name, struct str value);

/* What is reported in device info: every item of the configuration, known or not. Valid until the
 * next change. */
struct items_status {
    struct str name, value, error; /* error absent: it is in force */
};
size_t items_statuses(struct arena *a, const struct items *i, struct items_status **ret);
