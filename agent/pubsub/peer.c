/* SPDX-License-Identifier: Apache-2.0 */
/* One subscriber as its publisher sees it: the next packet is made when the socket has room for it,
 * so a peer that does not read holds up nobody. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "pubsub/frame.h"
#include "pubsub/publication_internal.h"
#include "pubsub/subscription_internal.h"

/* asked -> greeted -> dumping -> live; a peer leaves at any time. */
static void set_state(struct peer *peer, enum peer_state state)
{
    assert((int) state == (int) peer->state + 1);
    peer->state = state;
}

/* Past one entry, which may be forgotten then. */
static void move_past(struct peer *peer, struct entry *e)
{
    list_remove(&peer->position.link);
    peer->position.link.next = e->position.link.next;
    peer->position.link.previous = &e->position.link;
    e->position.link.next->previous = &peer->position.link;
    e->position.link.next = &peer->position.link;
    peer->position.sequence = e->position.sequence;
    if (!e->text && !publication_needs_deleted(peer->publication, e))
        publication_entry_free(peer->publication, e);
}

/* The next entry that this peer has to be told of, or NULL. Other peers on the way do not count. */
static struct entry *next_entry(struct peer *peer)
{
    struct publication *p = peer->publication;
    for (struct list *item = peer->position.link.next, *next; item != &p->order; item = next) {
        next = item->next;
        struct position *at = CONTAINER_OF(item, struct position, link);
        if (at->is_peer)
            continue;
        struct entry *e = CONTAINER_OF(at, struct entry, position);
        bool cannot_know = at->sequence <= peer->start || e->birth > peer->position.sequence;
        if (e->text || !cannot_know)
            return e;
        move_past(peer, e);
    }
    return NULL;
}

/* ---- packets -------------------------------------------------------------------------------- */

static int make_update(struct peer *peer, const struct entry *e, struct pubsub_frame *f)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO wire = {0};
    const struct json *value = json_parse_quick(a, str_range(e->text, e->n_text));
    int r = pubsub_value_to_wire(&wire, value, &peer->large);
    if (r < 0)
        return r;
    f->word = PUBSUB_UPDATE;
    f->value = buf_str(&wire);
    r = pubsub_frame_write(&peer->pending, f);
    if (r < 0)
        pubsub_large_remove(&peer->large);
    return r;
}

static int make_change(struct peer *peer, struct entry *e, struct pubsub_frame f)
{
    f.word = PUBSUB_DELETE;
    f.key = str_range(e->key, e->n_key);
    int r = e->text ? make_update(peer, e, &f) : pubsub_frame_write(&peer->pending, &f);
    if (r < 0)
        return r;
    move_past(peer, e);
    return 1;
}

/* 1: a packet is pending; 0: there is nothing to say. */
static int make_packet(struct peer *peer)
{
    struct publication *p = peer->publication;
    struct pubsub_frame f = {.topic = str_of(p->place.topic)};
    struct entry *e = NULL;
    if (peer->state == PEER_ASKED)
        return 0;
    if (peer->state == PEER_GREETED) {
        f.word = PUBSUB_HELLO;
        f.is_persistent = p->place.is_persistent;
        set_state(peer, PEER_DUMPING);
    } else if ((e = next_entry(peer))) {
        return make_change(peer, e, f);
    } else if (peer->state == PEER_DUMPING) {
        f.word = PUBSUB_COMPLETE;
        set_state(peer, PEER_LIVE);
    } else if (peer->restarted != p->restarted) {
        f.word = PUBSUB_RESTARTED;
        f.counter = peer->restarted = p->restarted;
    } else {
        return 0;
    }
    int r = pubsub_frame_write(&peer->pending, &f);
    return r < 0 ? r : 1;
}

/* Negative errno: the connection is no more. */
static int send_pending(struct peer *peer)
{
    if (send(peer->fd, peer->pending.p, peer->pending.n, MSG_NOSIGNAL) < 0)
        return -errno;
    peer->publication->n_packets++;
    buf_done(&peer->pending);
    /* From here on the files are the subscriber's. */
    buf_done(&peer->large.names);
    peer->pending = peer->large.names = (struct buf){0};
    return 0;
}

/* ---- directly ------------------------------------------------------------------------------- */

/* False when there is nothing to say. */
static bool tell_next(struct peer *peer)
{
    struct publication *p = peer->publication;
    struct subscription *s = peer->subscription;
    struct entry *e = next_entry(peer);
    if (e) {
        ARENA_AUTO a = arena_new();
        struct str key = arena_str(a, str_range(e->key, e->n_key));
        struct str text = e->text ? arena_str(a, str_range(e->text, e->n_text)) : STR_NONE;
        move_past(peer, e);
        if (text.p)
            (void) subscription_take_value(s, key, text);
        else
            subscription_take_delete(s, key);
    } else if (peer->state == PEER_DUMPING) {
        set_state(peer, PEER_LIVE);
        subscription_take_synchronized(s);
    } else if (peer->restarted != p->restarted) {
        peer->restarted = p->restarted;
        subscription_take_restarted(s, p->restarted);
    } else {
        return false;
    }
    return true;
}

