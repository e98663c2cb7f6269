/* SPDX-License-Identifier: Apache-2.0 */
#include "api/media.h"

#include <errno.h>

#define ACCEPTED_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define STREAM_TYPES \
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
#define CUSTOM_PATCH_TYPES \
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"

/* ---- parsing ------------------------------------------------------------------------------ */

/* "0.5" to 500; what is no quality counts as 1, as in kube-apiserver. */
static int parse_quality(struct str s)
{
    if (s.n == 0 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return 1000;
    int value = (s.p[0] - '0') * 1000;
    int scale = 100;
    for (size_t i = 2; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 1000;
        value += (s.p[i] - '0') * scale;
        scale /= 10;
    }
    return MIN(value, 1000);
}

static struct str unquote(struct str s)
{
    return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"' ? str_sub(s, 1, s.n - 1) : s;
}

static void set_parameter(struct media_range *r, struct str name, struct str value)
{
    if (str_is(name, "q"))
        r->quality = parse_quality(value);
    else if (str_is(name, "as"))
        r->as = value;
    else if (str_is(name, "g"))
        r->group = value;
    else if (str_is(name, "v"))
        r->version = value;
    else if (str_is(name, "stream"))
        r->stream = value;
    else if (str_is(name, "profile"))
        r->profile = value;
    else if (str_is(name, "pretty"))
        r->is_pretty = str_is(value, "1");
    if (str_is(name, "as") || str_is(name, "g") || str_is(name, "v"))
        r->has_transform = true;
}

static bool parse_range(struct str text, struct media_range *ret)
{
    struct str rest = text, part;
    if (!str_split(&rest, ';', &part))
        return false;
    part = str_trim(part);
    struct media_range r = {.quality = 1000, .as = STR(""), .group = STR(""), .version = STR("")};
    const ptrdiff_t slash = str_find(part, '/');
    if (slash > 0) {
        r.type = str_sub(part, 0, (size_t) slash);
        r.subtype = str_from(part, (size_t) slash + 1);
    } else if (str_is(part, "*")) {
        r.type = r.subtype = STR("*");
    }
    if (r.type.n == 0 || r.subtype.n == 0)
        return false;
    while (str_split(&rest, ';', &part)) {
        const ptrdiff_t equals = str_find(part, '=');
        if (equals > 0)
            set_parameter(&r, str_trim(str_sub(part, 0, (size_t) equals)),
                          unquote(str_trim(str_from(part, (size_t) equals + 1))));
    }
    *ret = r;
    return true;
}

static bool is_preferred(const struct media_range *a, const struct media_range *b)
{
    if (a->quality != b->quality)
        return a->quality > b->quality;
    const bool a_any = str_is(a->type, "*"), b_any = str_is(b->type, "*");
    if (a_any != b_any)
        return b_any;
    return !str_is(a->subtype, "*") && str_is(b->subtype, "*");
}

/* Keeps the order of the text among equals. */
static void insert_range(struct media_range *ranges, size_t n, const struct media_range *r)
{
    size_t at = n;
    for (; at > 0 && is_preferred(r, &ranges[at - 1]); at--)
        ranges[at] = ranges[at - 1];
    ranges[at] = *r;
}

static size_t parse_accept(struct str header, struct media_range ranges[MEDIA_MAX_RANGES])
{
    size_t n = 0;
    struct str rest = header, part;
    while (n < MEDIA_MAX_RANGES && str_split(&rest, ',', &part)) {
        struct media_range r;
        if (parse_range(part, &r))
            insert_range(ranges, n++, &r);
    }
    return n;
}

size_t media_parse_accept(struct arena *a, struct str header, struct media_range **ret_ranges)
{
    *ret_ranges = ARENA_ARRAY(a, struct media_range, MEDIA_MAX_RANGES);
    return parse_accept(header, *ret_ranges);
}

bool media_range_matches(const struct media_range *r, struct str type, struct str subtype)
{
    if (str_is(r->type, "*"))
        return str_is(r->subtype, "*");
    return str_eq_nocase(r->type, type) &&
           (str_is(r->subtype, "*") || str_eq_nocase(r->subtype, subtype));
}

/* ---- choosing ----------------------------------------------------------------------------- */

static bool matches_encoding(const struct media_range *r, enum media_encoding e)
{
    return media_range_matches(r, STR("application"), e == MEDIA_JSON ? STR("json") : STR("yaml"));
}

/* The types a native route lists, whatever their parameters: its router looks only at these. */
static bool matches_any_type(const struct media_range *r)
{
    return matches_encoding(r, MEDIA_JSON) || matches_encoding(r, MEDIA_YAML) ||
           media_range_matches(r, STR("application"), STR("vnd.kubernetes.protobuf"));
}

static int refuse_at_route(struct status *st, const char *types)
{
    (void) status_fail(st, 406, "NotAcceptable",
                       "406: Not Acceptable\n\nAvailable representations: %s", types);
    st->has_details = true;
    return -EINVAL;
}

static int refuse(struct status *st, const char *types)
{
    return status_fail(st, 406, "NotAcceptable", "only the following media types are accepted: %s",
                       types);
}

static int check_route(const struct media_range *ranges, size_t n, enum media_endpoint endpoint,
                       struct status *st)
{
    if (endpoint == MEDIA_CUSTOM)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (matches_any_type(&ranges[i]))
            return 0;
    return refuse_at_route(st, endpoint == MEDIA_NATIVE_LIST ? ACCEPTED_TYPES ", " STREAM_TYPES
                                                             : ACCEPTED_TYPES);
}

/* The form a range asks for; false when it is none of ours. */
static bool find_form(const struct media_range *r, struct media_choice *choice)
{
    choice->form = MEDIA_OBJECT;
    choice->version = STR_NONE;
    if (!r->has_transform)
        return true;
    if (!str_is(r->group, "meta.k8s.io"))
        return false;
    if (str_is(r->version, "v1"))
        choice->version = STR("v1");
    else if (str_is(r->version, "v1beta1"))
        choice->version = STR("v1beta1");
    else
        return false;
    if (str_is(r->as, "Table"))
        choice->form = MEDIA_TABLE;
    else if (str_is(r->as, "PartialObjectMetadata"))
        choice->form = MEDIA_PARTIAL;
    else if (str_is(r->as, "PartialObjectMetadataList"))
        choice->form = MEDIA_PARTIAL_LIST;
    else
        return false;
    return true;
}

static bool allows_stream(const struct media_range *r)
{
    return r->stream.n == 0 || str_is(r->stream, "watch");
}

static bool choose_form(const struct media_range *ranges, size_t n, bool is_watch,
                        struct media_choice *ret)
{
    for (size_t i = 0; i < n; i++) {
        const struct media_range *r = &ranges[i];
        struct media_choice c = {.is_pretty = r->is_pretty};
        if (r->quality == 0 || !allows_stream(r) || !find_form(r, &c))
            continue;
        if (matches_encoding(r, MEDIA_JSON))
            c.encoding = MEDIA_JSON;
        else if (!is_watch && matches_encoding(r, MEDIA_YAML))
            c.encoding = MEDIA_YAML;
        else
            continue;
        *ret = c;
        return true;
    }
    return false;
}

static int choose(struct str accept, enum media_endpoint endpoint, bool is_watch,
                  struct media_choice *ret_choice, struct status *st)
{
    if (str_trim(accept).n == 0) {
        *ret_choice = (struct media_choice){.encoding = MEDIA_JSON, .form = MEDIA_OBJECT};
        return 0;
    }
    struct media_range ranges[MEDIA_MAX_RANGES];
    const size_t n = parse_accept(accept, ranges);
    const int r = check_route(ranges, n, endpoint, st);
    if (r < 0)
        return r;
    if (!choose_form(ranges, n, is_watch, ret_choice))
        return refuse(st, is_watch ? STREAM_TYPES : ACCEPTED_TYPES);
    return 0;
}

int media_choose(struct str accept, enum media_endpoint endpoint, struct media_choice *ret_choice,
                 struct status *st)
{
    return choose(accept, endpoint, /* is_watch= */ false, ret_choice, st);
}

int media_choose_watch(struct str accept, enum media_endpoint endpoint,
                       struct media_choice *ret_choice, struct status *st)
{
    return choose(accept, endpoint, /* is_watch= */ true, ret_choice, st);
}

int media_choose_plain(struct str accept, enum media_endpoint endpoint,
                       enum media_encoding *ret_encoding, struct status *st)
{
    if (str_trim(accept).n == 0) {
        *ret_encoding = MEDIA_JSON;
        return 0;
    }
    struct media_range ranges[MEDIA_MAX_RANGES];
    const size_t n = parse_accept(accept, ranges);
    const int r = check_route(ranges, n, endpoint, st);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].has_transform || ranges[i].quality == 0 || ranges[i].stream.n > 0)
            continue;
        const bool is_json = matches_encoding(&ranges[i], MEDIA_JSON);
        if (!is_json && !matches_encoding(&ranges[i], MEDIA_YAML))
            continue;
        *ret_encoding = is_json ? MEDIA_JSON : MEDIA_YAML;
        return 0;
    }
    return refuse(st, ACCEPTED_TYPES);
}

