/* SPDX-License-Identifier: Apache-2.0 */
#include "api/list_options.h"

#include <errno.h>

static int parse_selectors(struct call *c, struct selector *ret)
{
    struct str labels = request_parameter(&c->in.query, "labelSelector");
    struct str fields = request_parameter(&c->in.query, "fieldSelector");
    struct str error = STR_NONE;
    if (labels.n > SELECTOR_MAX_BYTES || fields.n > SELECTOR_MAX_BYTES)
        return status_bad_request(&c->status, "the selector is longer than %zu bytes",
                                  SELECTOR_MAX_BYTES);
    if (selector_parse_labels(c->arena, labels, ret, &error) < 0 ||
        selector_parse_fields(c->arena, fields, c->kind, ret, &error) < 0)
        return status_bad_request(&c->status, "%.*s", STR_ARG(error));
    return 0;
}

static int parse_number(struct call *c, const char *name, int64_t *ret)
{
    struct str text = request_parameter(&c->in.query, name);
    *ret = 0;
    if (text.n && str_to_i64(text, ret) < 0)
        return status_bad_request(&c->status, "strconv.ParseInt: parsing %.*s: invalid syntax",
                                  STR_ARG(status_quote(c->arena, text)));
    return 0;
}

int list_options_revision(struct call *c, int64_t *ret_revision)
{
    struct str text = request_parameter(&c->in.query, "resourceVersion");
    *ret_revision = -1;
    if (!text.n)
        return 0;
    if (str_to_i64(text, ret_revision) < 0 || *ret_revision < 0 || text.p[0] == '+')
        return status_bad_request(&c->status,
                                  "invalid resource version: resourceVersion: Invalid value: %.*s: "
                                  "strconv.ParseUint: parsing %.*s: invalid syntax",
                                  STR_ARG(status_quote(c->arena, text)),
                                  STR_ARG(status_quote(c->arena, text)));
    return 0;
}

static void check_match(struct call *c, const struct list_options *o, bool is_watch,
                        struct causes *causes)
{
    static const struct str list_values[] = {{"Exact", 5}, {"NotOlderThan", 12}, {"", 0}};
    static const struct str watch_values[] = {{"NotOlderThan", 12}};
    struct field_path at = FIELD_NAME(NULL, STR("resourceVersionMatch"));
    struct str match = request_parameter(&c->in.query, "resourceVersionMatch");
    struct json value = json_string(match.p ? match : STR(""));
    if (is_watch) {
        if (match.n && !o->has_initial_events)
            causes_add(
                causes, CAUSE_FORBIDDEN, &at, NULL,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        if (o->has_initial_events && o->match != MATCH_NOT_OLDER)
            causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                       "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        if (o->has_initial_events && match.n && o->match != MATCH_NOT_OLDER)
            causes_add_not_supported(causes, &at, &value, watch_values, 1);
        return;
    }
    if (o->has_initial_events)
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("sendInitialEvents")), NULL,
                   "sendInitialEvents is forbidden for list");
    if (!match.n)
        return;
    if (o->continue_token.n)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "resourceVersionMatch is forbidden when continue is provided");
    else if (o->revision < 0)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (o->match == MATCH_UNSET)
        causes_add_not_supported(causes, &at, &value, list_values, N_ELEMENTS(list_values));
    if (o->match == MATCH_EXACT && o->revision == 0)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
}

int list_options_parse(struct call *c, bool is_watch, struct list_options *ret)
{
    struct list_options o = {0};
    struct str match = request_parameter(&c->in.query, "resourceVersionMatch");
    o.match = str_is(match, "Exact")          ? MATCH_EXACT
              : str_is(match, "NotOlderThan") ? MATCH_NOT_OLDER
                                              : MATCH_UNSET;
    o.continue_token = request_parameter(&c->in.query, "continue");
    struct str initial = request_parameter(&c->in.query, "sendInitialEvents");
    o.has_initial_events = initial.n > 0;
    o.sends_initial_events = request_flag(&c->in.query, "sendInitialEvents");
    o.allows_bookmarks = request_flag(&c->in.query, "allowWatchBookmarks");
    int r = parse_number(c, "limit", &o.limit);
    if (r == 0)
        r = parse_number(c, "timeoutSeconds", &o.timeout_s);
    if (r == 0)
        r = list_options_revision(c, &o.revision);
    if (r < 0)
        return r;
    struct causes causes;
    causes_init(&causes, c->arena);
    check_match(c, &o, is_watch, &causes);
    if (causes.n)
        return status_invalid(&c->status, STR("meta.k8s.io"), STR("ListOptions"), STR(""), &causes);
    r = parse_selectors(c, &o.selector);
    o.limit = MAX(o.limit, (int64_t) 0);
    *ret = o;
    return r;
}
