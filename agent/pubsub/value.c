/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pubsub/files.h"

static const struct str large_prefix = STR("pubsub-large-");
static const struct str file_prefix = STR("pubsub-file-");
/* As long as the random part of a name. */
#define MEASURED_RANDOM "xxxxxxxxxx"
#define MAX_FILE_NAME_BYTES 255
/* A packet is read at once or, after the subscriber died, never. */
#define LARGE_UNREAD_SECONDS 3600

/* ---- the normal form ------------------------------------------------------------------------ */

/* In a tree of our own. Integers stay exact where Go, which takes them through a double, loses what
 * is beyond 2^53. */
static void normalize(struct json *v)
{
    if (v->type == JSON_ARRAY && v->n == 0)
        *v = json_null();
    if (v->type == JSON_DOUBLE && fabs(v->d) <= 0x1p53 && v->d == (double) (int64_t) v->d)
        *v = json_int((int64_t) v->d);
    JSON_FOR_EACH_ITEM (v, item)
        normalize(item);
    JSON_FOR_EACH_MEMBER (v, m)
        normalize(&m->value);
    if (v->type == JSON_OBJECT)
        json_sort_members(v);
}

/* Go escapes these, for HTML and JavaScript. They occur in strings alone, so the text need not be
 * understood. */
static bool is_escaped(const unsigned char *p, size_t n_left)
{
    return *p == '<' || *p == '>' || *p == '&' ||
           (n_left >= 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] & 0xfe) == 0xa8);
}

void pubsub_value_text(struct buf *b, const struct json *normal)
{
    BUF_AUTO text = {0};
    json_write(&text, normal);
    const unsigned char *p = (const unsigned char *) text.p;
    size_t begin = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (!is_escaped(p + i, text.n - i))
            continue;
        buf_append(b, p + begin, i - begin);
        bool is_separator = p[i] == 0xe2; /* U+2028 and U+2029 */
        buf_printf(b, "\\u%04x", is_separator ? 0x2028u + (p[i + 2] & 1) : p[i]);
        i += is_separator ? 2 : 0;
        begin = i + 1;
    }
    buf_append(b, p + begin, text.n - begin);
}

/* ---- large fields out ----------------------------------------------------------------------- */

static int write_large(struct pubsub_large *large, struct str field, struct str content,
                       struct buf *name)
{
    buf_append_str(name, file_prefix);
    /* What a slash or a dot in a field's name would do to a path. */
    for (size_t i = 0; i < field.n; i++)
        buf_append_char(name, str_find(STR("/\0"), field.p[i]) >= 0 ? '_' : field.p[i]);
    if (name->n + STR(MEASURED_RANDOM).n > MAX_FILE_NAME_BYTES)
        return -ENAMETOOLONG;
    if (large->is_measured_only) {
        buf_append_str(name, STR(MEASURED_RANDOM));
        return 0;
    }
    int r = pubsub_file_create(large->directory, name, content);
    if (r == 0)
        buf_append(&large->names, name->p, name->n + 1);
    return r;
}

/* `pubsub-large-X: value` becomes `pubsub-file-X: "\"path\""`. */
static int take_out_member(struct arena *a, struct json_member *m, struct pubsub_large *large)
{
    struct str key = json_str(&m->key);
    struct str field = str_from(key, large_prefix.n);
    normalize(&m->value);
    struct json wrapper = json_object();
    json_append_member(a, &wrapper, key, m->value);
    BUF_AUTO content = {0};
    pubsub_value_text(&content, &wrapper);
    if (content.n >= PUBSUB_MAX_LARGE_BYTES)
        return -EFBIG;
    BUF_AUTO name = {0};
    int r = write_large(large, field, buf_str(&content), &name);
    if (r < 0)
        return r;
    BUF_AUTO quoted = {0};
    json_write_str(&quoted, arena_printf(a, "%s/%.*s", large->directory, (int) name.n, name.p));
    m->key = json_string(arena_printf(a, "%.*s%.*s", STR_ARG(file_prefix), STR_ARG(field)));
    m->value = json_string(arena_str(a, buf_str(&quoted)));
    return 0;
}

static int take_out(struct arena *a, struct json *v, struct pubsub_large *large)
{
    int r = 0;
    JSON_FOR_EACH_ITEM (v, item) {
        if (r == 0)
            r = take_out(a, item, large);
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        if (r < 0)
            break;
        r = str_starts_with(json_str(&m->key), large_prefix) ? take_out_member(a, m, large)
                                                             : take_out(a, &m->value, large);
    }
    return r;
}