bool media_names_protobuf(struct str accept)
{
    struct media_range ranges[MEDIA_MAX_RANGES];
    const size_t n = parse_accept(accept, ranges);
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(ranges[i].subtype, STR("vnd.kubernetes.protobuf")))
            return true;
    return false;
}

int media_choose_json(struct str accept, struct status *st)
{
    if (str_trim(accept).n == 0)
        return 0;
    struct media_range ranges[MEDIA_MAX_RANGES];
    const size_t n = parse_accept(accept, ranges);
    for (size_t i = 0; i < n; i++)
        if (matches_encoding(&ranges[i], MEDIA_JSON))
            return 0;
    return refuse_at_route(st, "application/json");
}

bool media_wants_aggregated_discovery(struct str accept, enum media_encoding *ret_encoding)
{
    struct media_range ranges[MEDIA_MAX_RANGES];
    const size_t n = parse_accept(accept, ranges);
    for (size_t i = 0; i < n; i++) {
        const struct media_range *r = &ranges[i];
        if (r->quality == 0 || !str_is(r->group, "apidiscovery.k8s.io") ||
            !str_is(r->version, "v2") || !str_is(r->as, "APIGroupDiscoveryList"))
            continue;
        const bool is_json = matches_encoding(r, MEDIA_JSON);
        if (!is_json && !matches_encoding(r, MEDIA_YAML))
            continue;
        *ret_encoding = is_json ? MEDIA_JSON : MEDIA_YAML;
        return true;
    }
    return false;
}

