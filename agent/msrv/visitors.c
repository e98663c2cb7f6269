/* SPDX-License-Identifier: Apache-2.0 */
/* How often an address may ask for /metrics/: a bucket of tokens each, forgotten when idle. */
#include "msrv/msrv_internal.h"

const struct msrv_rate msrv_default_rate = {.per_second = 1, .burst = 10, .idle_timeout_s = 240};

struct visitor {
    struct list by_age;
    struct bucket bucket;
    int64_t seen_ms;
    size_t n_address;
    char address[];
};

void visitors_init(struct visitors *v)
{
    *v = (struct visitors){.rate = msrv_default_rate};
    list_init(&v->by_age);
}

static void forget(struct visitors *v, struct visitor *one)
{
    (void) map_remove(&v->by_address, str_range(one->address, one->n_address));
    list_remove(&one->by_age);
    mem_free(one);
}

void visitors_done(struct visitors *v)
{
    LIST_FOR_EACH (&v->by_age, item)
        forget(v, CONTAINER_OF(item, struct visitor, by_age));
    map_done(&v->by_address);
}

void visitors_set_rate(struct visitors *v, const struct msrv_rate *rate)
{
    v->rate = *rate;
    LIST_FOR_EACH (&v->by_age, item) {
        struct bucket *b = &CONTAINER_OF(item, struct visitor, by_age)->bucket;
        b->burst = rate->burst;
        b->per_second = rate->per_second;
        b->n_left = MIN(b->n_left, b->burst);
    }
}

/* The idle ones, and the one least lately seen when there are too many. */
static void make_room(struct visitors *v, int64_t now_ms)
{
    LIST_FOR_EACH (&v->by_age, item) {
        struct visitor *one = CONTAINER_OF(item, struct visitor, by_age);
        bool is_idle = now_ms - one->seen_ms > (int64_t) v->rate.idle_timeout_s * 1000;
        if (!is_idle && v->by_address.n_items < MSRV_MAX_VISITORS)
            break;
        forget(v, one);
    }
}

static struct visitor *find_or_add(struct visitors *v, struct str address, int64_t now_ms)
{
    struct visitor *one = map_get(&v->by_address, address);
    if (one)
        return one;
    one = mem_zalloc(sizeof(*one) + address.n);
    one->n_address = address.n;
    memcpy(one->address, address.p, address.n);
    bucket_init(&one->bucket, v->rate.burst, v->rate.per_second, now_ms);
    list_init(&one->by_age);
    (void) map_put(&v->by_address, str_range(one->address, one->n_address), one);
    return one;
}

bool visitors_admit(struct visitors *v, struct str address, int64_t now_ms)
{
    make_room(v, now_ms);
    struct visitor *one = find_or_add(v, address, now_ms);
    one->seen_ms = now_ms;
    list_remove(&one->by_age);
    list_append(&v->by_age, &one->by_age);
    bucket_fill(&one->bucket, now_ms);
    return bucket_take(&one->bucket);
}

void metrics_answer(struct request *r)
{
    struct str address = str_sub(r->caller, 0, (size_t) str_find_last(r->caller, ':'));
    if (!visitors_admit(&r->msrv->visitors, address, msrv_now_ms(r->msrv))) {
        answer_error(r, 429, STR("Too Many Requests"));
        return;
    }
    if (r->is_body_cut)
        answer_error(r, 413, STR("Request Entity Too Large"));
    else
        r->answer.is_proxied = true;
}