/* A handler may free the subscription or the publication, and the peer with it. */
static bool flush_direct(struct peer *peer)
{
    struct subscription *s = peer->subscription;
    bool has_more = true;
    subscription_enter(s);
    for (int i = 0; i < PUBSUB_MAX_PACKETS_PER_TURN && has_more && s->peer == peer; i++) {
        has_more = tell_next(peer);
        s->n_packets += has_more;
    }
    return subscription_leave(s) && has_more && s->peer == peer;
}

bool peer_flush(struct peer *peer)
{
    if (peer->subscription)
        return flush_direct(peer);
    if (peer->is_stalled)
        return false;
    for (int i = 0; i < PUBSUB_MAX_PACKETS_PER_TURN; i++) {
        int r = peer->pending.n ? 1 : make_packet(peer);
        if (r == 0) {
            loop_fd_watch(peer->watch, LOOP_READABLE);
            return false;
        }
        if (r < 0) {
            log_warning("cannot make a packet; retrying",
                        LOG_TEXT("directory", peer->large.directory), LOG_ERRNO(r));
            peer->is_stalled = true;
            loop_timer_start(peer->timer, peer->publication->pubsub->retry_ms, 0);
            return false;
        }
        r = send_pending(peer);
        if (r == -EAGAIN || r == -EINTR) {
            loop_fd_watch(peer->watch, LOOP_READABLE | LOOP_WRITABLE);
            return false;
        }
        if (r < 0) {
            peer_free(peer);
            return false;
        }
    }
    return true;
}

/* ---- events --------------------------------------------------------------------------------- */

static bool is_good_request(const struct peer *peer, struct str packet)
{
    ARENA_AUTO a = arena_new();
    struct pubsub_frame f;
    return packet.n < PUBSUB_MAX_REQUEST_BYTES && pubsub_frame_read(a, packet, &f) == 0 &&
           f.word == PUBSUB_REQUEST && str_is(f.topic, peer->publication->place.topic);
}

static void enter_order(struct peer *peer)
{
    struct list *order = &peer->publication->order;
    list_append(order->next, &peer->position.link); /* before the first: at the head */
    peer->start = peer->publication->sequence;
}

/* False: the peer is gone. After its request a subscriber says nothing but that it leaves. */
static bool read_request(struct peer *peer)
{
    char packet[PUBSUB_MAX_REQUEST_BYTES];
    ssize_t n = recv(peer->fd, packet, sizeof(packet), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0 && peer->state == PEER_ASKED &&
        is_good_request(peer, str_range(packet, (size_t) n))) {
        loop_timer_stop(peer->timer);
        set_state(peer, PEER_GREETED);
        enter_order(peer);
        return true;
    }
    peer->publication->n_refused += n > 0;
    peer_free(peer);
    return false;
}

static void on_ready(void *arg, unsigned ready)
{
    struct peer *peer = arg;
    struct publication *p = peer->publication;
    if ((ready & LOOP_READABLE) && !read_request(peer))
        return;
    if (peer_flush(peer))
        loop_defer(p->pubsub->loop, &p->flush);
}

static void on_timeout(void *arg)
{
    struct peer *peer = arg;
    struct publication *p = peer->publication;
    peer->is_stalled = false;
    if (peer->state == PEER_ASKED)
        peer_free(peer);
    else if (peer_flush(peer))
        loop_defer(p->pubsub->loop, &p->flush);
}

struct peer *peer_new_direct(struct publication *p, struct subscription *s)
{
    struct peer *peer = NEW(struct peer);
    peer->publication = p;
    peer->subscription = s;
    peer->position.is_peer = true;
    list_init(&peer->position.link);
    peer->fd = -1;
    peer->state = PEER_DUMPING;
    list_append(&p->peers, &peer->link);
    p->n_peers++;
    enter_order(peer);
    loop_defer(p->pubsub->loop, &p->flush);
    return peer;
}

/* ---- life ----------------------------------------------------------------------------------- */

void peer_new(struct publication *p, int fd)
{
    struct peer *peer = NEW(struct peer);
    peer->publication = p;
    peer->position.is_peer = true;
    list_init(&peer->position.link);
    peer->large.directory = p->place.large;
    peer->fd = fd;
    peer->timer = loop_timer_new(p->pubsub->loop, on_timeout, peer);
    list_append(&p->peers, &peer->link);
    p->n_peers++;
    peer->watch = loop_fd_new(p->pubsub->loop, fd, on_ready, peer);
    if (!peer->watch) {
        peer_free(peer);
        return;
    }
    loop_fd_watch(peer->watch, LOOP_READABLE);
    loop_timer_start(peer->timer, p->pubsub->request_timeout_ms, 0);
}

void peer_free(struct peer *peer)
{
    struct publication *p = peer->publication;
    if (peer->subscription)
        peer->subscription->peer = NULL;
    list_remove(&peer->link);
    list_remove(&peer->position.link);
    p->n_peers--;
    pubsub_large_remove(&peer->large);
    buf_done(&peer->large.names);
    buf_done(&peer->pending);
    loop_timer_free(peer->timer);
    pubsub_socket_close(peer->watch, peer->fd);
    mem_free(peer);
    publication_reap(p);
}
