/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config_sound.h"

#include "protobuf/message.h"

static bool has_text(const char *text)
{
    return pb_text(text).n > 0;
}

static bool has_uuid(const Eve__Config__UUIDandVersion *id)
{
    return id && has_text(id->uuid);
}

static bool is_sound_app(const Eve__Config__AppInstanceConfig *app)
{
    return has_uuid(app->uuidandversion) && app->fixedresources;
}

static bool is_sound_item(const Eve__Config__ConfigItem *item)
{
    return has_text(item->key) && has_text(item->value);
}

#define KEEP(config, list, condition) \
    do { \
        size_t n_kept = 0; \
        for (size_t i_ = 0; i_ < (config)->n_##list; i_++) { \
            __typeof__((config)->list[0]) it = (config)->list[i_]; \
            if (condition) \
                (config)->list[n_kept++] = it; \
        } \
        (config)->n_##list = n_kept; \
    } while (false)

void config_make_sound(Eve__Config__EdgeDevConfig *config)
{
    KEEP(config, apps, is_sound_app(it));
    KEEP(config, networkinstances, has_uuid(it->uuidandversion));
    KEEP(config, networks, has_text(it->id));
    KEEP(config, datastores, has_text(it->id));
    KEEP(config, contentinfo, has_text(it->uuid));
    KEEP(config, volumes, has_text(it->uuid));
    KEEP(config, ciphercontexts, has_text(it->contextid));
    KEEP(config, systemadapterlist, has_text(it->name));
    KEEP(config, deviceiolist, has_text(it->phylabel));
    KEEP(config, configitems, is_sound_item(it));
}
