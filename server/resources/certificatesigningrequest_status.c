/* SPDX-License-Identifier: Apache-2.0 */
/* The decision about a request and its outcome: /approval brings conditions, /status the
 * certificate and the conditions that are no decision. Decisions stay. */
#include "base/base64.h"
#include "pki/csr.h"
#include "resources/certificatesigningrequest.h"
#include "resources/checks.h"

#define MAX_CONDITIONS 64

static const struct str decisions[] = {STR("Approved"), STR("Denied")};
/* Are true or not there, and cannot be taken back. */
static const struct str final_types[] = {STR("Approved"), STR("Denied"), STR("Failed")};

static struct json *conditions_of(const struct json *object)
{
    return json_at(object, "status", "conditions", NULL);
}

static struct str type_of(const struct json *condition)
{
    return json_get_str(condition, STR("type"));
}

static size_t count_type(const struct json *conditions, struct str type)
{
    size_t n = 0;
    JSON_FOR_EACH_ITEM (conditions, c)
        n += str_eq(type_of(c), type);
    return n;
}

/* ---- preparing ---------------------------------------------------------------------------- */

static const struct json *find_type(const struct json *conditions, struct str type)
{
    JSON_FOR_EACH_ITEM (conditions, c)
        if (str_eq(type_of(c), type))
            return c;
    return NULL;
}

/* Where some were added or taken away they stay so, and are refused for it. */
static void keep_decision(const struct json *old, struct json *conditions, struct str type)
{
    const struct json *was = find_type(old, type);
    if (!was || count_type(old, type) != 1 || count_type(conditions, type) != 1)
        return;
    JSON_FOR_EACH_ITEM (conditions, c)
        if (str_eq(type_of(c), type))
            *c = *was;
}

static void fill_times(struct arena *a, const struct json *old, struct json *condition,
                       struct str now)
{
    const struct json *was = find_type(old, type_of(condition));
    const struct str since = json_get_str(was, STR("lastTransitionTime"));
    const bool is_same =
        str_eq(json_get_str(was, STR("status")), json_get_str(condition, STR("status")));
    if (!json_get_str(condition, STR("lastUpdateTime")).n)
        (void) json_set(a, condition, STR("lastUpdateTime"), json_string(now));
    if (!json_get_str(condition, STR("lastTransitionTime")).n)
        (void) json_set(a, condition, STR("lastTransitionTime"),
                        json_string(was && is_same && since.n ? since : now));
}

void csr_prepare_status(struct hook_context *h, const struct json *old, struct json *object)
{
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    const struct json *old_conditions = conditions_of(old);
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(h->now_us, text);
    const struct str now = arena_str(h->arena, str_of(text));
    if (str_is(h->subresource, "status")) {
        for (size_t i = 0; i < N_ELEMENTS(decisions); i++)
            keep_decision(old_conditions, conditions_of(object), decisions[i]);
    } else {
        const struct json *certificate = json_at(old, "status", "certificate", NULL);
        (void) json_remove(status, STR("certificate"));
        if (certificate)
            (void) json_append_member(h->arena, status, STR("certificate"), *certificate);
    }
    JSON_FOR_EACH_ITEM (conditions_of(object), condition)
        fill_times(h->arena, old_conditions, condition, now);
}

/* ---- rules -------------------------------------------------------------------------------- */

static bool is_final(struct str type)
{
    for (size_t i = 0; i < N_ELEMENTS(final_types); i++)
        if (str_eq(type, final_types[i]))
            return true;
    return false;
}

static bool is_decision(struct str type)
{
    return str_eq(type, decisions[0]) || str_eq(type, decisions[1]);
}

static void check_condition(struct causes *causes, const struct field_path *at,
                            const struct json *condition)
{
    static const struct str values[] = {STR("False"), STR("True"), STR("Unknown")};
    const struct json *status = json_get(condition, STR("status"));
    const bool must_be_true = is_final(type_of(condition));
    check_required(causes, at, condition, STR("type"));
    check_required(causes, at, condition, STR("status"));
    if (json_str(status).n)
        check_supported(causes, &FIELD_NAME(at, STR("status")), status,
                        must_be_true ? &values[1] : values, must_be_true ? 1 : N_ELEMENTS(values));
}

