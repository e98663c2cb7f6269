/* SPDX-License-Identifier: Apache-2.0 */
/* Where content comes from and what is made of it: datastores, content trees, volumes, the base
 * operating system, disks. */
#include "zedagent/parse_internal.h"

#define DEFAULT_REGION STR("us-west-2")

static struct str enum_name(const ProtobufCEnumDescriptor *d, struct arena *a, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d, value);
    return v ? str_of(v->name) : arena_printf(a, "%d", value);
}

static struct json *datastore_value(struct parse *p, const Eve__Config__DatastoreConfig *d)
{
    struct gotype g = gotype_new(p->arena);
    const struct str region = pb_text(d->region);
    gotype_uuid(&g, "UUID", pb_text(d->id));
    gotype_text(&g, "Fqdn", pb_text(d->fqdn));
    gotype_text(&g, "DsType", enum_name(&eve__config__ds_type__descriptor, p->arena, d->dtype));
    gotype_text(&g, "ApiKey", pb_text(d->apikey));
    gotype_text(&g, "Password", pb_text(d->password));
    gotype_text(&g, "Dpath", pb_text(d->dpath));
    gotype_text(&g, "Region", region.n ? region : DEFAULT_REGION);
    gotype_value(&g, "DsCertPEM", parse_bytes_list(p->arena, d->dscertpem, d->n_dscertpem));
    (void) parse_cipher_block(p, &g, pb_text(d->id), d->cipherdata);
    return g.object;
}

struct json *parse_datastores(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t i = 0; i < p->config->n_datastores; i++) {
        struct json *value = datastore_value(p, p->config->datastores[i]);
        json_append_member(p->arena, all, json_get_str(value, STR("UUID")), *value);
    }
    return all;
}

/* An older controller names one. One that is no UUID spoils the list. */
static struct json *datastore_ids(struct parse *p, const Eve__Config__ContentTree *c)
{
    struct json *list = json_new(p->arena, json_array());
    if (!c->n_ds_ids_list) {
        json_push(p->arena, list, gotype_uuid_value(p->arena, pb_text(c->dsid)));
        return list;
    }
    for (size_t i = 0; i < c->n_ds_ids_list; i++)
        json_push(p->arena, list, gotype_uuid_value(p->arena, str_of(c->ds_ids_list[i])));
    JSON_FOR_EACH_ITEM (list, id) {
        if (!str_eq(json_str(id), PARSE_NIL_UUID))
            continue;
        *list = json_array();
        json_push(p->arena, list, json_string(PARSE_NIL_UUID));
        break;
    }
    return list;
}

static bool is_here(const struct parse *p, const char *designated_node)
{
    const struct str node = pb_text(designated_node);
    return !node.n || !p->config->id || str_eq_nocase(node, pb_text(p->config->id->uuid));
}

static struct str to_lower(struct arena *a, struct str s)
{
    char *copy = arena_strz(a, s);
    for (size_t i = 0; i < s.n; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char) (copy[i] | 0x20);
    return str_range(copy, s.n);
}

struct json *parse_content_trees(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t i = 0; i < p->config->n_contentinfo; i++) {
        const Eve__Config__ContentTree *c = p->config->contentinfo[i];
        struct gotype g = gotype_new(p->arena);
        gotype_uuid(&g, "ContentID", pb_text(c->uuid));
        gotype_value(&g, "DatastoreIDList", datastore_ids(p, c));
        gotype_text(&g, "RelativeURL", pb_text(c->url));
        gotype_int(&g, "Format", c->iformat);
        gotype_text(&g, "ContentSha256", to_lower(p->arena, pb_text(c->sha256)));
        gotype_uint(&g, "MaxDownloadSize", c->maxsizebytes);
        gotype_int(&g, "GenerationCounter", c->generation_count);
        gotype_text(&g, "DisplayName", pb_text(c->displayname));
        gotype_text(&g, "CustomMeta", pb_text(c->custom_meta_data));
        gotype_bool(&g, "IsLocal", is_here(p, c->designated_node_id));
        json_append_member(p->arena, all, json_get_str(g.object, STR("ContentID")), *g.object);
    }
    return all;
}

static struct str volume_key(struct parse *p, struct str uuid, int64_t generation)
{
    const struct json canonical = gotype_uuid_value(p->arena, uuid);
    return arena_printf(p->arena, "%.*s#%lld", STR_ARG(json_str(&canonical)),
                        (long long) generation);
}

/* Keys of the volumes that applications use. */
static void fill_references(struct parse *p, struct map *ret)
{
    for (size_t i = 0; i < p->config->n_apps; i++) {
        const Eve__Config__AppInstanceConfig *app = p->config->apps[i];
        for (size_t k = 0; k < app->n_volumereflist; k++) {
            const Eve__Config__VolumeRef *r = app->volumereflist[k];
            (void) map_put(ret, volume_key(p, pb_text(r->uuid), r->generationcount),
                           app->volumereflist[k]);
        }
    }
}

