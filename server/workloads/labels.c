/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/labels.h"

#include "base/alloc.h"

/* The object, its members, then their bytes. */
struct packed {
    struct json object;
    struct json_member members[];
};

static struct json pack_text(char **at, struct str s)
{
    char *begin = *at;
    memcpy(begin, s.p, s.n);
    *at += s.n;
    return json_string(str_range(begin, s.n));
}

struct json *labels_pack(const struct json *labels)
{
    size_t n = 0, n_bytes = 0;
    JSON_FOR_EACH_MEMBER (labels, m)
        if (json_is(&m->value, JSON_STRING)) {
            n++;
            n_bytes += m->key.n + m->value.n;
        }
    if (!n)
        return NULL;
    struct packed *p = mem_alloc(sizeof(*p) + n * sizeof(struct json_member) + n_bytes);
    char *at = (char *) &p->members[n];
    p->object = json_object();
    p->object.members = p->members;
    JSON_FOR_EACH_MEMBER (labels, m)
        if (json_is(&m->value, JSON_STRING)) {
            struct json_member *to = &p->members[p->object.n++];
            to->key = pack_text(&at, json_str(&m->key));
            to->value = pack_text(&at, json_str(&m->value));
        }
    return &p->object;
}

void labels_free(struct json *labels)
{
    if (labels)
        mem_free(CONTAINER_OF(labels, struct packed, object));
}

bool labels_equal(const struct json *a, const struct json *b)
{
    if (!json_count(a) || !json_count(b))
        return json_count(a) == json_count(b);
    return json_equal(a, b);
}
