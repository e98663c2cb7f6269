/* SPDX-License-Identifier: Apache-2.0 */
/* What is derived from changes and therefore has to be remembered: counters that make a device
 * act, and choices that must not be made anew. Kept as {group: {owner: ...}}; owners that are gone
 * are forgotten because nobody keeps them. */
#include "composer/composer_internal.h"
#include "pki/pki.h"

#define COMMANDS "commands"
#define CONTENT_HASH_BYTES 16 /* of SHA-256: to tell changes, not to withstand anybody */

static const struct json *previous(struct composition *c, const char *group, struct str owner)
{
    return json_get(json_get(c->in->previous, str_of(group)), owner);
}

static struct json *owner_now(struct composition *c, const char *group, struct str owner)
{
    struct json *of_group = json_ensure_object(c->arena, c->result->derived, str_of(group));
    return json_ensure_object(c->arena, of_group, owner);
}

static void set_counter(struct composition *c, const char *group, struct str owner,
                        const char *name, struct str content, int64_t value)
{
    struct json counter = json_object();
    (void) json_set(c->arena, &counter, STR("of"), json_string(content));
    (void) json_set(c->arena, &counter, STR("count"), json_int(value));
    (void) json_set(c->arena, owner_now(c, group, owner), str_of(name), counter);
}

int64_t counter_of_content(struct composition *c, const char *group, struct str owner,
                           const char *name, struct str content, int64_t first)
{
    unsigned char hash[SHA256_BYTES];
    pki_sha256(content, hash);
    const struct str text = pki_hex(c->arena, hash, CONTENT_HASH_BYTES);
    const struct json *before = json_get(previous(c, group, owner), str_of(name));
    int64_t value = json_get_int(before, STR("count"), first);
    if (before && !str_eq(json_get_str(before, STR("of")), text))
        value++;
    value = MIN(MAX(value, 0), INT32_MAX); /* a device counts in 32 bits */
    set_counter(c, group, owner, name, text, value);
    return value;
}

bool has_counted(struct composition *c, const char *annotation)
{
    return previous(c, COMMANDS, str_of(annotation)) != NULL;
}

int64_t counter_of_command(struct composition *c, const char *annotation)
{
    const struct str value = object_annotation(c->in->device, annotation);
    const struct json *before = previous(c, COMMANDS, str_of(annotation));
    const struct json *of = json_at(before, "counter", "of", NULL);
    int64_t count = json_get_int(json_get(before, STR("counter")), STR("count"), 0);
    struct str remembered = json_str(of);
    if (value.n && !str_eq(value, remembered)) {
        count += of != NULL;
        remembered = value;
    }
    count = MIN(MAX(count, 0), INT32_MAX);
    set_counter(c, COMMANDS, str_of(annotation), "counter", remembered.p ? remembered : STR(""),
                count);
    return count;
}

bool was_there(struct composition *c, const char *group, struct str owner)
{
    return owner.n && previous(c, group, owner);
}

struct str kept_text(struct composition *c, const char *group, struct str owner)
{
    return json_str(previous(c, group, owner));
}

int64_t kept_int(struct composition *c, const char *group, struct str owner, int64_t or_else)
{
    return json_get_int(json_get(c->in->previous, str_of(group)), owner, or_else);
}

void keep(struct composition *c, const char *group, struct str owner, struct json value)
{
    struct json *of_group = json_ensure_object(c->arena, c->result->derived, str_of(group));
    (void) json_set(c->arena, of_group, owner, value);
}

void derived_finish(struct composition *c)
{
    json_sort_members(c->result->derived);
    JSON_FOR_EACH_MEMBER (c->result->derived, group)
        json_sort_members(&group->value);
}

void keep_previous(struct composition *c, const char *group, struct str owner)
{
    const struct json *before = previous(c, group, owner);
    if (before && !json_get(json_get(c->result->derived, str_of(group)), owner))
        keep(c, group, owner, json_clone(c->arena, before));
}
