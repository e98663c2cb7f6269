/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that several kinds share, each adding causes in kube-apiserver's words. */
#pragma once

#include "api/object_meta.h"
#include "api/quantity.h"
#include "schema/causes.h"

/* "Required value" when the member of object is absent or an empty string, list or map. */
void check_required(struct causes *causes, const struct field_path *at, const struct json *object,
                    struct str member);
/* One of the values, in the order messages show them; an absent value is fine. */
void check_supported(struct causes *causes, const struct field_path *at, const struct json *value,
                     const struct str *supported, size_t n_supported);
/* The keys of ConfigMaps and Secrets. */
struct name_errors check_data_key(struct arena *a, struct str key);
void check_label_selector(struct causes *causes, const struct field_path *at,
                          const struct json *selector);
/* A label's key, as conditions name it. */
void check_label_name(struct causes *causes, const struct field_path *at, struct str name);

/* Quantities stand in canonical form by now; anything else counts as zero. */
struct quantity check_quantity(const struct json *value);
void check_positive(struct causes *causes, const struct field_path *at, const struct json *value);
/* Not negative, and an integer where the resource counts things. */
void check_resource_amount(struct causes *causes, const struct field_path *at, struct str resource,
                           const struct json *value);

/* Of custom resources, where a quantity may be a number. False: it is none, or absent. */
bool check_read_amount(const struct json *value, struct quantity *ret);
/* An absent one is fine; any other is more than zero. */
void check_amount(struct causes *causes, const struct field_path *at, const struct json *value);

/* ---- names of resources (cpu, requests.storage, example.org/gpu) ---- */

bool resource_is_native(struct str name);
bool resource_is_standard_quota(struct str name);
/* May more be promised than there is? */
bool resource_can_overcommit(struct str name);
void check_resource_name(struct causes *causes, const struct field_path *at, struct str name);
void check_container_resource_name(struct causes *causes, const struct field_path *at,
                                   struct str name);
void check_quota_resource_name(struct causes *causes, const struct field_path *at, struct str name);

/* ---- small conveniences ---- */

bool list_has(const struct json *list, struct str wanted);
/* Members equal; absent, null and empty are the same. */
bool same_member(const struct json *a, const struct json *b, struct str member);
/* "" instead of nothing, as Go holds strings. */
struct json shown(struct str text);
