/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/netdump.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "pki/file.h"

#define EXTENSION ".tgz"
#define BLOCK 512
#define GZIP_WINDOW (15 + 16) /* with the header of gzip */

/* ---- names ---------------------------------------------------------------------------------- */

/* A time without colons that sorts as text. */
static void write_stamp(int64_t wall_us, char ret[CLOCK_SECONDS_BYTES])
{
    clock_format_seconds(wall_us, ret);
    for (char *c = ret; *c; c++)
        if (*c == ':')
            *c = '-';
    ret[strlen(ret) - 1] = 0; /* without its Z */
}

/* False: it is no archive of the topic. */
static bool read_stamp(const char *file, const char *topic, int64_t *ret_wall_us)
{
    const size_t n = strlen(topic);
    struct str rest = str_of(file);
    char text[CLOCK_SECONDS_BYTES];
    if (!str_starts_with(rest, str_of(topic)) || file[n] != '-')
        return false;
    rest = str_from(rest, n + 1);
    if (rest.n != CLOCK_SECONDS_BYTES - 2 + strlen(EXTENSION) ||
        !str_ends_with(rest, STR(EXTENSION)))
        return false;
    memcpy(text, rest.p, CLOCK_SECONDS_BYTES - 2);
    text[13] = text[16] = ':';
    text[CLOCK_SECONDS_BYTES - 2] = 'Z';
    text[CLOCK_SECONDS_BYTES - 1] = 0;
    return clock_parse(str_of(text), ret_wall_us) == 0;
}

bool uplink_netdump_is_due(const struct uplink_netdump *d, const char *topic, int64_t wall_us)
{
    DIR *directory = opendir(d->directory);
    const struct dirent *e;
    int64_t last_us = 0, at_us;
    while (directory && (e = readdir(directory)))
        /* A clock that was ahead must not silence it until then. */
        if (read_stamp(e->d_name, topic, &at_us) && at_us <= wall_us)
            last_us = MAX(last_us, at_us);
    if (directory)
        (void) closedir(directory);
    return last_us == 0 || wall_us - last_us >= d->interval_s * 1000000;
}

static void remove_file(const struct uplink_netdump *d, const char *name)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/%s", d->directory, name);
    (void) unlink(path.p);
}

/* Those of a time that has not come, made by a clock that was ahead, go before the oldest. */
static void remove_surplus(const struct uplink_netdump *d, const char *topic, int64_t wall_us)
{
    struct dirent **names = NULL;
    int64_t at_us;
    const int n = scandir(d->directory, &names, NULL, alphasort);
    size_t n_files = 0;
    for (int i = 0; i < n; i++)
        n_files += read_stamp(names[i]->d_name, topic, &at_us);
    for (int i = n; i-- > 0;)
        if (n_files > d->max_count && read_stamp(names[i]->d_name, topic, &at_us) &&
            at_us > wall_us) {
            remove_file(d, names[i]->d_name);
            n_files--;
        }
    for (int i = 0; i < n; i++) {
        if (n_files > d->max_count && read_stamp(names[i]->d_name, topic, &at_us) &&
            at_us <= wall_us) {
            remove_file(d, names[i]->d_name);
            n_files--;
        }
        free(names[i]);
    }
    free(names);
}

/* ---- the archive (POSIX ustar) -------------------------------------------------------------- */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static int add_file(struct buf *tar, struct str name, struct str content, int64_t wall_us)
{
    struct header h = {.type = '0', .magic = "ustar", .version = "00"};
    if (name.n > UPLINK_NETDUMP_MAX_NAME_BYTES)
        return -ENAMETOOLONG;
    content.n = MIN(content.n, UPLINK_NETDUMP_MAX_FILE_BYTES);
    memcpy(h.name, name.p, name.n);
    (void) snprintf(h.mode, sizeof(h.mode), "%07o", 0644u);
    (void) snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
    (void) snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
    (void) snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long) content.n);
    (void) snprintf(h.time, sizeof(h.time), "%011llo",
                    (unsigned long long) (wall_us / 1000000) & 077777777777);
    /* The sum is made as if it were blanks. */
    memset(h.sum, ' ', sizeof(h.sum));
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *) &h)[i];
    (void) snprintf(h.sum, sizeof(h.sum), "%06o", sum);
    buf_append(tar, &h, sizeof(h));
    buf_append_str(tar, content);
    while (tar->n % BLOCK)
        buf_append_char(tar, 0);
    return 0;
}

static int compress_all(const struct buf *tar, struct buf *to)
{
    z_stream z = {.next_in = (unsigned char *) tar->p, .avail_in = (unsigned) tar->n};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -EIO;
    const size_t room = deflateBound(&z, tar->n);
    z.next_out = (unsigned char *) buf_reserve(to, room);
    z.avail_out = (unsigned) room;
    const int r = deflate(&z, Z_FINISH);
    to->n += room - z.avail_out;
    (void) deflateEnd(&z);
    return r == Z_STREAM_END ? 0 : -EIO;
}

int uplink_netdump_write(const struct uplink_netdump *d, const char *topic, int64_t wall_us,
                         const struct uplink_netdump_file *files, size_t n_files)
{
    BUF_AUTO tar = {0}, packed = {0}, path = {0}, name = {0};
    char stamp[CLOCK_SECONDS_BYTES];
    write_stamp(wall_us, stamp);
    for (size_t i = 0; i < n_files; i++) {
        buf_reset(&name);
        buf_printf(&name, "%s-%s/%s", topic, stamp, files[i].name);
        const int r = add_file(&tar, buf_str(&name), files[i].content, wall_us);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < 2 * BLOCK; i++)
        buf_append_char(&tar, 0);
    int r = compress_all(&tar, &packed);
    if (r == 0 && mkdir(d->directory, 0755) < 0 && errno != EEXIST)
        r = -errno;
    buf_printf(&path, "%s/%s-%s" EXTENSION, d->directory, topic, stamp);
    if (r == 0)
        r = pki_file_write(path.p, buf_str(&packed), 0644);
    if (r == 0)
        remove_surplus(d, topic, wall_us);
    return r;
}
