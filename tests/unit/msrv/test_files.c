/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs with their ranges, patch envelopes, archives, the diagnosis, user data. */
#include "test.h"

#include <zlib.h>

#include "desk.h"

static void get(struct desk *d, const char *address, const char *path, const char *headers)
{
    (void) desk_ask(
        d, address,
        arena_printf(d->device.arena, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, headers), 0);
}

#define BLOB "/eve/app-custom-blobs/my%20blob"

/* clang-format off */
static const struct {
    const char *range;
    int status;
    const char *content_range, *body;
} ranges[] = {
    {"bytes=0-3", 206, "bytes 0-3/10", "0123"},
    {"bytes=9-", 206, "bytes 9-9/10", "9"},
    {"bytes=-2", 206, "bytes 8-9/10", "89"},
    {"bytes=-20", 206, "bytes 0-9/10", "0123456789"},
    {"bytes=4-999999999999", 206, "bytes 4-9/10", "456789"},
    {"bytes=10-", 416, "bytes */10", "invalid range: failed to overlap\n"},
    {"bytes=-0", 416, "bytes */10", "invalid range: failed to overlap\n"},
    {"bytes=99999999999999999999-", 200, NULL, "0123456789"},
    {"bytes=5-3", 200, NULL, "0123456789"},
    {"bytes=0-1,4-5", 200, NULL, "0123456789"},
    {"bytes=x", 200, NULL, "0123456789"},
    {"bytes=+1-2", 200, NULL, "0123456789"},
    {"lines=1-2", 200, NULL, "0123456789"},
};
/* clang-format on */

TEST(a_blob_has_ranges)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(ranges); i++) {
        get(&d, WEB_ADDRESS, BLOB,
            arena_printf(d.device.arena, "Range: %s\r\n", ranges[i].range).p);
        if (desk_status(&d) != ranges[i].status)
            fail_msg("%s: got %d", ranges[i].range, desk_status(&d));
        assert_str(desk_body(&d), ranges[i].body);
        if (ranges[i].content_range)
            assert_str(desk_header(&d, "Content-Range"), ranges[i].content_range);
        else
            assert_null(desk_header(&d, "Content-Range").p);
    }
    desk_done(&d);
}

TEST(a_blob_that_is_known_is_not_sent_again)
{
    struct desk d;
    desk_init(&d);
    struct arena *a = d.device.arena;
    get(&d, WEB_ADDRESS, BLOB, "");
    struct str modified = arena_str(a, desk_header(&d, "Last-Modified"));
    assert_int_equal(modified.n, HTTP_DATE_BYTES - 1);
    get(&d, WEB_ADDRESS, BLOB, arena_printf(a, "If-Modified-Since: %.*s\r\n", STR_ARG(modified)).p);
    assert_int_equal(desk_status(&d), 304);
    assert_str(desk_body(&d), "");
    get(&d, WEB_ADDRESS, BLOB, "Range: bytes=0-1\r\nIf-Range: Mon, 01 Jan 2001 00:00:00 GMT\r\n");
    assert_int_equal(desk_status(&d), 200);
    get(&d, WEB_ADDRESS, BLOB,
        arena_printf(a, "Range: bytes=0-1\r\nIf-Range: %.*s\r\n", STR_ARG(modified)).p);
    assert_int_equal(desk_status(&d), 206);
    desk_done(&d);
}

TEST(a_file_without_bytes_is_an_empty_answer)
{
    struct desk d;
    desk_init(&d);
    device_write(&d.device, d.device.blob_path, "", 0);
    get(&d, WEB_ADDRESS, BLOB, "");
    assert_int_equal(desk_status(&d), 200);
    assert_str(desk_header(&d, "Content-Length"), "0");
    get(&d, WEB_ADDRESS, BLOB, "Range: bytes=-5\r\n");
    assert_int_equal(desk_status(&d), 416);
    desk_done(&d);
}

/* ---- the diagnosis -------------------------------------------------------------------------- */

