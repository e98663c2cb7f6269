/* SPDX-License-Identifier: Apache-2.0 */
/* An audit policy, the judgement by it, and the line of an event that holds the same bytes. */
#include "api/audit/event.h"
#include "api/audit/policy.h"
#include "base/alloc.h"
#include "json/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct audit_policy *p, struct str text)
{
    struct user user = {.name = text, .groups = &text, .n_groups = 1};
    struct audit_record path = {.user = &user, .verb = STR("get"), .uri = text};
    struct audit_record object = {.user = &user,
                                  .verb = STR("get"),
                                  .is_resource = true,
                                  .group = STR(""),
                                  .resource = STR("secrets"),
                                  .subresource = text,
                                  .namespace = text,
                                  .name = text};
    audit_policy_judge(p, &path);
    audit_policy_judge(p, &object);
    if (object.level > AUDIT_METADATA)
        abort();
}

/* Whatever the bytes, the event is one line of valid JSON; only a body may nest as deep as our own
 * parser goes, and so be too deep for it inside the event. */
static void write_event(struct str text, enum audit_level level)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    struct audit_second second = {0};
    struct user user = {.name = text};
    struct audit_record r = {.id = "5d4f1f9a-6f0c-4d3e-9a77-0123456789ab",
                             .level = level,
                             .uri = text,
                             .user = &user,
                             .user_agent = text,
                             .request_body = text,
                             .code = 200};
    audit_event_write(&b, &second, &r, AUDIT_RESPONSE_COMPLETE);
    if (str_find(buf_str(&b), '\n') != (ptrdiff_t) b.n - 1)
        abort();
    if (level == AUDIT_METADATA && !json_parse_quick(a, buf_str(&b)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_range((const char *) data, size);
    struct audit_policy *p = NULL;
    char *error = NULL;
    if (audit_policy_parse("p.yaml", text, &p, &error) == 0)
        judge(p, text);
    else if (!error)
        abort();
    mem_free(error);
    audit_policy_free(p);
    write_event(text, AUDIT_METADATA);
    write_event(text, AUDIT_REQUEST);
    return 0;
}
