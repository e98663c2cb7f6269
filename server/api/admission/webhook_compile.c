/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/webhooks_internal.h"
#include "base/alloc.h"
#include "base/base64.h"

#define DEFAULT_TIMEOUT_S 10
#define MAX_TIMEOUT_S 30
#define DEFAULT_SERVICE_PORT 443

static unsigned operations_of(const struct json *list)
{
    static const struct {
        const char *name;
        unsigned operations;
    } names[] = {
        {"*", ADMISSION_CREATE | ADMISSION_UPDATE | ADMISSION_DELETE | ADMISSION_CONNECT},
        {"CREATE", ADMISSION_CREATE},
        {"UPDATE", ADMISSION_UPDATE},
        {"DELETE", ADMISSION_DELETE},
        {"CONNECT", ADMISSION_CONNECT},
    };
    unsigned operations = 0;
    JSON_FOR_EACH_ITEM (list, item)
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
            if (str_is(json_str(item), names[i].name))
                operations |= names[i].operations;
    return operations;
}

static struct webhook_rule rule_of(const struct json *source)
{
    struct str scope = json_get_str(source, STR("scope"));
    return (struct webhook_rule){
        .operations = operations_of(json_get(source, STR("operations"))),
        .scope = str_is(scope, "Cluster")      ? WEBHOOK_CLUSTER
                 : str_is(scope, "Namespaced") ? WEBHOOK_NAMESPACED
                                               : WEBHOOK_ANY_SCOPE,
        .groups = json_get(source, STR("apiGroups")),
        .versions = json_get(source, STR("apiVersions")),
        .resources = json_get(source, STR("resources")),
    };
}

static void compile_rules(struct arena *a, const struct json *source, struct webhook *h)
{
    const struct json *rules = json_get(source, STR("rules"));
    h->rules = ARENA_ARRAY(a, struct webhook_rule, json_count(rules) + 1);
    JSON_FOR_EACH_ITEM (rules, rule)
        h->rules[h->n_rules++] = rule_of(rule);
}

/* Services are no kind of ours: none exists. */
static struct str no_service(struct arena *a, const struct json *service, int timeout_s)
{
    struct str name = json_get_str(service, STR("name")),
               namespace = json_get_str(service, STR("namespace")),
               path = json_get_str(service, STR("path"));
    return arena_printf(a,
                        "failed to call webhook: Post \"https://%.*s.%.*s.svc:%lld%.*s?timeout=%ds"
                        "\": service \"%.*s\" not found",
                        STR_ARG(name), STR_ARG(namespace),
                        (long long) json_get_int(service, STR("port"), DEFAULT_SERVICE_PORT),
                        STR_ARG(path), timeout_s, STR_ARG(name));
}

static void compile_client(struct arena *a, const struct json *client, struct webhook *h)
{
    const struct json *service = json_get(client, STR("service"));
    struct str bundle = json_get_str(client, STR("caBundle"));
    h->url = json_get_str(client, STR("url"));
    if (!h->url.n) {
        h->problem = no_service(a, service, h->timeout_s);
        return;
    }
    if (!bundle.n)
        return;
    if (base64_decode(a, bundle, BASE64_STANDARD, &h->ca_pem, NULL) < 0 ||
        str_find_str(h->ca_pem, STR("-----BEGIN CERTIFICATE-----")) < 0)
        h->problem = STR("could not get REST client: unable to load root certificates: unable to "
                         "parse bytes as PEM block");
}

static struct str review_version_of(const struct json *versions)
{
    JSON_FOR_EACH_ITEM (versions, version)
        if (str_is(json_str(version), "v1") || str_is(json_str(version), "v1beta1"))
            return json_str(version);
    return STR_NONE;
}

static void compile_hook(struct arena *a, const struct json *source, struct webhook *h)
{
    struct str effects = json_get_str(source, STR("sideEffects"));
    int64_t timeout = json_get_int(source, STR("timeoutSeconds"), DEFAULT_TIMEOUT_S);
    h->name = json_get_str(source, STR("name"));
    h->is_exact = str_is(json_get_str(source, STR("matchPolicy")), "Exact");
    h->fails_open = str_is(json_get_str(source, STR("failurePolicy")), "Ignore");
    h->is_asked_again = str_is(json_get_str(source, STR("reinvocationPolicy")), "IfNeeded");
    h->has_side_effects = !str_is(effects, "None") && !str_is(effects, "NoneOnDryRun");
    h->timeout_s = timeout >= 1 && timeout <= MAX_TIMEOUT_S ? (int) timeout : DEFAULT_TIMEOUT_S;
    h->review_version = review_version_of(json_get(source, STR("admissionReviewVersions")));
    compile_rules(a, source, h);
    compile_client(a, json_get(source, STR("clientConfig")), h);
    if (!h->review_version.n)
        h->problem = STR("could not create admission objects: webhook does not accept known "
                         "AdmissionReview versions (v1, v1beta1)");
    if (selector_from_json(a, json_get(source, STR("namespaceSelector")), &h->namespaces) < 0 ||
        selector_from_json(a, json_get(source, STR("objectSelector")), &h->objects) < 0)
        h->problem = STR("its selectors cannot be read");
}

struct webhook_configuration *webhook_compile(struct str text)
{
    struct webhook_configuration *c = NEW(struct webhook_configuration);
    atomic_init(&c->refs, 1);
    c->arena = arena_new();
    const struct json *source = json_parse_quick(c->arena, arena_str(c->arena, text));
    const struct json *hooks = json_get(source, STR("webhooks"));
    c->name = json_str(json_at(source, "metadata", "name", NULL));
    c->hooks = ARENA_ARRAY(c->arena, struct webhook, json_count(hooks) + 1);
    JSON_FOR_EACH_ITEM (hooks, hook) {
        struct webhook *h = &c->hooks[c->n_hooks++];
        compile_hook(c->arena, hook, h);
        h->configuration = c->name;
    }
    return c;
}

void webhook_configuration_unref(struct webhook_configuration *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_free(c->arena);
    mem_free(c);
}