TEST(the_diagnosis_has_a_limit)
{
    struct desk d;
    desk_init(&d);
    char *text = arena_alloc(d.device.arena, 65536);
    memset(text, 'd', 65536);
    device_write(&d.device, d.device.diag_path, text, 65535);
    get(&d, DB_ADDRESS, "/eve/v1/diag", "");
    assert_int_equal(desk_status(&d), 200);
    assert_str(desk_header(&d, "Content-Type"), "text");
    assert_int_equal(desk_body(&d).n, 65535);
    device_write(&d.device, d.device.diag_path, text, 65536);
    get(&d, DB_ADDRESS, "/eve/v1/diag", "");
    assert_int_equal(desk_status(&d), 500);
    get(&d, NOBODY, "/eve/v1/diag", "");
    assert_int_equal(desk_status(&d), 403);
    desk_done(&d);
}

/* ---- user data ------------------------------------------------------------------------------ */

TEST(user_data_is_decoded)
{
    struct desk d;
    desk_init(&d);
    d.device.user_data = STR("I2Nsb3VkLWNvbmZpZwo=");
    get(&d, WEB_ADDRESS, "/openstack/latest/user_data", "");
    assert_int_equal(desk_status(&d), 200);
    assert_str(desk_header(&d, "Content-Type"), "text/yaml");
    assert_str(desk_body(&d), "#cloud-config\n");
    d.device.user_data = STR("no base64!");
    get(&d, WEB_ADDRESS, "/openstack/latest/user_data", "");
    assert_int_equal(desk_status(&d), 500);
    d.device.has_cipher = true;
    get(&d, WEB_ADDRESS, "/openstack/latest/user_data", "");
    assert_str(desk_body(&d), "#decrypted\n");
    d.device.fails_tpm = true;
    get(&d, WEB_ADDRESS, "/openstack/latest/user_data", "");
    assert_int_equal(desk_status(&d), 500);
    desk_done(&d);
}

/* ---- envelopes ------------------------------------------------------------------------------ */

#define DOWNLOAD "/eve/v1/patch/download/"

