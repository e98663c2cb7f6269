/* SPDX-License-Identifier: Apache-2.0 */
/* What must outlive the process: up to which record all is written, when each device was last seen
 * and what it said of itself, and how new what is known of each object is. One file, written whole:
 *
 *     "sethrep1"  u64 id
 *     u32 n       n x { uuid, i64 last seen, u8 state, u16 reasons }
 *     u32 n       n x { u8 kind, uuid device, uuid object, i64 newest, u8 fact, u16 n, message }
 *     SHA-256 of all before
 *
 * in little-endian order. A damaged file is as good as none: everything stored is taken up again.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "pki/file.h"
#include "reports/reports_internal.h"

#define MAGIC STR("sethrep1")
#define MAX_FILE_BYTES ((size_t) 512 * 1024 * 1024)
/* How much of it may be written in a second on the average. */
#define BYTES_PER_SECOND (256 * 1024)

/* ---- writing -------------------------------------------------------------------------------- */

static void put_number(struct buf *b, uint64_t n, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        buf_append_char(b, (char) (n >> (8 * i)));
}

static void put_contacts(struct buf *b, const struct reports *r)
{
    struct map_entry e;
    put_number(b, r->contacts.n_items, 4);
    for (size_t at = 0; map_next(&r->contacts, &at, &e);) {
        const struct contact *c = e.value;
        buf_append(b, c->uuid.bytes, sizeof(c->uuid.bytes));
        put_number(b, (uint64_t) c->last_seen_us, 8);
        put_number(b, c->word.state, 1);
        put_number(b, c->word.reasons, 2);
    }
}

static void put_subjects(struct buf *b, const struct reports *r)
{
    struct map_entry e;
    put_number(b, r->subjects.n_items, 4);
    for (size_t at = 0; map_next(&r->subjects, &at, &e);) {
        const struct subject *s = e.value;
        struct str message = str_of(s->message ? s->message : "");
        buf_append(b, s->key, sizeof(s->key));
        put_number(b, (uint64_t) s->written_us, 8);
        put_number(b, s->fact, 1);
        put_number(b, message.n, 2);
        buf_append_str(b, message);
    }
}

/* Objects come and go; what was known of those that went goes too. */
static void sweep(struct reports *r)
{
    static const enum catalog_kind kinds[] = {
        [REPORT_DEVICE] = CATALOG_DEVICE,   [REPORT_HARDWARE] = CATALOG_DEVICE,
        [REPORT_METRICS] = CATALOG_DEVICE,  [REPORT_APPLICATION] = CATALOG_APPLICATION,
        [REPORT_VOLUME] = CATALOG_VOLUME,   [REPORT_CONTENT] = CATALOG_IMAGE,
        [REPORT_NETWORK] = CATALOG_NETWORK, [REPORT_KUBECONFIG] = CATALOG_APPLICATION,
    };
    ARENA_AUTO a = arena_new();
    struct subject **gone = NULL;
    size_t n = 0;
    struct map_entry e;
    for (size_t at = 0; map_next(&r->subjects, &at, &e);) {
        struct subject *s = e.value;
        struct uuid device = subject_device(s), object = subject_object(s);
        if (catalog_has(&r->catalog, CATALOG_DEVICE, &device) &&
            catalog_has(&r->catalog, kinds[(unsigned char) s->key[0]], &object))
            continue;
        gone = arena_grow(a, gone, n, sizeof(struct subject *));
        gone[n++] = s;
    }
    for (size_t i = 0; i < n; i++)
        subject_remove(r, gone[i]);
}

/* Below the oldest that waits. Threads hand records over in no strict order, so the newest few
 * seconds do not count before the end. */
static uint64_t settled_id(struct reports *r, bool is_last)
{
    uint64_t id = is_last ? r->newest_id : r->settled_ids[1];
    uint64_t oldest = targets_oldest_id(r);
    (void) pthread_mutex_lock(&r->lock);
    if (r->missed_id)
        oldest = MIN(oldest, r->missed_id);
    (void) pthread_mutex_unlock(&r->lock);
    if (r->replay)
        id = MIN(id, r->replayed_id);
    return oldest <= id ? oldest - 1 : id;
}

