/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/application.h"
#include "resources/checks.h"

#define PORTS_MAX 1024

static void check_label(struct causes *causes, const struct field_path *at, struct str name)
{
    const struct name_errors errors = name_label(causes->arena, name);
    object_meta_add_errors(causes, at, name, &errors);
}

/* ---- resources ----------------------------------------------------------------------------- */

static void check_amounts(struct causes *causes, const struct field_path *at,
                          const struct json *amounts)
{
    static const struct str known[] = {STR("cpu"), STR("memory"), STR("storage")};
    JSON_FOR_EACH_MEMBER (amounts, m) {
        const struct str name = json_str(&m->key);
        bool is_known = str_find(name, '/') >= 0; /* somebody else's */
        for (size_t i = 0; i < N_ELEMENTS(known); i++)
            is_known |= str_eq(name, known[i]);
        if (!is_known)
            causes_add_not_supported(causes, at, &m->key, known, N_ELEMENTS(known));
        check_amount(causes, &FIELD_KEY(at, name), &m->value);
    }
}

static void check_resources(struct causes *causes, const struct field_path *at,
                            const struct json *resources)
{
    const struct json *requests = json_get(resources, STR("requests")),
                      *limits = json_get(resources, STR("limits"));
    const struct field_path at_requests = FIELD_NAME(at, STR("requests"));
    check_amounts(causes, &at_requests, requests);
    check_amounts(causes, &FIELD_NAME(at, STR("limits")), limits);
    JSON_FOR_EACH_MEMBER (requests, m) {
        struct quantity request = {0}, limit = {0};
        const struct json *of = json_get(limits, json_str(&m->key));
        if (check_read_amount(&m->value, &request) && check_read_amount(of, &limit) &&
            quantity_compare(&request, &limit) > 0)
            causes_add(causes, CAUSE_INVALID, &FIELD_KEY(&at_requests, json_str(&m->key)),
                       &m->value, "must be less than or equal to %.*s limit of %.*s",
                       STR_ARG(json_str(&m->key)), STR_ARG(quantity_text(causes->arena, &limit)));
    }
}

/* ---- environment --------------------------------------------------------------------------- */

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        const char c = name.p[i];
        const bool is_digit = c >= '0' && c <= '9';
        const bool is_ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                           c == '-' || c == '.' || (is_digit && i > 0);
        if (!is_ok)
            return false;
    }
    return name.n > 0;
}

static void check_variable(struct causes *causes, const struct field_path *at,
                           const struct json *variable)
{
    const struct json *name = json_get(variable, STR("name")),
                      *from = json_get(variable, STR("valueFrom"));
    const struct field_path at_from = FIELD_NAME(at, STR("valueFrom"));
    if (!is_variable(json_str(name)))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("name")), name,
                   "a valid environment variable name must consist of alphabetic characters, "
                   "digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name', "
                   " or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
                   "'[-._a-zA-Z][-._a-zA-Z0-9]*')");
    if (!json_is(from, JSON_OBJECT))
        return;
    const size_t n = (json_get(from, STR("secretKeyRef")) ? 1u : 0u) +
                     (json_get(from, STR("configMapKeyRef")) ? 1u : 0u);
    const struct json shown_from = json_string(STR(""));
    if (json_get_str(variable, STR("value")).n)
        causes_add(causes, CAUSE_INVALID, &at_from, &shown_from,
                   "may not be specified when `value` is not empty");
    else if (n != 1)
        causes_add(causes, CAUSE_INVALID, &at_from, &shown_from,
                   n ? "may not have more than one field specified at a time"
                     : "must specify one of: `secretKeyRef`, `configMapKeyRef`");
}

static void check_env(struct causes *causes, const struct field_path *at, const struct json *env)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (env, variable) {
        const struct field_path here = FIELD_INDEX(at, i++);
        check_variable(causes, &here, variable);
    }
}

/* ---- ports --------------------------------------------------------------------------------- */

/* Ports of the device that the application has so far. */
struct device_ports {
    struct {
        int64_t number;
        struct str protocol;
    } items[PORTS_MAX];
    size_t n;
};

static void check_port(struct causes *causes, const struct field_path *at, const struct json *port,
                       struct device_ports *taken)
{
    const struct json *given = json_get(port, STR("hostPort"));
    const struct json *number = given ? given : json_get(port, STR("containerPort"));
    const struct str protocol = json_get_str(port, STR("protocol"));
    const struct field_path here = FIELD_NAME(at, given ? STR("hostPort") : STR("containerPort"));
    if (!json_is(number, JSON_INT))
        return;
    for (size_t i = 0; i < taken->n; i++)
        if (taken->items[i].number == number->i && str_eq(taken->items[i].protocol, protocol)) {
            causes_add(causes, CAUSE_DUPLICATE, &here, number, "%s", "");
            return;
        }
    if (taken->n == PORTS_MAX) {
        causes_add(causes, CAUSE_FORBIDDEN, &here, NULL,
                   "an application has at most %d ports of the device", PORTS_MAX);
        return;
    }
    taken->items[taken->n].number = number->i;
    taken->items[taken->n++].protocol = protocol;
}

/* ---- containers ---------------------------------------------------------------------------- */

void application_check_containers(struct causes *causes, const struct field_path *at_spec,
                                  const struct json *spec)
{
    struct device_ports *taken = ARENA_NEW(causes->arena, struct device_ports);
    const struct field_path at = FIELD_NAME(at_spec, STR("containers"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("containers")), container) {
        const struct field_path here = FIELD_INDEX(&at, i++);
        const struct field_path at_ports = FIELD_NAME(&here, STR("ports"));
        int64_t n = 0;
        check_label(causes, &FIELD_NAME(&here, STR("name")), json_get_str(container, STR("name")));
        check_required(causes, &here, container, STR("image"));
        check_resources(causes, &FIELD_NAME(&here, STR("resources")),
                        json_get(container, STR("resources")));
        check_env(causes, &FIELD_NAME(&here, STR("env")), json_get(container, STR("env")));
        JSON_FOR_EACH_ITEM (json_get(container, STR("ports")), port) {
            const struct field_path at_port = FIELD_INDEX(&at_ports, n++);
            check_port(causes, &at_port, port, taken);
        }
    }
}