static void fill_contents(struct parse *p, struct map *ret)
{
    for (size_t i = 0; i < p->config->n_contentinfo; i++)
        (void) map_put(ret, pb_text(p->config->contentinfo[i]->uuid), p->config->contentinfo[i]);
}

static struct json *volume_value(struct parse *p, const Eve__Config__Volume *v,
                                 const Eve__Config__ContentTree *content, bool is_used)
{
    struct gotype g = gotype_new(p->arena);
    gotype_uuid(&g, "VolumeID", pb_text(v->uuid));
    gotype_uuid(&g, "ContentID", v->origin ? pb_text(v->origin->downloadcontenttreeid) : STR(""));
    gotype_int(&g, "VolumeContentOriginType", v->origin ? (int) v->origin->type : 0);
    gotype_uint(&g, "MaxVolSize", (uint64_t) v->maxsizebytes);
    gotype_bool(&g, "ReadOnly", v->readonly);
    gotype_int(&g, "GenerationCounter", v->generationcount);
    gotype_int(&g, "LocalGenerationCounter", 0);
    gotype_bool(&g, "Encrypted", !v->clear_text);
    gotype_text(&g, "DisplayName", pb_text(v->displayname));
    gotype_bool(&g, "HasNoAppReferences", !is_used);
    gotype_int(&g, "Target", v->target);
    gotype_text(&g, "CustomMeta", content ? pb_text(content->custom_meta_data) : STR(""));
    gotype_bool(&g, "IsReplicated", !is_here(p, v->designated_node_id));
    gotype_bool(&g, "IsNativeContainer", false);
    return g.object;
}

struct json *parse_volumes(struct parse *p)
{
    CLEANUP(map_done) struct map used = {0};
    CLEANUP(map_done) struct map contents = {0};
    struct json *all = json_new(p->arena, json_object());
    fill_references(p, &used);
    fill_contents(p, &contents);
    for (size_t i = 0; i < p->config->n_volumes; i++) {
        const Eve__Config__Volume *v = p->config->volumes[i];
        const struct str key = volume_key(p, pb_text(v->uuid), v->generationcount);
        const Eve__Config__ContentTree *content =
            v->origin ? map_get(&contents, pb_text(v->origin->downloadcontenttreeid)) : NULL;
        json_append_member(p->arena, all, key,
                           *volume_value(p, v, content, map_get(&used, key) != NULL));
    }
    return all;
}

struct json *parse_base_os(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    const Eve__Config__BaseOS *b = p->config->baseos;
    struct gotype g = gotype_new(p->arena);
    if (!b || !pb_text(b->content_tree_uuid).n)
        return all;
    gotype_text(&g, "BaseOsVersion", pb_text(b->base_os_version));
    gotype_text(&g, "ContentTreeUUID", pb_text(b->content_tree_uuid));
    gotype_int(&g, "RetryUpdateCounter", b->retry_update ? b->retry_update->counter : 0);
    gotype_bool(&g, "Activate", b->activate);
    json_append_member(p->arena, all, gotype_key(p->arena, pb_text(b->content_tree_uuid)),
                       *g.object);
    return all;
}

static struct json *disk_description(struct arena *a, const Eve__Common__DiskDescription *d)
{
    struct gotype g = gotype_new(a);
    gotype_text(&g, "Name", d ? pb_text(d->name) : STR(""));
    gotype_text(&g, "LogicalName", d ? pb_text(d->logical_name) : STR(""));
    gotype_text(&g, "Serial", d ? pb_text(d->serial) : STR(""));
    return g.object;
}

/* As deep as messages may be nested. */
static struct json *disks_value(struct arena *a, const Eve__Config__DisksConfig *d)
{
    struct gotype g = gotype_new(a);
    struct json disks = d->n_disks ? json_array() : json_null();
    struct json children = d->n_children ? json_array() : json_null();
    for (size_t i = 0; i < d->n_disks; i++) {
        struct gotype disk = gotype_new(a);
        gotype_value(&disk, "Disk", disk_description(a, d->disks[i]->disk));
        gotype_value(&disk, "OldDisk",
                     d->disks[i]->old_disk ? disk_description(a, d->disks[i]->old_disk) : NULL);
        gotype_int(&disk, "Config", d->disks[i]->disk_config);
        json_push(a, &disks, *disk.object);
    }
    for (size_t i = 0; i < d->n_children; i++)
        json_push(a, &children, *disks_value(a, d->children[i]));
    gotype_value(&g, "Disks", &disks);
    gotype_int(&g, "ArrayType", d->array_type);
    gotype_value(&g, "Children", &children);
    return g.object;
}

/* A configuration that says nothing of disks leaves them as they are. */
struct json *parse_disks(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    if (!p->config->disks)
        return NULL;
    json_append_member(p->arena, all, STR("global"), *disks_value(p->arena, p->config->disks));
    return all;
}
