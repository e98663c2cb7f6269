/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/demand.h"

#include <errno.h>

#include "api/quantity.h"

#define NETWORKS_ANNOTATION STR("k8s.v1.cni.cncf.io/networks")
/* As the composer gives them to what says nothing. */
#define DEFAULT_MEMORY_KIB (512 * 1024)
#define DEFAULT_CPU_MILLI 1000
#define MILLI 1000
#define KIBIBYTE_MILLI (1024 * MILLI)
/* Beyond this nothing is compared, and sums of it do not overflow. */
#define MAX_WHOLE ((int64_t) 1 << 50)

/* ---- amounts --------------------------------------------------------------------------------- */

int demand_amount(const struct json *value, int64_t unit_milli, enum demand_rounding rounding,
                  int64_t *ret)
{
    struct quantity q;
    struct str ignored;
    if (!value || json_is(value, JSON_NULL))
        return -ENOENT;
    if (json_is(value, JSON_INT))
        q = quantity_from_int(value->i);
    else if (quantity_parse(json_str(value), &q, &ignored) < 0)
        return -EINVAL;
    const struct quantity most = quantity_from_int(MAX_WHOLE);
    if (quantity_sign(&q) < 0 || quantity_compare(&q, &most) > 0)
        return -EINVAL;
    quantity_round_milli(&q);
    __int128 milli = q.mantissa;
    for (int scale = q.scale; scale > -3; scale--)
        milli *= 10;
    for (int scale = q.scale; scale < -3; scale++)
        milli /= 10;
    *ret = (int64_t) ((milli + (rounding == DEMAND_UP ? unit_milli - 1 : 0)) / unit_milli);
    return 0;
}

/* The sum over containers of limits, else requests, each rounded up: what the composer gives the
 * application on the device. */
static int sum_of(const struct json *spec, const char *resource, int64_t unit_milli, int64_t *ret)
{
    int64_t sum = 0;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("containers")), item) {
        const struct json *resources = json_get(item, STR("resources"));
        const struct json *limit = json_at(resources, "limits", resource, NULL);
        int64_t amount = 0;
        const int r = demand_amount(limit ? limit : json_at(resources, "requests", resource, NULL),
                                    unit_milli, DEMAND_UP, &amount);
        if (r < 0 && r != -ENOENT)
            return r;
        if (__builtin_add_overflow(sum, amount, &sum) || sum > MAX_WHOLE)
            return -EINVAL;
    }
    *ret = sum;
    return 0;
}

static int read_resources(const struct json *spec, struct demand *ret)
{
    int64_t memory, cpus;
    if (sum_of(spec, "memory", KIBIBYTE_MILLI, &memory) < 0 ||
        sum_of(spec, "cpu", MILLI, &cpus) < 0)
        return -EINVAL;
    if (memory)
        ret->memory_kib = memory;
    if (cpus)
        ret->cpu_milli = cpus * MILLI;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct names {
    struct arena *arena;
    struct str all;
    size_t n;
};

static void add_name(struct names *to, struct str name)
{
    const struct str parts[] = {to->all, name, STR(",")};
    if (name.n && to->n++ < DEMAND_MAX_NAMES)
        to->all = arena_join(to->arena, parts, N_ELEMENTS(parts));
}

/* [namespace/]name[@interface] */
static struct str network_name(struct str text)
{
    struct str name = str_trim(text);
    const ptrdiff_t slash = str_find(name, '/');
    name = slash < 0 ? name : str_from(name, (size_t) slash + 1);
    const ptrdiff_t at = str_find(name, '@');
    return at < 0 ? name : str_sub(name, 0, (size_t) at);
}

static int read_networks(const struct json *application, struct names *to)
{
    const struct str text = str_trim(
        json_get_str(json_at(application, "metadata", "annotations", NULL), NETWORKS_ANNOTATION));
    struct str rest = text, part;
    if (!str_starts_with(text, STR("["))) {
        while (str_split(&rest, ',', &part))
            add_name(to, network_name(part));
        return 0;
    }
    const struct json *list = json_parse_quick(to->arena, text);
    JSON_FOR_EACH_ITEM (list, item)
        add_name(to, network_name(json_is(item, JSON_STRING) ? json_str(item)
                                                             : json_get_str(item, STR("name"))));
    return json_is(list, JSON_ARRAY) ? 0 : -EINVAL;
}

/* Claims that live as long as the Application hold nothing that it would have to follow. */
static void read_claims(const struct json *spec, struct names *to)
{
    JSON_FOR_EACH_ITEM (json_get(spec, STR("volumes")), v)
        add_name(to, json_str(json_at(v, "persistentVolumeClaim", "claimName", NULL)));
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct str demand_selection(struct arena *a, const struct json *spec)
{
    static const char *const keys[] = {"nodeSelector", "affinity"};
    struct json selection = json_object();
    for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
        const struct json *part = json_get(spec, str_of(keys[i]));
        if (json_count(part))
            (void) json_append_member(a, &selection, str_of(keys[i]), *part);
    }
    return selection.n ? json_text(a, &selection) : STR("");
}

const char *demand_of(struct arena *a, const struct json *application, struct demand *ret)
{
    const struct json *spec = json_get(application, STR("spec"));
    struct names networks = {.arena = a, .all = STR("")}, claims = networks;
    const char *error = NULL;
    *ret = (struct demand){.memory_kib = DEFAULT_MEMORY_KIB,
                           .cpu_milli = DEFAULT_CPU_MILLI,
                           .selection = demand_selection(a, spec)};
    if (read_resources(spec, ret) < 0)
        error = "spec.containers: what is asked for in resources is no amount or too much";
    if (read_networks(application, &networks) < 0)
        error = "metadata.annotations[k8s.v1.cni.cncf.io/networks]: is no list of networks";
    read_claims(spec, &claims);
    ret->networks = networks.all;
    ret->claims = claims.all;
    return error;
}
