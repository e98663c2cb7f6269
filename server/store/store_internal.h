/* SPDX-License-Identifier: Apache-2.0 */
/* The store's inside, shared by its own files alone. */
#pragma once

#include <pthread.h>

#include "store/disk.h"
#include "store/index.h"
#include "store/sweep.h"

/* A group ends at either; one write always fits. */
#define GROUP_MAX_WRITES 512
#define GROUP_MAX_BYTES (4 * 1024 * 1024)

/* Useless rows are deleted when the writer has nothing else to do; once this many wait, each group
 * takes some along. */
#define SWEEP_BACKLOG 8192
#define SWEEP_BATCH 512
/* Beyond this many the rest is left for the next start. */
#define SWEEP_AT_CLOSE 16384
#define UPKEEP_INTERVAL_MS 1000

#define HISTORY_MAX_AGE_MS (5 * 60 * 1000)
#define HISTORY_MAX_BYTES (64 * 1024 * 1024)

struct store {
    char *path;
    const struct clock *clock;
    int64_t history_max_age_us;
    int64_t history_max_bytes;

    struct index index;
    struct disk *disk;
    const struct store_cipher *cipher;

    /* What is asked of the writer; under queue_lock. */
    pthread_mutex_t queue_lock;
    pthread_cond_t queue_cond;   /* something was asked */
    pthread_cond_t compact_cond; /* a compaction was done */
    struct list queue;
    int64_t compact_before;      /* the newest asked for */
    int64_t compact_done_before; /* the newest done */
    bool is_closing;

    pthread_mutex_t followers_lock; /* held while followers are called */
    struct list followers;

    /* The writer's own. */
    pthread_t writer;
    struct sweep sweep;
    struct buf sealed;  /* room for one row */
    int64_t disk_floor; /* as the file has it */
    bool is_history_due;

    /* Keeps the writer out while the last stretch of the write-ahead log is moved. */
    pthread_mutex_t commit_lock;

    pthread_t checkpointer;
    pthread_mutex_t checkpoint_lock;
    pthread_cond_t checkpoint_cond;
    bool checkpoint_wanted, checkpoint_ends;

    atomic_llong n_commits, n_writes;
    atomic_bool is_full;
};

/* Thread bodies; the argument is the store. */
void *writer_run(void *store);
void *checkpointer_run(void *store);
/* Asks the checkpointer to work, or to end. */
void checkpointer_wake(struct store *s, bool end);
