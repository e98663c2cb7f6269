/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects as Go's encoder makes them of pillar's types: every member is there, absent lists
 * are null, UUIDs and addresses are text, bytes are base64. */
#pragma once

#include "base/clock.h"
#include "json/json.h"

struct address;
struct subnet;

/* An object under construction. */
struct gotype {
    struct arena *arena;
    struct json *object;
    bool is_sparse; /* zero values are left out: `json:",omitempty"` */
};
struct gotype gotype_new(struct arena *a);
struct gotype gotype_sparse(struct arena *a);

/* Bad UTF-8 becomes U+FFFD. */
void gotype_text(struct gotype *g, const char *name, struct str value);
void gotype_int(struct gotype *g, const char *name, int64_t value);
void gotype_uint(struct gotype *g, const char *name, uint64_t value);
void gotype_bool(struct gotype *g, const char *name, bool value);
/* NULL: null. */
void gotype_value(struct gotype *g, const char *name, struct json *value);
/* What is no UUID is the nil one. */
void gotype_uuid(struct gotype *g, const char *name, struct str text);
void gotype_bytes(struct gotype *g, const char *name, struct str bytes);
void gotype_texts(struct gotype *g, const char *name, char *const *texts, size_t n);
/* 0 is Go's zero time. */
void gotype_time(struct gotype *g, const char *name, int64_t wall_us);
/* NULL or absent: empty. */
void gotype_address(struct gotype *g, const char *name, const struct address *address);
/* NULL: null. */
void gotype_subnet(struct gotype *g, const char *name, const struct subnet *subnet);
/* ErrorAndTime, embedded; absent or empty: none. */
void gotype_error(struct gotype *g, struct str error, int64_t now_us);

/* By themselves, for lists. */
struct json gotype_string(struct arena *a, struct str value);
struct str gotype_key(struct arena *a, struct str value);
struct json gotype_bytes_value(struct arena *a, struct str bytes);
struct json gotype_uuid_value(struct arena *a, struct str text);
struct str gotype_time_text(struct arena *a, int64_t wall_us);
