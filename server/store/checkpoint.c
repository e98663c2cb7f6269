/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the write-ahead log into the file beside the writer. */
#include "store/store_internal.h"

void checkpointer_wake(struct store *s, bool end)
{
    (void) pthread_mutex_lock(&s->checkpoint_lock);
    s->checkpoint_wanted = true;
    s->checkpoint_ends |= end;
    (void) pthread_cond_signal(&s->checkpoint_cond);
    (void) pthread_mutex_unlock(&s->checkpoint_lock);
}

static bool wait_for_work(struct store *s)
{
    (void) pthread_mutex_lock(&s->checkpoint_lock);
    while (!s->checkpoint_wanted)
        (void) pthread_cond_wait(&s->checkpoint_cond, &s->checkpoint_lock);
    s->checkpoint_wanted = false;
    bool ends = s->checkpoint_ends;
    (void) pthread_mutex_unlock(&s->checkpoint_lock);
    return !ends;
}

/* The log starts over only when all of it has been moved, which a busy writer would never let
 * happen: the bulk goes beside it, what came meanwhile goes while it waits. */
void *checkpointer_run(void *store)
{
    struct store *s = store;
    while (wait_for_work(s)) {
        disk_checkpoint(s->disk);
        (void) pthread_mutex_lock(&s->commit_lock);
        disk_checkpoint(s->disk);
        (void) pthread_mutex_unlock(&s->commit_lock);
    }
    return NULL;
}
