/* SPDX-License-Identifier: Apache-2.0 */
/* YAML in, JSON values out: libyaml's events with the scalar rules of sigs.k8s.io/yaml (go-yaml, YAML
 * 1.1: yes/no/on/off are booleans only as go-yaml v2 has them, octal, sexagesimal not). */
#pragma once

#include "json/json.h"

#define YAML_MAX_ALIAS_NODES 100000 /* values that aliases may add in all, against bombs */

/* One document (the first of several; ret as json_parse(), errors in go-yaml's words where we can). */
int yaml_parse(struct arena *a, struct str text, struct json_parse_result *ret);
