/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and boot images -> volumes. A device makes a volume anew, and empties it, when its
 * generation counts up. What an application boots follows its Image; what is claimed holds a
 * user's data and is never made anew because of an edit elsewhere. */
#include <errno.h>

#include "composer/composer_internal.h"

#define VOLUMES "volumes"
#define SIZES "volumeSizes"

static Eve__Config__Volume *new_volume(struct composition *c, struct str uuid, struct str name,
                                       int64_t size_bytes)
{
    Eve__Config__Volume *m = MESSAGE_NEW(c->arena, eve__config__volume);
    m->uuid = arena_strz(c->arena, uuid);
    m->displayname = arena_strz(c->arena, name);
    m->maxsizebytes = size_bytes;
    m->origin = MESSAGE_NEW(c->arena, eve__config__volume_content_origin);
    m->target = EVE__CONFIG__TARGET__Disk;
    return m;
}

static void set_origin(Eve__Config__Volume *m, const struct tree *t)
{
    m->origin->type = t ? EVE__CONFIG__VOLUME_CONTENT_ORIGIN_TYPE__VCOT_DOWNLOAD
                        : EVE__CONFIG__VOLUME_CONTENT_ORIGIN_TYPE__VCOT_BLANK;
    if (t)
        m->origin->downloadcontenttreeid = t->message->uuid;
}

static int64_t generation(struct composition *c, const Eve__Config__Volume *m, struct str content)
{
    return counter_of_content(c, VOLUMES, str_of(m->uuid), "generation", content, 0);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Whether all its modes are for reading. */
static bool is_read_only(const struct json *claim)
{
    const struct json *modes = json_at(claim, "spec", "accessModes", NULL);
    JSON_FOR_EACH_ITEM (modes, mode)
        if (!str_is(json_str(mode), "ReadOnlyMany"))
            return false;
    return json_count(modes) > 0;
}

static bool is_of_eve(struct composition *c, const struct json *claim)
{
    const struct str name = json_str(json_at(claim, "spec", "storageClassName", NULL));
    const struct json *class = set_find(&c->in->storage_classes, name);
    return name.n == 0 || (class && str_is(json_get_str(class, STR("provisioner")), "eve"));
}

/* The Image that the claim begins with; 0: *ret_is_blank says whether there is none. */
static int find_source(struct composition *c, const struct json *claim, struct tree *ret,
                       bool *ret_is_blank, struct str *ret_why)
{
    const struct json *ref = json_at(claim, "spec", "dataSourceRef", NULL);
    if (!json_is(ref, JSON_OBJECT))
        ref = json_at(claim, "spec", "dataSource", NULL);
    *ret_is_blank = !json_is(ref, JSON_OBJECT);
    if (*ret_is_blank)
        return 0;
    if (!str_eq_nocase(json_get_str(ref, STR("kind")), STR("Image"))) {
        *ret_why = STR("its source is no Image");
        return -EINVAL;
    }
    return tree_make(c, json_get_str(ref, STR("name")), ret, ret_why);
}

static int check_claim(struct composition *c, const struct json *claim, struct str *ret_why,
                       int64_t *ret_size)
{
    const struct json *size = json_at(claim, "spec", "resources", "requests", "storage", NULL);
    if (!is_of_eve(c, claim)) {
        *ret_why = STR("its StorageClass is not there or not of EVE");
        return -EINVAL;
    }
    if (object_amount(size, 1, ret_size) < 0) {
        *ret_why = STR("spec.resources.requests.storage: no amount");
        return -EINVAL;
    }
    return 0;
}

/* A device resizes a volume only by making it anew, without its data. */
static void keep_size(struct composition *c, const struct json *claim, Eve__Config__Volume *m)
{
    const int64_t kept = kept_int(c, SIZES, str_of(m->uuid), m->maxsizebytes);
    if (kept != m->maxsizebytes)
        problem_add(c, claim, STR("spec.resources.requests.storage"),
                    "the volume keeps its size of %lld bytes: a device cannot resize it and keep "
                    "its data",
                    (long long) kept);
    m->maxsizebytes = kept;
    keep(c, SIZES, str_of(m->uuid), json_int(kept));
}

static int emit(struct composition *c, const struct json *volume, const struct json *claim,
                struct str *ret_why)
{
    int64_t size;
    struct tree tree;
    bool is_blank;
    if (check_claim(c, claim, ret_why, &size) < 0 ||
        find_source(c, claim, &tree, &is_blank, ret_why) < 0)
        return -EINVAL;
    if (is_blank && size == 0) {
        *ret_why = STR("spec.resources.requests.storage: a blank volume needs a size");
        return -EINVAL;
    }
    Eve__Config__Volume *m = new_volume(c, object_uuid(volume), object_name(claim), size);
    m->readonly = is_read_only(claim);
    set_origin(m, is_blank ? NULL : &tree);
    keep_size(c, claim, m);
    m->generationcount =
        generation(c, m,
                   arena_printf(c->arena, "%d %s", m->readonly,
                                is_blank ? "blank" : m->origin->downloadcontenttreeid));
    struct part *p = part_add(c, SECTION_VOLUMES, object_uuid(volume), &m->base);
    part_source(c, p, "", claim, STR("spec"));
    part_source(c, p, "uuid", volume, STR("status.uuid"));
    if (!is_blank)
        tree_use(c, &tree);
    return 0;
}

void volumes_emit(struct composition *c)
{
    const struct json **sorted = set_sorted(c->arena, &c->in->volumes);
    for (size_t i = 0; i < c->in->volumes.n; i++) {
        const struct json *volume = sorted[i];
        const struct str name = json_str(json_at(volume, "spec", "claim", NULL));
        const struct json *claim = set_find(&c->in->claims, name);
        const struct str uuid = object_uuid(volume);
        struct str why = STR("not found");
        if (uuid.n == 0 || part_find(c, SECTION_VOLUMES, uuid))
            continue;
        if (claim && emit(c, volume, claim, &why) == 0)
            continue;
        problem_add(c, volume, STR("spec.claim"), "PersistentVolumeClaim '%.*s': %.*s",
                    STR_ARG(name), STR_ARG(why));
        keep_previous(c, VOLUMES, uuid);
        keep_previous(c, SIZES, uuid);
    }
}

const Eve__Config__Volume *volume_of_claim(struct composition *c, struct str claim)
{
    const struct json *found = NULL;
    for (size_t i = 0; i < c->in->volumes.n; i++) {
        const struct json *volume = c->in->volumes.items[i];
        if (str_eq(json_str(json_at(volume, "spec", "claim", NULL)), claim) &&
            (!found || str_cmp(object_name(volume), object_name(found)) < 0))
            found = volume;
    }
    const struct part *p = part_find(c, SECTION_VOLUMES, object_uuid(found));
    return p ? (const Eve__Config__Volume *) p->message : NULL;
}

/* ---- boot images ----------------------------------------------------------------------------- */

Eve__Config__Volume *volume_of_boot(struct composition *c, struct str uuid, const struct tree *t,
                                    int64_t size_bytes, struct str name)
{
    Eve__Config__Volume *m = new_volume(c, uuid, name, size_bytes);
    set_origin(m, t);
    const struct str content = tree_content(c->arena, t);
    m->generationcount = generation(
        c, m, arena_printf(c->arena, "%lld %.*s", (long long) size_bytes, STR_ARG(content)));
    return m;
}

void volume_keep_boot(struct composition *c, struct str uuid)
{
    keep_previous(c, VOLUMES, uuid);
}
