/* SPDX-License-Identifier: Apache-2.0 */
/* A publication and its peers, the subscribers that are connected: through a socket or, of the same
 * private context, directly.
 *
 * All entries stand in one list in the order in which they changed last, and so do the peers: each
 * stands right behind the last entry it was sent. What is behind a peer is what it has yet to be
 * told, however slow it is; a change moves the entry to the end and so behind everyone.
 *
 *     a(1)  c(3)  [peer 1]  b(5)  d(6, deleted)  [peer 2]  e(7)
 *
 * A deleted entry stays until every peer that may know the key has passed it. A peer cannot know a
 * key that was born behind where the peer stands, so what a slow one holds on to are keys that
 * lived when it last made progress, and not more. */
#pragma once

#include "base/map.h"
#include "pubsub/publication.h"
#include "pubsub/pubsub_internal.h"
#include "pubsub/value.h"

struct position {
    struct list link; /* in the publication's order */
    bool is_peer;
    uint64_t sequence; /* an entry's last change; of a peer, of the entry it passed last */
};

struct entry {
    struct position position;
    char *key;
    size_t n_key;
    char *text; /* NULL: deleted */
    size_t n_text;
    uint64_t birth; /* the sequence when the key appeared */
};

enum peer_state {
    PEER_ASKED,   /* connected; to say what it wants */
    PEER_GREETED, /* its request was good; to be told hello */
    PEER_DUMPING, /* to be sent everything, then complete */
    PEER_LIVE,
};

struct peer {
    struct position position;
    struct list link; /* in the publication's peers */
    struct publication *publication;
    struct subscription *subscription; /* NULL: through a socket */
    enum peer_state state;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;  /* waits for the request, later for disk space */
    bool is_stalled;           /* until the timer says to try again */
    uint64_t start;            /* the sequence when it connected */
    int64_t restarted;         /* sent last */
    struct buf pending;        /* the packet that the socket had no room for */
    struct pubsub_large large; /* files of that packet */
};

struct publication {
    struct pubsub *pubsub;
    struct list link;   /* in a private context */
    unsigned n_entered; /* our functions on the stack that need it afterwards */
    bool is_freed;      /* meanwhile, by a handler of a subscription */
    struct pubsub_place place;
    struct map entries; /* deleted ones too */
    struct list order;
    struct list peers;
    size_t n_peers, n_deleted, n_bytes;
    uint64_t sequence;
    int64_t restarted;
    uint64_t n_packets, n_refused;
    int fd; /* -1: there is no socket */
    struct loop_fd *watch;
    struct loop_timer *retry; /* accepting, when there were no descriptors */
    struct loop_deferred flush;
};

/* Takes the descriptor. */
void peer_new(struct publication *p, int fd);
void peer_free(struct peer *peer);
/* A subscription of the same context. */
struct peer *peer_new_direct(struct publication *p, struct subscription *s);
/* Sends what it can. True: there is more, and room for it, but others must have their turn. The
 * peer may be gone afterwards. */
bool peer_flush(struct peer *peer);

/* The publication of a private context; NULL: not yet. */
struct publication *publication_find(const struct pubsub *ps, const char *id);

/* Whether a peer still has to be told that this entry is no more. */
bool publication_needs_deleted(const struct publication *p, const struct entry *e);
/* Forgets what nobody needs to be told. */
void publication_reap(struct publication *p);
void publication_entry_free(struct publication *p, struct entry *e);