int pubsub_value_to_wire(struct buf *b, const struct json *value, struct pubsub_large *large)
{
    ARENA_AUTO a = arena_new();
    struct json copy = json_clone(a, value);
    int r = take_out(a, &copy, large);
    if (r < 0) {
        pubsub_large_remove(large);
        return r;
    }
    normalize(&copy);
    pubsub_value_text(b, &copy);
    return 0;
}

static void remove_file(const char *directory, struct str name)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/%.*s", directory, STR_ARG(name));
    (void) unlink(path.p);
}

void pubsub_large_remove(struct pubsub_large *large)
{
    struct str rest = buf_str(&large->names);
    struct str name;
    while (str_split(&rest, '\0', &name))
        remove_file(large->directory, name);
    buf_reset(&large->names);
}

static void sweep_file(int directory, const char *name, int64_t before_s)
{
    struct stat st;
    if (str_starts_with(str_of(name), file_prefix) &&
        fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime < before_s)
        (void) unlinkat(directory, name, 0);
}

void pubsub_large_sweep(const char *directory, const struct clock *clock)
{
    DIR *d = opendir(directory);
    if (!d)
        return;
    int64_t before_s = clock->wall_us(clock) / 1000000 - LARGE_UNREAD_SECONDS;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        sweep_file(dirfd(d), e->d_name, before_s);
    (void) closedir(d);
}

/* ---- large fields in ------------------------------------------------------------------------ */

struct putting_back {
    struct arena *arena;
    const char *directory;
    size_t n_bytes; /* read so far */
};

/* The name within the directory, or STR_NONE for a path that leads anywhere else. */
static struct str name_of_path(const struct putting_back *p, const struct json *quoted)
{
    struct json *path = json_parse_quick(p->arena, json_str(quoted));
    struct str directory = str_of(p->directory), s = json_str(path);
    if (!str_starts_with(s, directory) || s.n <= directory.n || s.p[directory.n] != '/')
        return STR_NONE;
    struct str name = str_from(s, directory.n + 1);
    bool is_ours =
        str_starts_with(name, file_prefix) && str_find(name, '/') < 0 && str_find(name, '\0') < 0;
    return is_ours ? name : STR_NONE;
}

/* The field's value, or NULL for a file that is missing, empty or not what it should be. */
static struct json *read_large(struct putting_back *p, struct str name, struct str key)
{
    BUF_AUTO path = {0}, content = {0};
    buf_printf(&path, "%s/%.*s", p->directory, STR_ARG(name));
    int r = pubsub_file_read(path.p, PUBSUB_MAX_LARGE_BYTES, &content);
    (void) unlink(path.p);
    p->n_bytes += content.n;
    if (r < 0 || p->n_bytes > PUBSUB_MAX_VALUE_BYTES)
        return NULL;
    return json_get(json_parse_quick(p->arena, buf_str(&content)), key);
}

static void put_back(struct putting_back *p, struct json *v);

/* False when the member is to go. */
static bool put_back_member(struct putting_back *p, const struct json *object,
                            struct json_member *m)
{
    struct str key = json_str(&m->key);
    if (!str_starts_with(key, file_prefix)) {
        put_back(p, &m->value);
        return true;
    }
    struct str name = name_of_path(p, &m->value);
    if (!name.n)
        return false;
    key = arena_printf(p->arena, "%.*s%.*s", STR_ARG(large_prefix),
                       STR_ARG(str_from(key, file_prefix.n)));
    struct json *value = read_large(p, name, key);
    if (!value || json_get(object, key))
        return false;
    *m = (struct json_member){json_string(key), *value};
    return true;
}

static void put_back(struct putting_back *p, struct json *v)
{
    JSON_FOR_EACH_ITEM (v, item)
        put_back(p, item);
    if (v->type != JSON_OBJECT)
        return;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        if (put_back_member(p, v, &v->members[i]))
            v->members[n_kept++] = v->members[i];
    }
    v->n = n_kept;
}

int pubsub_value_parse(struct arena *a, struct str text, const char *large_directory,
                       struct json **ret)
{
    if (text.n > PUBSUB_MAX_VALUE_BYTES)
        return -EBADMSG;
    struct json_parse_result parsed;
    if (json_parse(a, text, &parsed) < 0 || !json_is(parsed.value, JSON_OBJECT))
        return -EBADMSG;
    struct putting_back p = {.arena = a, .directory = large_directory};
    put_back(&p, parsed.value);
    /* The depth of what large fields bring along. */
    if (!json_fits(parsed.value, SIZE_MAX))
        return -EBADMSG;
    normalize(parsed.value);
    *ret = parsed.value;
    return 0;
}
