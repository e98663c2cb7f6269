/* SPDX-License-Identifier: Apache-2.0 */
/* Adam's global options: how devices attest, and what they may boot. */
#include <errno.h>

#include "adam/objects.h"
#include "settings/settings.h"

/* As server/device/pcr_template.h reads it. */
#define TEMPLATES_NAME "pcr-templates"
#define TEMPLATES_KEY "templates.json"
#define TEMPLATES_ENFORCE "enforce"

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_or_absent(const struct json *v, enum json_type type)
{
    return !v || json_is(v, JSON_NULL) || json_is(v, type);
}

static struct json copy_text(const struct json *v)
{
    return json_string(json_is(v, JSON_STRING) ? json_str(v) : STR(""));
}

static int values_of(struct arena *a, const struct json *from, struct json *ret)
{
    const struct json *values = adam_member(from, "PCRValues");
    *ret = json_array();
    if (!is_or_absent(values, JSON_ARRAY))
        return -EINVAL;
    JSON_FOR_EACH_ITEM (values, item) {
        const struct json *index = adam_member(item, "index"), *value = adam_member(item, "value");
        if (!json_is(item, JSON_OBJECT) || !is_or_absent(index, JSON_INT) ||
            !is_or_absent(value, JSON_STRING))
            return -EINVAL;
        struct json one = json_object();
        (void) json_append_member(a, &one, STR("index"),
                                  json_int(json_is(index, JSON_INT) ? index->i : 0));
        (void) json_append_member(a, &one, STR("value"), copy_text(value));
        (void) json_push(a, ret, one);
    }
    return 0;
}

static int template_of(struct arena *a, const struct json *from, struct json *ret)
{
    struct json values;
    const struct json *eve = adam_member(from, "eveVersion"),
                      *firmware = adam_member(from, "firmwareVersion");
    if (!json_is(from, JSON_OBJECT) || !is_or_absent(eve, JSON_STRING) ||
        !is_or_absent(firmware, JSON_STRING) || values_of(a, from, &values) < 0)
        return -EINVAL;
    *ret = json_object();
    (void) json_append_member(a, ret, STR("eveVersion"), copy_text(eve));
    (void) json_append_member(a, ret, STR("firmwareVersion"), copy_text(firmware));
    (void) json_append_member(a, ret, STR("PCRValues"), values);
    return 0;
}

static int templates_of(struct arena *a, const struct json *options, struct json *ret)
{
    const struct json *templates = adam_member(options, "PCRTemplates");
    *ret = json_array();
    if (!is_or_absent(templates, JSON_ARRAY))
        return -EINVAL;
    JSON_FOR_EACH_ITEM (templates, item) {
        struct json one;
        if (template_of(a, item, &one) < 0)
            return -EINVAL;
        (void) json_push(a, ret, one);
    }
    return 0;
}

int adam_check_global_options(const struct adam_place *p, const struct json *options)
{
    struct json templates;
    const char *what = NULL;
    if (!json_is(options, JSON_OBJECT))
        what = "an object is expected";
    else if (!is_or_absent(adam_member(options, "enforceTemplateAttestation"), JSON_BOOL))
        what = "enforceTemplateAttestation is true or false";
    else if (templates_of(p->arena, options, &templates) < 0)
        what = "PCRTemplates is a list of {eveVersion, firmwareVersion, PCRValues: [{index, "
               "value}]}";
    return what ? status_bad_request(p->st, "%s", what) : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int patch_or_create(const struct adam_place *p, struct str name, struct json data)
{
    struct json object = json_object(), metadata = json_object();
    (void) json_append_member(p->arena, &object, STR("data"), data);
    const int r = adam_write(p, VERB_PATCH, STR("configmaps"), name, &object, NULL);
    if (r != -ENOENT)
        return r;
    adam_add(p->arena, &metadata, "name", name);
    (void) json_set(p->arena, &object, STR("metadata"), metadata);
    adam_add(p->arena, &object, "apiVersion", STR("v1"));
    adam_add(p->arena, &object, "kind", STR("ConfigMap"));
    return adam_write(p, VERB_CREATE, STR("configmaps"), name, &object, NULL);
}

static int put_templates(const struct adam_place *p, const struct json *templates, bool is_enforced)
{
    struct json data = json_object();
    adam_add(p->arena, &data, TEMPLATES_KEY, json_text(p->arena, templates));
    adam_add(p->arena, &data, TEMPLATES_ENFORCE, is_enforced ? STR("true") : STR("false"));
    return patch_or_create(p, STR(TEMPLATES_NAME), data);
}

/* Adam knows two of our three: what an operator chose of those that do not enforce stays. */
static int put_attestation(const struct adam_place *p, bool is_enforced)
{
    struct json data = json_object();
    struct json *map = NULL;
    const int r = adam_get(p, STR("configmaps"), STR(SETTINGS_GLOBAL_NAME), &map);
    if (r < 0 && r != -ENOENT)
        return r;
    const bool was = str_is(json_str(json_at(map, "data", "attestation", NULL)), "enforce");
    if (was == is_enforced)
        return 0;
    adam_add(p->arena, &data, "attestation", is_enforced ? STR("enforce") : STR("report"));
    return patch_or_create(p, STR(SETTINGS_GLOBAL_NAME), data);
}

/* The templates are there before they count, and count no more before they go. */
int adam_put_global_options(const struct adam_place *p, const struct json *options)
{
    struct adam_place system = *p;
    const struct json *enforce = adam_member(options, "enforceTemplateAttestation");
    const bool is_enforced = json_is(enforce, JSON_BOOL) && enforce->b;
    struct json templates;
    system.namespace = STR(SETTINGS_GLOBAL_NAMESPACE);
    int r = adam_check_global_options(p, options);
    if (r == 0)
        r = templates_of(p->arena, options, &templates) < 0 ? -EINVAL : 0;
    if (r == 0 && !is_enforced)
        r = put_attestation(&system, is_enforced);
    if (r == 0)
        r = put_templates(&system, &templates, is_enforced);
    if (r == 0 && is_enforced)
        r = put_attestation(&system, is_enforced);
    return r;
}
