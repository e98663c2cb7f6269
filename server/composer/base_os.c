/* SPDX-License-Identifier: Apache-2.0 */
/* spec.eve-os-version -> the base OS and its image. */
#include "composer/composer_internal.h"

#define EVE_OS "eve-os"
#define RETRY SETTINGS_PREFIX "retry-update"
#define KEPT "baseOs"

/* "14.5.0-kvm-amd64" of "lfedge/eve:14.5.0-kvm-amd64". */
static struct str tag_of(struct str ref)
{
    const ptrdiff_t slash = str_find_last(ref, '/'), colon = str_find_last(ref, ':');
    return colon > slash ? str_from(ref, (size_t) colon + 1) : STR_NONE;
}

static const struct json *find_image(struct composition *c, struct str version)
{
    const struct json *found = NULL;
    for (size_t i = 0; i < c->in->images.n; i++) {
        const struct json *image = c->in->images.items[i];
        const struct json *spec = json_get(image, STR("spec"));
        if (str_is(json_get_str(spec, STR("type")), EVE_OS) &&
            str_eq(tag_of(json_get_str(spec, STR("ref"))), version) &&
            (!found || str_cmp(object_name(image), object_name(found)) < 0))
            found = image;
    }
    return found;
}

static void emit(struct composition *c, struct str version, const struct tree *t)
{
    Eve__Config__BaseOS *m = MESSAGE_NEW(c->arena, eve__config__base_os);
    m->content_tree_uuid = t->message->uuid;
    m->base_os_version = arena_strz(c->arena, version);
    m->activate = true;
    m->retry_update = MESSAGE_NEW(c->arena, eve__config__device_ops_cmd);
    m->retry_update->counter = (uint32_t) counter_of_command(c, RETRY);
    c->config->baseos = m;
    tree_use(c, t);
    keep(c, KEPT, STR("version"), json_string(version));
    source_add(c, STR("baseos"), c->in->device, STR("spec.eve-os-version"));
    source_add(c, STR("baseos.retryUpdate"), c->in->device, STR("metadata.annotations[" RETRY "]"));
}

/* Once asked for it stays: taking it away after the update would say nothing, and a device that
 * falls back must find it again. */
void base_os_emit(struct composition *c)
{
    const struct str version = json_str(json_at(c->in->device, "spec", "eve-os-version", NULL));
    const struct str running = json_str(json_at(c->in->device, "status", "eve-os-version", NULL));
    const bool was_asked = str_eq(kept_text(c, KEPT, STR("version")), version);
    if (version.n == 0 || (str_eq(version, running) && !was_asked)) {
        (void) counter_of_command(c, RETRY);
        return;
    }
    const struct json *image = find_image(c, version);
    struct tree tree;
    struct str why;
    if (image && tree_make_of(c, image, &tree, &why) == 0) {
        emit(c, version, &tree);
        return;
    }
    (void) counter_of_command(c, RETRY);
    if (was_asked)
        keep(c, KEPT, STR("version"), json_string(version));
    if (image)
        problem_add(c, c->in->device, STR("spec.eve-os-version"), "%.*s", STR_ARG(why));
    else
        problem_add(c, c->in->device, STR("spec.eve-os-version"),
                    "no Image of type " EVE_OS " has the tag '%.*s'", STR_ARG(version));
}