/* clang-format off */
static const struct {
    const char *address, *path;
    int status;
    const char *body; /* NULL: any */
    size_t n_described, n_downloaded;
} patches[] = {
    {WEB_ADDRESS, "/eve/v1/patch/description.json", 200,
     "[{\"PatchID\":\"p1\",\"Version\":\"v1\",\"BinaryBlobs\":["
     "{\"fileName\":\"a.bin\",\"fileSha\":\"abc\",\"fileMetaData\":\"\",\"artifactMetaData\":\"\",\"encArtifactMeta\":{},"
     "\"url\":\"http://169.254.169.254/eve/v1/patch/download/p1/a.bin\",\"size\":11},"
     "{\"fileName\":\"secret\",\"fileSha\":\"\",\"fileMetaData\":\"\",\"artifactMetaData\":\"\",\"encArtifactMeta\":{},"
     "\"url\":\"http://169.254.169.254/eve/v1/patch/download/p1/secret\",\"size\":4}],"
     "\"VolumeRefs\":[{\"fileName\":\"vol\",\"imageName\":\"img\",\"fileMetaData\":\"\",\"artifactMetaData\":\"\","
     "\"encArtifactMeta\":{},\"imageId\":\"id\"}]},"
     "{\"PatchID\":\"p2\",\"Version\":\"v2\",\"BinaryBlobs\":null,\"VolumeRefs\":null}]", 2, 0},
    {DB_ADDRESS, "/eve/v1/patch/description.json", 404, "{\"message\": \"No envelopes for " DB_UUID "\"}", 0, 0},
    {NOBODY, "/eve/v1/patch/description.json", 204, "", 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p1/a.bin", 200, "patch bytes", 0, 1},
    {WEB_ADDRESS, DOWNLOAD "p1/a%2ebin", 200, "patch bytes", 0, 1},
    {WEB_ADDRESS, DOWNLOAD "p1/secret", 200, "c2VjcmV0", 0, 1},
    {WEB_ADDRESS, DOWNLOAD "p1/vol", 404, "{\"message\": \"file is not found\"}", 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p1/../p1/a.bin", 404, NULL, 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p9/a.bin", 404, "{\"message\": \"patch is not found\"}", 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p9", 401, "Unauthorized\n", 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p1/", 404, NULL, 0, 0},
    {WEB_ADDRESS, DOWNLOAD, 404, NULL, 0, 0},
    {WEB_ADDRESS, DOWNLOAD "p1", 200, NULL, 0, 1},
    {WEB_ADDRESS, DOWNLOAD "p2", 200, NULL, 0, 1},
    {DB_ADDRESS, DOWNLOAD "p1", 404, NULL, 0, 0},
    {NOBODY, DOWNLOAD "p1", 204, "", 0, 0},
    {NOBODY, DOWNLOAD "p1/a.bin", 204, "", 0, 0},
};
/* clang-format on */

TEST(envelopes_answer_as_described_and_are_counted)
{
    struct desk d;
    desk_init(&d);
    for (size_t i = 0; i < N_ELEMENTS(patches); i++) {
        d.device.n_described = d.device.n_downloaded = 0;
        get(&d, patches[i].address, patches[i].path, "");
        if (desk_status(&d) != patches[i].status)
            fail_msg("%s from %s: got %d, expected %d", patches[i].path, patches[i].address,
                     desk_status(&d), patches[i].status);
        if (patches[i].body)
            assert_str(desk_body(&d), patches[i].body);
        assert_int_equal(d.device.n_described, patches[i].n_described);
        assert_int_equal(d.device.n_downloaded, patches[i].n_downloaded);
    }
    desk_done(&d);
}

TEST(a_secret_that_cannot_be_decrypted_is_an_error)
{
    struct desk d;
    desk_init(&d);
    get(&d, WEB_ADDRESS, DOWNLOAD "p1/secret", "");
    assert_str(desk_header(&d, "Content-Disposition"), "attachment; filename=\"data.txt\"");
    d.device.fails_tpm = true;
    d.device.n_downloaded = 0;
    get(&d, WEB_ADDRESS, DOWNLOAD "p1/secret", "");
    assert_int_equal(desk_status(&d), 500);
    get(&d, WEB_ADDRESS, DOWNLOAD "p1", "");
    assert_int_equal(desk_status(&d), 500);
    assert_int_equal(d.device.n_downloaded, 0);
    desk_done(&d);
}

static uint32_t u32_at(struct str s, size_t at)
{
    const unsigned char *p = (const unsigned char *) s.p + at;
    assert_true(at + 4 <= s.n);
    return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

/* By the directory at its end, as every reader does. */
TEST(an_archive_holds_every_file)
{
    struct desk d;
    desk_init(&d);
    get(&d, WEB_ADDRESS, DOWNLOAD "p1", "");
    assert_str(desk_header(&d, "Content-Type"), "application/zip");
    struct str zip = desk_body(&d);
    assert_str(desk_header(&d, "Content-Length"), arena_printf(d.device.arena, "%zu", zip.n).p);
    assert_int_equal(u32_at(zip, 0), 0x04034b50);
    size_t end = zip.n - 22;
    assert_int_equal(u32_at(zip, end), 0x06054b50);
    assert_int_equal(zip.p[end + 10], 2);
    size_t at = u32_at(zip, end + 16);
    assert_int_equal(at + u32_at(zip, end + 12), end);
    assert_int_equal(u32_at(zip, at), 0x02014b50);
    assert_int_equal(u32_at(zip, at + 16), crc32(0, (const Bytef *) "patch bytes", 11));
    assert_int_equal(u32_at(zip, at + 24), 11);
    assert_str(str_sub(zip, at + 46, at + 51), "a.bin");
    at += 46 + 5;
    assert_int_equal(u32_at(zip, at + 16), crc32(0, (const Bytef *) "c2VjcmV0", 8));
    size_t local = u32_at(zip, at + 42);
    assert_int_equal(u32_at(zip, local), 0x04034b50);
    assert_str(str_sub(zip, local + 30, local + 44), "secretc2VjcmV0");
    desk_done(&d);
}

TEST(an_archive_has_a_limit)
{
    struct desk d;
    desk_init(&d);
    struct exchange x;
    exchange_init(&x, d.msrv, STR("net"), STR(WEB_ADDRESS), 1);
    struct zip_entry large[2] = {
        {.name = STR("a"), .path = "/a", .length = MSRV_MAX_ZIP_BYTES / 2},
        {.name = STR("b"), .path = "/b", .length = MSRV_MAX_ZIP_BYTES / 2},
    };
    assert_true(zip_answer(&x.request, large, 2) < 0);
    assert_int_equal(zip_answer(&x.request, large, 1), 0);
    struct zip_entry *many = ARENA_ARRAY(d.device.arena, struct zip_entry, MSRV_MAX_ZIP_FILES + 1);
    assert_true(zip_answer(&x.request, many, MSRV_MAX_ZIP_FILES + 1) < 0);
    exchange_done(&x);
    desk_done(&d);
}
