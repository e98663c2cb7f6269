/* SPDX-License-Identifier: Apache-2.0 */
/* YAML in, JSON values out: libyaml's events with the scalar rules of sigs.k8s.io/yaml, which are
 * those of go-yaml v2 (YAML 1.1: y, yes, on and their opposites are booleans, also as keys; 0777 is
 * octal; no sexagesimals; timestamps stay strings) followed by a trip through JSON, so 1.0 is the
 * integer 1. */
#pragma once

#include "json/json.h"

/* What aliases may add in all, against bombs. */
#define YAML_MAX_ALIAS_NODES 100000
#define YAML_MAX_ALIAS_BYTES ((size_t) 8 * 1024 * 1024)
#define YAML_MAX_TAG_DIRECTIVES 64

/* One document (the first of several; an empty text is null). Returns as json_parse(); errors in
 * go-yaml's words ("yaml: line 2: ..."), before which Kubernetes writes "error converting YAML to
 * JSON: " in some places and nothing in others. Duplicates carry their yaml_message unless the text
 * is plain JSON without any, which is read by json_parse(). */
int yaml_parse(struct arena *a, struct str text, struct json_parse_result *ret);
