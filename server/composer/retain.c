/* SPDX-License-Identifier: Apache-2.0 */
/* An application that is on the device and cannot be composed now stays as it was: a device deletes
 * what is not in its configuration, with all its data, and what is missing may come back. What it
 * needs is taken over with it, as far as nothing else has brought it. */
#include "composer/composer_internal.h"

static const Eve__Config__AppInstanceConfig *find_app(const Eve__Config__EdgeDevConfig *last,
                                                      struct str uuid)
{
    for (size_t i = 0; last && uuid.n && i < last->n_apps; i++) {
        const Eve__Config__AppInstanceConfig *m = last->apps[i];
        if (m->uuidandversion && str_eq(pb_text(m->uuidandversion->uuid), uuid))
            return m;
    }
    return NULL;
}

/* ---- what must be there, or free ------------------------------------------------------------- */

static Eve__Config__NetworkInstanceConfig *find_instance(const Eve__Config__EdgeDevConfig *last,
                                                         struct str uuid)
{
    for (size_t i = 0; i < last->n_networkinstances; i++) {
        Eve__Config__NetworkInstanceConfig *m = last->networkinstances[i];
        if (m->uuidandversion && str_eq(pb_text(m->uuidandversion->uuid), uuid))
            return m;
    }
    return NULL;
}

static bool is_labelled(const Eve__Config__SystemAdapter *m, struct str label)
{
    if (str_eq(pb_text(m->name), label))
        return true;
    for (size_t i = 0; i < m->n_shared_labels; i++)
        if (str_eq(pb_text(m->shared_labels[i]), label))
            return true;
    return false;
}

/* Whether a port, or several, are still called so. */
static bool has_label(struct composition *c, struct str label)
{
    const struct parts *adapters = &c->sections[SECTION_ADAPTERS];
    if (str_is(label, LABEL_UPLINK))
        return true;
    for (size_t i = 0; i < adapters->n; i++)
        if (is_labelled((const Eve__Config__SystemAdapter *) adapters->items[i].message, label))
            return true;
    return false;
}

/* A network that cannot be composed now goes on for the applications that are on it, as long as it
 * is in nobody's way. */
static bool can_stay(struct composition *c, const Eve__Config__NetworkInstanceConfig *m)
{
    struct subnet s;
    if (!m || !m->port || !has_label(c, pb_text(m->port->name)))
        return false;
    const struct str subnet = m->ip ? pb_text(m->ip->subnet) : STR_NONE;
    return !subnet.n || (subnet_parse(subnet, &s, NULL) == 0 && subnet_is_free(c, &s));
}

static bool has_networks(struct composition *c, const Eve__Config__AppInstanceConfig *m)
{
    for (size_t i = 0; i < m->n_interfaces; i++) {
        const struct str uuid = pb_text(m->interfaces[i]->networkid);
        if (!part_find(c, SECTION_INSTANCES, uuid) &&
            !can_stay(c, find_instance(c->in->last, uuid)))
            return false;
    }
    return true;
}

/* "port tcp/80" of a rule that leads in; STR_NONE of others. */
static struct str port_key(struct composition *c, const Eve__Config__ACE *rule)
{
    struct str protocol = STR_NONE, number = STR_NONE;
    for (size_t i = 0; i < rule->n_matches; i++) {
        const struct str type = pb_text(rule->matches[i]->type);
        if (str_is(type, "protocol"))
            protocol = pb_text(rule->matches[i]->value);
        else if (str_is(type, "lport"))
            number = pb_text(rule->matches[i]->value);
    }
    if (!protocol.n || !number.n)
        return STR_NONE;
    return arena_printf(c->arena, "port %.*s/%.*s", STR_ARG(protocol), STR_ARG(number));
}

static void take(struct composition *c, struct app *app, struct str key)
{
    if (key.n)
        (void) json_set(c->arena, &app->taken, key, json_bool(true));
}

/* What it had of the device, unless somebody else has it now. */
static bool take_all(struct composition *c, struct app *app,
                     const Eve__Config__AppInstanceConfig *m)
{
    app->taken = json_object();
    for (size_t i = 0; i < m->n_interfaces; i++)
        for (size_t k = 0; k < m->interfaces[i]->n_acls; k++)
            take(c, app, port_key(c, m->interfaces[i]->acls[k]));
    for (size_t i = 0; i < m->n_adapters; i++)
        take(c, app,
             arena_printf(c->arena, "adapter %.*s", STR_ARG(pb_text(m->adapters[i]->name))));
    JSON_FOR_EACH_MEMBER (&app->taken, key)
        if (json_get(c->lent, json_str(&key->key)))
            return false;
    return true;
}

