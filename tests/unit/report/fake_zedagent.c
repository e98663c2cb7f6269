/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_zedagent.h"

const struct zedagent_facts *zedagent_facts(const struct zedagent *z)
{
    return &z->facts;
}

const struct items *zedagent_items(const struct zedagent *z)
{
    return z->items;
}

void zedagent_listen(struct zedagent *z, struct zedagent_listener *l)
{
    z->listener = l;
    list_init(&l->link);
}

void zedagent_unlisten(struct zedagent_listener *l)
{
    list_remove(&l->link);
}

struct node_link *zedagent_link(struct zedagent *z)
{
    return z->link;
}
