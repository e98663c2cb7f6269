/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoDevice.assignableAdapters -> status.ports, which its configuration is composed with. */
#include "composer/composer.h"
#include "reports/derive.h"
#include "reports/words.h"

#define MAX_PORTS 256

static void clean(struct arena *a, struct json *port, const char *key)
{
    const struct str text = json_get_str(port, str_of(key));
    if (text.n)
        derive_text(a, port, key, words_clean(a, text, WORDS_MAX_NAME));
}

/* As many adapters as a machine may have; what a device sends is bounded by its bytes alone. */
static Eve__Info__ZInfoDevice bounded(struct arena *a, const Eve__Info__ZInfoDevice *m)
{
    Eve__Info__ZInfoDevice copy = *m;
    size_t n_left = MAX_PORTS;
    copy.n_assignableadapters = MIN(m->n_assignableadapters, (size_t) MAX_PORTS);
    copy.assignableadapters = ARENA_ARRAY(a, Eve__Info__ZioBundle *, copy.n_assignableadapters);
    for (size_t i = 0; i < copy.n_assignableadapters; i++) {
        Eve__Info__ZioBundle *bundle = ARENA_NEW(a, Eve__Info__ZioBundle);
        *bundle = *m->assignableadapters[i];
        bundle->n_members = MIN(bundle->n_members, n_left);
        n_left -= bundle->n_members;
        copy.assignableadapters[i] = bundle;
    }
    return copy;
}

void derive_ports(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    static const char *const texts[] = {"label", "group", "interface"};
    struct arena *a = d->arena;
    struct json list = json_array();
    /* While it boots a device lists none: what it has is what it had. */
    if (!m->n_assignableadapters)
        return;
    const Eve__Info__ZInfoDevice info = bounded(a, m);
    JSON_FOR_EACH_ITEM (json_get(compose_report(a, &info), STR("ports")), port) {
        for (size_t i = 0; i < N_ELEMENTS(texts); i++)
            clean(a, port, texts[i]);
        if (json_get_str(port, STR("label")).n && json_count(&list) < MAX_PORTS)
            (void) json_push(a, &list, *port);
    }
    (void) json_set(a, d->status, STR("ports"), list);
}
