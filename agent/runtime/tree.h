/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are made whole or not at all, and trees whose content is not to be trusted. */
#pragma once

#include "base/buf.h"

/* As openat2(2) with RESOLVE_IN_ROOT: no link and no ".." leads out of root_fd. AT_FDCWD: a path of
 * ours, as open(2) takes it. Negative errno. */
int tree_open(int root_fd, const char *path, int flags);
/* A regular file of at most max_bytes, whole. -EFBIG, -EINVAL: no regular file. */
int tree_read(int root_fd, const char *path, size_t max_bytes, struct buf *ret);
/* Removes what the name means, with all below it; nothing there is fine. Links are removed, never
 * followed. */
int tree_remove(int parent_fd, const char *name);
/* Everything in the directory, not itself. */
int tree_empty(int directory_fd);
/* mkdir -p with mode 0700. */
int tree_make(const char *path);

/* A directory under a temporary name (".new-...") beside its final one. */
struct tree_draft {
    char *parent, *name; /* heap */
    char *path;          /* of the draft */
};
int tree_draft_begin(struct tree_draft *d, const char *parent, const char *name);
/* Syncs what was written and renames it. -EEXIST: the name is taken. */
int tree_draft_commit(struct tree_draft *d);
/* Removes what was not committed. */
void tree_draft_done(struct tree_draft *d);
/* Renames it away, so that the name is free at once, then removes it. */
int tree_discard(const char *parent, const char *name);
/* What an earlier process left under temporary names. */
void tree_sweep(const char *parent);
