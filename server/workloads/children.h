/* SPDX-License-Identifier: Apache-2.0 */
/* The Applications of an owner: making them, taking them away, adopting those that fit and letting
 * go of those that do not any more. */
#pragma once

#include "workloads/run.h"

/* Looks at Applications of which it is not known what became of a request, and at those that have
 * been going for long. */
int children_settle(struct run *run);
/* Adopts and releases by labels. */
int children_claim(struct run *run);

/* An Application of the template, to be changed by the kind and then made. */
struct json *children_draft(struct run *run, struct str name, const struct json *template,
                            struct str hash);
/* 0; > 0: not now, the look ends here; < 0: refused or failed, run->failure says why. */
int children_create(struct run *run, const struct json *draft);
int children_delete(struct run *run, const struct index_application *app);

/* Ready for spec.minReadySeconds; asks for another look when that is only a matter of time. */
bool children_is_available(struct run *run, const struct index_application *app);
/* Available, or nobody can tell because its device is out of touch. */
bool children_stands(struct run *run, const struct index_application *app);
/* Made from the newest template. */
bool children_is_new(const struct run *run, const struct index_application *app);
/* Those that go first come first: not scheduled, not ready, young. */
void children_sort_to_delete(struct index_application **apps, size_t n);

/* Our reference among the owners of an object, as a controller's. */
struct json children_reference(struct run *run);
/* Adds our reference to the owners of the object, which has no controller; *object becomes what was
 * answered. */
int children_adopt(struct run *run, const struct object_place *at, struct json **object);
struct str children_controller_uid(const struct json *object);
/* Whether a request that failed like this may have had its effect all the same. */
bool children_is_open(int error);
