/* SPDX-License-Identifier: Apache-2.0 */
/* An archive (PKWARE APPNOTE 6.3) of files as they are, made while it is sent: a file's checksum
 * stands behind it, and again in the directory at the end. So nothing is read twice and no copy is
 * kept. */
#include <errno.h>
#include <zlib.h>

#include "base/bytes.h"
#include "msrv/msrv_internal.h"

#define LOCAL_HEADER_BYTES 30
#define DESCRIPTOR_BYTES 16
#define DIRECTORY_HEADER_BYTES 46
#define END_BYTES 22
#define VERSION_NEEDED 20
#define FLAGS 0x0808            /* the checksum follows; names are UTF-8 */
#define DOS_DATE ((1 << 5) | 1) /* the first day that the format knows */

struct zip_file {
    struct zip_entry entry;
    uint32_t crc;
    uint32_t at; /* where its local header is */
};

struct zip {
    struct arena *arena;
    struct zip_file *files;
    size_t n_files;
    uint32_t directory_at, directory_bytes;
};

/* Little-endian, as all of the format. */
static char *put16(char *p, uint32_t v)
{
    p[0] = (char) (v & 0xff);
    p[1] = (char) (v >> 8 & 0xff);
    return p + 2;
}

static char *put32(char *p, uint32_t v)
{
    return put16(put16(p, v & 0xffff), v >> 16);
}

/* What both headers of a file have in common. */
static char *put_file(char *p, const struct zip_file *f, uint32_t crc, uint32_t length)
{
    p = put16(p, VERSION_NEEDED);
    p = put16(p, FLAGS);
    p = put16(p, 0); /* stored */
    p = put16(p, 0);
    p = put16(p, DOS_DATE);
    p = put32(p, crc);
    p = put32(p, length);
    p = put32(p, length);
    p = put16(p, (uint32_t) f->entry.name.n);
    return put16(p, 0);
}

static struct str local_header(struct arena *a, const struct zip_file *f)
{
    char *begin = arena_alloc(a, LOCAL_HEADER_BYTES + f->entry.name.n);
    char *p = put32(begin, 0x04034b50);
    p = put_file(p, f, /* crc= */ 0, /* length= */ 0);
    memcpy(p, f->entry.name.p, f->entry.name.n);
    return str_range(begin, LOCAL_HEADER_BYTES + f->entry.name.n);
}

struct descriptor {
    struct zip *zip;
    struct zip_file *file;
};

static void make_descriptor(struct part *part, void *arg)
{
    struct descriptor *d = arg;
    char *begin = arena_alloc(d->zip->arena, DESCRIPTOR_BYTES);
    char *p = put32(begin, 0x08074b50);
    p = put32(p, d->file->crc);
    p = put32(p, (uint32_t) d->file->entry.length);
    (void) put32(p, (uint32_t) d->file->entry.length);
    part->bytes = str_range(begin, DESCRIPTOR_BYTES);
}

static char *put_directory_entry(char *p, const struct zip_file *f)
{
    p = put32(p, 0x02014b50);
    p = put16(p, VERSION_NEEDED);
    p = put_file(p, f, f->crc, (uint32_t) f->entry.length);
    p = put16(p, 0); /* comment, disk, attributes */
    p = put16(p, 0);
    p = put16(p, 0);
    p = put32(p, 0);
    p = put32(p, f->at);
    memcpy(p, f->entry.name.p, f->entry.name.n);
    return p + f->entry.name.n;
}

static void make_directory(struct part *part, void *arg)
{
    struct zip *z = arg;
    char *begin = arena_alloc(z->arena, part->length);
    char *p = begin;
    for (size_t i = 0; i < z->n_files; i++)
        p = put_directory_entry(p, &z->files[i]);
    p = put32(p, 0x06054b50);
    p = put32(p, 0); /* disks */
    p = put16(p, (uint32_t) z->n_files);
    p = put16(p, (uint32_t) z->n_files);
    p = put32(p, z->directory_bytes);
    p = put32(p, z->directory_at);
    (void) put16(p, 0);
    part->bytes = str_range(begin, part->length);
}

/* Header, content, descriptor; returns the bytes they take. */
static uint64_t add_file(struct zip *z, struct zip_file *f, struct part *parts)
{
    struct str header = local_header(z->arena, f);
    struct descriptor *d = ARENA_NEW(z->arena, struct descriptor);
    *d = (struct descriptor){z, f};
    parts[0] = (struct part){.bytes = header, .length = header.n};
    parts[1] = (struct part){
        .path = f->entry.path, .bytes = f->entry.bytes, .length = f->entry.length, .crc = &f->crc};
    parts[2] = (struct part){.length = DESCRIPTOR_BYTES, .make = make_descriptor, .make_arg = d};
    if (!f->entry.path)
        f->crc = (uint32_t) crc32(0, (const Bytef *) f->entry.bytes.p, (uInt) f->entry.bytes.n);
    return header.n + f->entry.length + DESCRIPTOR_BYTES;
}

int zip_answer(struct request *r, const struct zip_entry *entries, size_t n_entries)
{
    if (n_entries > MSRV_MAX_ZIP_FILES)
        return -EFBIG;
    struct zip *z = ARENA_NEW(r->arena, struct zip);
    *z = (struct zip){.arena = r->arena,
                      .files = ARENA_ARRAY(r->arena, struct zip_file, n_entries),
                      .n_files = n_entries};
    struct part *parts = ARENA_ARRAY(r->arena, struct part, 3 * n_entries + 1);
    uint64_t at = 0, n_directory = 0;
    for (size_t i = 0; i < n_entries; i++) {
        z->files[i] = (struct zip_file){.entry = entries[i], .at = (uint32_t) at};
        if (entries[i].length > MSRV_MAX_ZIP_BYTES || entries[i].name.n > UINT16_MAX)
            return -EFBIG;
        at += add_file(z, &z->files[i], &parts[3 * i]);
        n_directory += DIRECTORY_HEADER_BYTES + entries[i].name.n;
        if (at + n_directory > MSRV_MAX_ZIP_BYTES)
            return -EFBIG;
    }
    z->directory_at = (uint32_t) at;
    z->directory_bytes = (uint32_t) n_directory;
    parts[3 * n_entries] =
        (struct part){.length = n_directory + END_BYTES, .make = make_directory, .make_arg = z};
    answer_parts(r, parts, 3 * n_entries + 1);
    r->answer.status = 200;
    answer_header(r, STR("Content-Type"), STR("application/zip"));
    return 0;
}