void checkpoint_save(struct reports *r, bool is_last)
{
    BUF_AUTO b = {0};
    unsigned char digest[SHA256_BYTES];
    if (!r->checkpoint_path)
        return;
    sweep(r);
    buf_append_str(&b, MAGIC);
    uint64_t id = settled_id(r, is_last);
    put_number(&b, id, 8);
    put_contacts(&b, r);
    put_subjects(&b, r);
    pki_sha256(buf_str(&b), digest);
    buf_append(&b, digest, sizeof(digest));
    int result = pki_file_write(r->checkpoint_path, buf_str(&b), 0600);
    if (result < 0)
        log_warning("checkpoint of reports not written, retrying later",
                    LOG_TEXT("path", r->checkpoint_path), LOG_ERRNO(result));
    r->is_unsaved = result < 0 || id < r->newest_id;
    r->save_at_us =
        reports_mono_us(r) + MAX(REPORTS_SAVE_US, (int64_t) (b.n / BYTES_PER_SECOND) * 1000000);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct cursor {
    struct str rest;
    bool is_bad;
};

static struct str get_bytes(struct cursor *c, size_t n)
{
    if (c->is_bad || c->rest.n < n) {
        c->is_bad = true;
        return STR_NONE;
    }
    struct str s = str_sub(c->rest, 0, n);
    c->rest = str_from(c->rest, n);
    return s;
}

static uint64_t get_number(struct cursor *c, size_t n_bytes)
{
    struct str s = get_bytes(c, n_bytes);
    uint64_t n = 0;
    for (size_t i = s.n; i-- > 0;)
        n = n << 8 | (unsigned char) s.p[i];
    return n;
}

static struct uuid get_uuid(struct cursor *c)
{
    struct uuid u = {{0}};
    struct str s = get_bytes(c, sizeof(u.bytes));
    if (s.n)
        memcpy(u.bytes, s.p, s.n);
    return u;
}

static void get_contacts(struct reports *r, struct cursor *c)
{
    for (uint64_t n = get_number(c, 4); n > 0 && !c->is_bad; n--) {
        struct uuid uuid = get_uuid(c);
        struct contact *contact = contact_get(r, &uuid);
        contact->last_seen_us = (int64_t) get_number(c, 8);
        contact->word.state = (uint8_t) get_number(c, 1);
        contact->word.reasons = (uint16_t) get_number(c, 2);
    }
}

static void get_subject(struct reports *r, struct cursor *c)
{
    uint64_t kind = get_number(c, 1);
    struct uuid device = get_uuid(c), object = get_uuid(c);
    int64_t newest_us = (int64_t) get_number(c, 8);
    uint64_t fact = get_number(c, 1);
    struct str message = get_bytes(c, get_number(c, 2));
    if (c->is_bad || kind > REPORT_KUBECONFIG || fact > FACT_ERROR)
        return;
    struct subject *s = subject_get(r, (enum report_kind) kind, &device, &object);
    s->newest_us = s->written_us = newest_us;
    struct fact f = {.state = (enum fact_state) fact, .message = message};
    if (f.state != FACT_GONE)
        subject_set_fact(r, s, &f);
    s->is_untold = false;
}

/* 1 when there is a good one. */
static int read_file(const char *path, struct buf *ret)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int result = fstat(fd, &st) < 0 ? -errno : 1;
    size_t left = result < 0 ? 0 : MIN((size_t) st.st_size, MAX_FILE_BYTES);
    while (left > 0 && result > 0) {
        ssize_t n = read(fd, buf_reserve(ret, left), left);
        if (n < 0 && errno != EINTR)
            result = -errno;
        if (n == 0)
            break;
        if (n > 0) {
            ret->n += (size_t) n;
            left -= (size_t) n;
        }
    }
    (void) close(fd);
    return result;
}

static bool is_whole(struct str text)
{
    unsigned char digest[SHA256_BYTES];
    if (text.n < MAGIC.n + SHA256_BYTES || !str_starts_with(text, MAGIC))
        return false;
    pki_sha256(str_sub(text, 0, text.n - SHA256_BYTES), digest);
    return memcmp(digest, text.p + text.n - SHA256_BYTES, SHA256_BYTES) == 0;
}

int checkpoint_load(struct reports *r, uint64_t *ret_id, char **ret_error)
{
    BUF_AUTO b = {0};
    *ret_id = 0;
    if (!r->checkpoint_path)
        return 0;
    int result = read_file(r->checkpoint_path, &b);
    if (result < 0) {
        BUF_AUTO words = {0};
        buf_printf(&words, "%s: %s", r->checkpoint_path, log_errno_text(result));
        *ret_error = buf_take(&words);
        return result;
    }
    if (result == 0)
        return 0;
    if (!is_whole(buf_str(&b))) {
        log_warning("checkpoint of reports is damaged, taking up everything that is stored",
                    LOG_TEXT("path", r->checkpoint_path));
        return 0;
    }
    struct cursor c = {.rest = str_sub(buf_str(&b), MAGIC.n, b.n - SHA256_BYTES)};
    *ret_id = get_number(&c, 8);
    get_contacts(r, &c);
    for (uint64_t n = get_number(&c, 4); n > 0 && !c.is_bad; n--)
        get_subject(r, &c);
    return 0;
}
