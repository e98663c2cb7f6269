/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"

#include <errno.h>

#include "test.h"

static struct row good_row(void)
{
    struct row row = {.revision = 7,
                      .type = STORE_MODIFIED,
                      .revision_at = 7,
                      .key = STR("configmaps/default/one"),
                      .text = STR("{\"rv\":\"\",\"data\":\"twelve bytes\"}")};
    row.checksum = row_checksum(&row);
    return row;
}

TEST(sound_row_has_no_fault)
{
    struct row row = good_row();
    assert_null(row_fault(&row));
}

TEST(checksum_notices_every_flipped_bit)
{
    struct row row = good_row();
    char text[64], key[64];
    memcpy(text, row.text.p, row.text.n);
    memcpy(key, row.key.p, row.key.n);
    row.text.p = text;
    row.key.p = key;
    for (size_t bit = 0; bit < row.text.n * 8; bit++) {
        text[bit / 8] ^= (char) (1 << (bit % 8));
        assert_true(row_checksum(&row) != row.checksum);
        text[bit / 8] ^= (char) (1 << (bit % 8));
    }
    for (size_t bit = 0; bit < row.key.n * 8; bit++) {
        key[bit / 8] ^= (char) (1 << (bit % 8));
        assert_true(row_checksum(&row) != row.checksum);
        key[bit / 8] ^= (char) (1 << (bit % 8));
    }
    assert_true(row_checksum(&row) == row.checksum);
}

TEST(checksum_covers_numbers_and_the_border_of_key_and_text)
{
    struct row row = good_row();
    struct row other = row;
    other.revision++;
    assert_true(row_checksum(&other) != row.checksum);
    other = row;
    other.type = STORE_DELETED;
    assert_true(row_checksum(&other) != row.checksum);
    other = row;
    other.revision_at++;
    assert_true(row_checksum(&other) != row.checksum);
    other = row;
    other.text.n--;
    assert_true(row_checksum(&other) != row.checksum);
}

TEST(believable_checksum_does_not_excuse_nonsense)
{
    static const struct {
        const char *name;
        struct row row;
    } cases[] = {
        {"revision",
         {.revision = 1, .type = 0, .revision_at = 1, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"revision",
         {.revision = INT64_MAX,
          .type = 0,
          .revision_at = 1,
          .key = STR("a/b/c"),
          .text = STR("\"\"")}},
        {"type",
         {.revision = 2, .type = 3, .revision_at = 1, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"type",
         {.revision = 2, .type = -1, .revision_at = 1, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"key",
         {.revision = 2, .type = 0, .revision_at = 1, .key = STR("a/b"), .text = STR("\"\"")}},
        {"key",
         {.revision = 2, .type = 0, .revision_at = 1, .key = STR("/b/c"), .text = STR("\"\"")}},
        {"place",
         {.revision = 2, .type = 0, .revision_at = 0, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"place",
         {.revision = 2, .type = 0, .revision_at = 2, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"place",
         {.revision = 2, .type = 0, .revision_at = 1, .key = STR("a/b/c"), .text = STR("")}},
        {"place",
         {.revision = 2, .type = 0, .revision_at = -5, .key = STR("a/b/c"), .text = STR("\"\"")}},
        {"larger",
         {.revision = 2, .type = 0, .revision_at = 1, .key = STR("a/b/c"), .text = {"", 0}}},
    };
    static char huge[OBJECT_MAX_BYTES + 1];
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct row row = cases[i].row;
        if (!strcmp(cases[i].name, "larger"))
            row.text = str_range(huge, sizeof(huge));
        row.checksum = row_checksum(&row);
        const char *fault = row_fault(&row);
        assert_non_null(fault);
        assert_non_null(strstr(fault, cases[i].name));
    }
}

TEST(sealed_row_is_judged_by_its_outside)
{
    struct row row = good_row();
    row.text = STR("\x01 whatever");
    row.checksum = row_checksum(&row);
    assert_true(row_is_sealed(&row));
    assert_null(row_fault(&row));
    assert_non_null(row_text_fault(&row));
    row.checksum++;
    assert_non_null(strstr(row_fault(&row), "checksum"));
    static char huge[OBJECT_MAX_BYTES + STORE_SEAL_MAX_BYTES + 1] = {ROW_SEALED_MARK};
    row.text = str_range(huge, sizeof(huge) - 1);
    row.checksum = row_checksum(&row);
    assert_null(row_fault(&row));
    row.text = str_range(huge, sizeof(huge));
    row.checksum = row_checksum(&row);
    assert_non_null(strstr(row_fault(&row), "larger"));
}

TEST(key_is_split_at_its_first_slash)
{
    struct str collection, rest;
    assert_int_equal(key_split(STR("nodes//edge-1"), &collection, &rest), 0);
    assert_str(collection, "nodes");
    assert_str(rest, "/edge-1");
    assert_int_equal(key_split(STR("nodes"), &collection, &rest), -EINVAL);
    assert_int_equal(key_split(STR("nodes/x"), &collection, &rest), -EINVAL);
    assert_int_equal(key_split(STR_NONE, &collection, &rest), -EINVAL);
}