struct str media_content_type(enum media_encoding e)
{
    return e == MEDIA_YAML ? STR("application/yaml") : STR("application/json");
}

bool media_accepts_gzip(struct str accept_encoding)
{
    struct str rest = accept_encoding, part;
    while (str_split(&rest, ',', &part)) {
        struct str parameters = part, coding;
        if (!str_split(&parameters, ';', &coding) || !str_eq_nocase(str_trim(coding), STR("gzip")))
            continue;
        struct str q = str_trim(parameters);
        return !str_starts_with(q, STR("q=")) || parse_quality(str_from(q, 2)) > 0;
    }
    return false;
}

/* ---- bodies ------------------------------------------------------------------------------- */

static struct str without_parameters(struct str content_type)
{
    struct str rest = content_type, type;
    return str_split(&rest, ';', &type) ? str_trim(type) : STR("");
}

int media_refuse_body(struct status *st)
{
    return status_fail(
        st, 415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: %s",
        ACCEPTED_TYPES);
}

int media_body_encoding(struct str content_type, enum media_encoding *ret_encoding,
                        struct status *st)
{
    const struct str type = without_parameters(content_type);
    if (type.n == 0 || str_eq_nocase(type, STR("application/json")))
        *ret_encoding = MEDIA_JSON;
    else if (str_eq_nocase(type, STR("application/yaml")))
        *ret_encoding = MEDIA_YAML;
    else if (str_eq_nocase(type, STR("application/vnd.kubernetes.protobuf")))
        *ret_encoding = MEDIA_PROTOBUF;
    else
        return media_refuse_body(st);
    return 0;
}

static const struct {
    struct str type;
    enum media_patch patch;
    bool is_native_only;
} patch_types[] = {
    {STR("application/json-patch+json"), MEDIA_PATCH_JSON, false},
    {STR("application/merge-patch+json"), MEDIA_PATCH_MERGE, false},
    {STR("application/apply-patch+yaml"), MEDIA_PATCH_APPLY, false},
    {STR("application/strategic-merge-patch+json"), MEDIA_PATCH_STRATEGIC, true},
};

int media_patch_type(struct str content_type, bool is_native, enum media_patch *ret_patch,
                     struct status *st)
{
    const struct str type = without_parameters(content_type);
    for (size_t i = 0; i < N_ELEMENTS(patch_types); i++) {
        if (!str_eq_nocase(type, patch_types[i].type) ||
            (patch_types[i].is_native_only && !is_native))
            continue;
        *ret_patch = patch_types[i].patch;
        return 0;
    }
    if (!is_native)
        return status_fail(
            st, 415, "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: %s",
            CUSTOM_PATCH_TYPES);
    (void) status_fail(st, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
    st->has_details = true;
    return -EINVAL;
}