/* Against those before it. */
static void check_among(struct causes *causes, const struct field_path *at,
                        const struct json *conditions, size_t index)
{
    const struct json *condition = &conditions->items[index];
    const struct json type = shown(type_of(condition));
    bool is_opposed = false, is_repeated = false;
    for (size_t i = 0; i < index; i++) {
        const struct str other = type_of(&conditions->items[i]);
        is_repeated |= str_eq(other, json_str(&type));
        is_opposed |=
            is_decision(other) && is_decision(json_str(&type)) && !str_eq(other, json_str(&type));
    }
    const struct field_path at_item = FIELD_INDEX(at, (int64_t) index);
    if (is_opposed)
        causes_add(causes, CAUSE_INVALID, at, &type,
                   "Approved and Denied conditions are mutually exclusive");
    if (is_repeated)
        causes_add(causes, CAUSE_DUPLICATE, &FIELD_NAME(&at_item, STR("type")), &type, "%s", "");
}

void csr_check_status(const struct json *object, struct causes *causes)
{
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at = FIELD_NAME(&at_status, STR("conditions"));
    const struct json *conditions = conditions_of(object);
    const size_t n = json_count(conditions);
    if (n > MAX_CONDITIONS) {
        causes_add(causes, CAUSE_TOO_MANY, &at, &(struct json){.type = JSON_INT, .i = (int64_t) n},
                   "must have at most %d items", MAX_CONDITIONS);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        check_condition(causes, &FIELD_INDEX(&at, (int64_t) i), &conditions->items[i]);
        check_among(causes, &at, conditions, i);
    }
}

static void check_kept(struct hook_context *h, const struct json *old, const struct json *object,
                       struct causes *causes, const struct field_path *at)
{
    const struct json *before = conditions_of(old), *after = conditions_of(object);
    for (size_t i = 0; i < N_ELEMENTS(final_types); i++)
        if (count_type(after, final_types[i]) < count_type(before, final_types[i]))
            causes_add(causes, CAUSE_FORBIDDEN, at, NULL,
                       "updates may not remove a condition of type \"%.*s\"",
                       STR_ARG(final_types[i]));
    if (str_is(h->subresource, "approval"))
        return;
    for (size_t i = 0; i < N_ELEMENTS(decisions); i++)
        if (count_type(after, decisions[i]) > count_type(before, decisions[i]))
            causes_add(causes, CAUSE_FORBIDDEN, at, NULL,
                       "updates may not add a condition of type \"%.*s\"", STR_ARG(decisions[i]));
}

static void check_certificate(struct causes *causes, const struct field_path *at, struct str text)
{
    const struct json value = json_string(STR("<certificate data>"));
    struct str pem = STR("");
    struct str reason = STR_NONE;
    (void) base64_decode(causes->arena, text, BASE64_STANDARD, &pem, NULL);
    if (text.n && pki_request_check_answer(causes->arena, pem, &reason) < 0)
        causes_add(causes, CAUSE_INVALID, at, &value, "%.*s", STR_ARG(reason));
}

void csr_check_status_change(struct hook_context *h, const struct json *old,
                             const struct json *object, struct causes *causes)
{
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at = FIELD_NAME(&at_status, STR("conditions"));
    const struct field_path at_certificate = FIELD_NAME(&at_status, STR("certificate"));
    const struct str before = json_str(json_at(old, "status", "certificate", NULL)),
                     after = json_str(json_at(object, "status", "certificate", NULL));
    const bool is_other = !str_eq(before, after);
    if (is_other)
        check_certificate(causes, &at_certificate, after);
    check_kept(h, old, object, causes, &at);
    if (is_other && before.n)
        causes_add(causes, CAUSE_FORBIDDEN, &at_certificate, NULL,
                   "updates may not modify existing certificate content");
}
