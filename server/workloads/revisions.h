/* SPDX-License-Identifier: Apache-2.0 */
/* The templates an owner has had, as ControllerRevisions "<owner>-<hash>": the newest has the
 * highest number, an old template that returns has its revision again. */
#pragma once

#include "workloads/run.h"

/* Finds or makes the revision of the template: run->update. */
int revisions_sync(struct run *run);
/* Deletes the oldest that no Application uses, down to spec.revisionHistoryLimit. */
int revisions_trim(struct run *run);
/* NULL when there is none. */
const struct index_revision *revisions_by_name(const struct run *run, struct str name);
const struct index_revision *revisions_by_hash(const struct run *run, struct str hash);
/* The template itself. */
int revisions_template(struct run *run, const struct index_revision *revision,
                       const struct json **ret_template);
