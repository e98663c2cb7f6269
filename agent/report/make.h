/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of messages from parts of topics. Strings are copied into the world's arena; what is absent
 * or of another type becomes the field's default. */
#pragma once

#include "eve/common.pb-c.h"
#include "eve/info.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "protobuf/message.h"
#include "report/world.h"

/* MAKE(w, Eve__Info__ZInfoApp, eve__info__zinfo_app) */
#define MAKE(w, type, prefix) \
    ({ \
        type *make_it = arena_alloc((w)->arena, sizeof(type)); \
        prefix##__init(make_it); \
        make_it; \
    })
/* Appends to the repeated field of m. */
#define PUSH(w, m, field, item) \
    do { \
        __auto_type push_item = (item); \
        (m)->field = arena_grow((w)->arena, (m)->field, (m)->n_##field, sizeof(*(m)->field)); \
        (m)->field[(m)->n_##field++] = push_item; \
    } while (0)
/* The member, by literal name. */
#define TEXT(w, object, name) make_text((w), json_get_str((object), STR(name)))
#define NUMBER(object, name) ((uint64_t) make_number((object), STR(name)))
#define FLAG(object, name) json_get_bool((object), STR(name), false)
#define TIME(w, object, name) make_time((w), node_json_time_us(json_get((object), STR(name))))

/* Never NULL. */
char *make_text(struct world *w, struct str s);
/* Also of a number with a fraction; 0 when it is none. */
int64_t make_number(const struct json *object, struct str name);
double make_double(const struct json *object, struct str name);
/* NULL when 0. */
Google__Protobuf__Timestamp *make_time(struct world *w, int64_t wall_us);
/* Seconds that something has lasted, where the API has a time. */
Google__Protobuf__Timestamp *make_duration(struct world *w, int64_t us);
/* Bytes as base64, or already text with colons. */
char *make_mac(struct world *w, const struct json *value);
struct str mac_text(struct arena *a, const unsigned char mac[6]);
/* `a` or `{"Addr":a}` for each, without empty ones. */
size_t make_texts(struct world *w, const struct json *list, const char *member, char ***ret);
/* SwState of EVE's services. */
Eve__Info__ZSwState make_state(int64_t sw_state);
/* ErrorDescription, embedded in the object; NULL: none. */
Eve__Info__ErrorInfo *make_error(struct world *w, const struct json *object);
/* TestResults, embedded: also of a success. */
Eve__Info__ErrorInfo *make_test_results(struct world *w, const struct json *object);
Eve__Info__ErrorInfo *make_error_text(struct world *w, struct str text);
/* Key of DiskMetric and AppDiskMetric. */
struct str make_path_key(struct world *w, struct str path);
/* Rounded to the nearest MiB. */
uint64_t make_mebibytes(uint64_t bytes);
bool make_is_nil_uuid(struct str text);
