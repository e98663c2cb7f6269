/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in kinds and one custom one, for tests. */
#pragma once

#include "api/registry.h"

/* The built-in kinds; fails the test when they do not compile. */
struct registry *fixture_registry(void);
/* ... and those of a CRD manifest. */
struct registry *fixture_registry_with(const char *crd_json);
/* By the path of its collection: "core/v1/configmaps", "apps/v1/controllerrevisions". */
const struct kind *fixture_kind(const struct registry *r, const char *path);
/* JSON with single quotes for double ones. */
struct json *fixture_json(struct arena *a, const char *text);
