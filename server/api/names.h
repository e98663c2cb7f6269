/* SPDX-License-Identifier: Apache-2.0 */
/* How names, label keys and label values must look, in kube-apiserver's words. */
#pragma once

#include "base/arena.h"

#define NAME_ERRORS_MAX 4

/* What is wrong with a name; n 0: nothing. The texts are static or in the arena given. */
struct name_errors {
    struct str text[NAME_ERRORS_MAX];
    size_t n;
};

/* RFC 1123 subdomain: most names. */
struct name_errors name_subdomain(struct arena *a, struct str name);
/* RFC 1123 label: namespaces. */
struct name_errors name_label(struct arena *a, struct str name);
/* RFC 1035 label: services and CRD names. */
struct name_errors name_label_1035(struct arena *a, struct str name);
/* A label or annotation key, with its optional prefix. */
struct name_errors name_qualified(struct arena *a, struct str key);
struct name_errors name_label_value(struct arena *a, struct str value);
/* Fits into a URL path: RBAC names, and what every name in a path must satisfy. */
struct name_errors name_path_segment(struct arena *a, struct str name);

/* All of them joined with "; ", STR_NONE when there is none. */
struct str name_errors_text(struct arena *a, const struct name_errors *e);
struct str name_check_qualified(struct arena *a, struct str key);
struct str name_check_label_value(struct arena *a, struct str value);