/* ---- what comes with it ---------------------------------------------------------------------- */

static void retain_part(struct composition *c, const struct app *app, enum section section,
                        struct str key, ProtobufCMessage *message)
{
    if (!part_find(c, section, key))
        part_source(c, part_add(c, section, key, message), "", app->object, STR("spec"));
}

static void retain_context(struct composition *c, const struct app *app,
                           const Eve__Common__CipherBlock *block)
{
    const Eve__Config__EdgeDevConfig *last = c->in->last;
    const struct str id = block ? pb_text(block->ciphercontextid) : STR_NONE;
    for (size_t i = 0; id.n && i < last->n_ciphercontexts; i++)
        if (str_eq(pb_text(last->ciphercontexts[i]->contextid), id))
            retain_part(c, app, SECTION_CONTEXTS, id, &last->ciphercontexts[i]->base);
}

static void retain_store(struct composition *c, const struct app *app, struct str id)
{
    const Eve__Config__EdgeDevConfig *last = c->in->last;
    for (size_t i = 0; id.n && i < last->n_datastores; i++) {
        Eve__Config__DatastoreConfig *m = last->datastores[i];
        if (!str_eq(pb_text(m->id), id))
            continue;
        retain_part(c, app, SECTION_DATASTORES, id, &m->base);
        retain_context(c, app, m->cipherdata);
    }
}

static void retain_tree(struct composition *c, const struct app *app, struct str id)
{
    const Eve__Config__EdgeDevConfig *last = c->in->last;
    for (size_t i = 0; id.n && i < last->n_contentinfo; i++) {
        Eve__Config__ContentTree *m = last->contentinfo[i];
        if (!str_eq(pb_text(m->uuid), id))
            continue;
        retain_part(c, app, SECTION_TREES, id, &m->base);
        retain_store(c, app, pb_text(m->dsid));
        for (size_t k = 0; k < m->n_ds_ids_list; k++)
            retain_store(c, app, pb_text(m->ds_ids_list[k]));
    }
}

static void retain_volume(struct composition *c, const struct app *app, struct str id)
{
    const Eve__Config__EdgeDevConfig *last = c->in->last;
    for (size_t i = 0; id.n && i < last->n_volumes; i++) {
        Eve__Config__Volume *m = last->volumes[i];
        if (!str_eq(pb_text(m->uuid), id))
            continue;
        retain_part(c, app, SECTION_VOLUMES, id, &m->base);
        if (m->origin)
            retain_tree(c, app, pb_text(m->origin->downloadcontenttreeid));
    }
}

static void retain_network(struct composition *c, const struct app *app, struct str uuid)
{
    Eve__Config__NetworkInstanceConfig *m = find_instance(c->in->last, uuid);
    if (m)
        retain_part(c, app, SECTION_INSTANCES, uuid, &m->base);
}

bool app_retain(struct composition *c, struct app *app)
{
    const Eve__Config__AppInstanceConfig *m = find_app(c->in->last, app->uuid);
    if (!m || part_find(c, SECTION_APPS, app->name) || !has_networks(c, m) || !take_all(c, app, m))
        return false;
    for (size_t i = 0; i < m->n_interfaces; i++)
        retain_network(c, app, pb_text(m->interfaces[i]->networkid));
    for (size_t i = 0; i < m->n_volumereflist; i++)
        retain_volume(c, app, pb_text(m->volumereflist[i]->uuid));
    retain_context(c, app, m->cipherdata);
    /* What is composed is the composer's own; what was composed before is only read. */
    Eve__Config__AppInstanceConfig *copy = MESSAGE_NEW(c->arena, eve__config__app_instance_config);
    *copy = *m;
    retain_part(c, app, SECTION_APPS, app->name, &copy->base);
    JSON_FOR_EACH_MEMBER (&app->taken, key)
        (void) json_set(c->arena, c->lent, json_str(&key->key), json_string(app->name));
    return true;
}
