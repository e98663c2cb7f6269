/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values out as YAML, as sigs.k8s.io/yaml prints them: block style, keys in natural order,
 * lists at the depth of their key, strings plain wherever they read back as strings. */
#pragma once

#include "json/json.h"

/* Appends one document, with its line end. */
void yaml_write(struct buf *b, const struct json *v);
