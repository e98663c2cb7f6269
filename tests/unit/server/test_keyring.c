/* SPDX-License-Identifier: Apache-2.0 */
#include "keyring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "test.h"

/* Wraps and unwraps by turning the highest bit of each byte; the verb goes into a comment. */
#define SWAP "base64 -d | LC_ALL=C tr '\\000-\\177\\200-\\377' '\\200-\\377\\000-\\177' | base64 #"

struct fixture {
    char directory[32];
    char path[64];
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.directory = "/tmp/seth-keys-XXXXXX"};
    assert_non_null(mkdtemp(f->directory));
    (void) snprintf(f->path, sizeof(f->path), "%s/keys.yaml", f->directory);
}

static void fixture_done(struct fixture *f)
{
    (void) unlink(f->path);
    assert_int_equal(rmdir(f->directory), 0);
}

static void assert_same(const struct keyring *a, const struct keyring *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_memory_equal(a->keys[i].id, b->keys[i].id, KEY_ID_BYTES);
        assert_memory_equal(a->keys[i].secret, b->keys[i].secret, AEAD_KEY_BYTES);
        assert_string_equal(a->keys[i].created, b->keys[i].created);
    }
}

static void round_trip(const char *command, size_t n_keys)
{
    struct fixture f;
    fixture_init(&f);
    struct keyring ring = {0}, again = {0};
    char *error = NULL;
    for (size_t i = 0; i < n_keys; i++)
        assert_int_equal(keyring_add(&ring), 0);
    assert_int_equal(keyring_save(&ring, f.path, command, &error), 0);
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(keyring_load(&again, f.path, command, &error), 0);
    assert_same(&ring, &again);
    assert_int_equal(keyring_is_wrapped(&again), command[0] != 0);
    keyring_done(&ring);
    keyring_done(&again);
    fixture_done(&f);
}

TEST(what_is_saved_can_be_loaded)
{
    round_trip("", 1);
    round_trip("", KEYRING_MAX_KEYS);
    round_trip(SWAP, 2);
}

TEST(saving_leaves_nothing_of_an_interrupted_one)
{
    struct fixture f;
    fixture_init(&f);
    struct keyring ring = {0};
    char *error = NULL, remains[80];
    (void) snprintf(remains, sizeof(remains), "%s.new", f.path);
    FILE *file = fopen(remains, "w");
    assert_non_null(file);
    assert_true(fputs("keys: half of", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(remains, 0644), 0);
    (void) keyring_add(&ring);
    assert_int_equal(keyring_save(&ring, f.path, "", &error), 0);
    assert_int_equal(access(remains, F_OK), -1);
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct keyring again = {0};
    assert_int_equal(keyring_load(&again, f.path, "", &error), 0);
    assert_same(&ring, &again);
    keyring_done(&ring);
    keyring_done(&again);
    fixture_done(&f);
}

TEST(newest_key_stands_first_and_the_others_can_go)
{
    struct keyring ring = {0};
    assert_int_equal(keyring_add(&ring), 0);
    struct keyring_key old = ring.keys[0];
    assert_int_equal(keyring_add(&ring), 0);
    assert_int_equal(ring.n, 2);
    assert_memory_equal(ring.keys[1].secret, old.secret, AEAD_KEY_BYTES);
    assert_memory_not_equal(ring.keys[0].secret, old.secret, AEAD_KEY_BYTES);
    assert_ptr_equal(keyring_find(&ring, old.id), &ring.keys[1]);
    keyring_drop_all_but_first(&ring);
    assert_int_equal(ring.n, 1);
    assert_null(keyring_find(&ring, old.id));
    while (ring.n < KEYRING_MAX_KEYS)
        assert_int_equal(keyring_add(&ring), 0);
    assert_int_equal(keyring_add(&ring), -ENOSPC);
    keyring_done(&ring);
}

TEST(missing_file_is_told_apart_from_an_unreadable_one)
{
    struct keyring ring = {0};
    char *error = NULL;
    assert_int_equal(keyring_load(&ring, "/nonexistent/keys.yaml", "", &error), -ENOENT);
    assert_null(error);
    assert_int_equal(keyring_load(&ring, "/tmp", "", &error), -EISDIR);
    assert_non_null(strstr(error, "/tmp"));
    mem_free(error);
}

/* The key of 32 zero bytes and its id. */
#define ZERO "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define ZERO_ID "fc767b53b246e16c"

TEST(known_key_has_its_known_id)
{
    struct keyring ring = {0};
    char *error = NULL;
    assert_int_equal(keyring_parse(&ring, STR("keys:\n- {id: \"" ZERO_ID "\", secret: " ZERO "}"),
                                   "f", "", &error),
                     0);
    assert_int_equal(ring.n, 1);
    keyring_done(&ring);
}

TEST(nonsense_is_refused_by_the_name_of_the_file)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "between 1 and 16"},
        {"{", "no readable key file"},
        {"7", "between 1 and 16"},
        {"keys:", "between 1 and 16"},
        {"keys: {a: b}", "between 1 and 16"},
        {"keys: [1]", "must have its id"},
        {"keys: [{id: x}]", "must have its id"},
        {"keys: [{secret: " ZERO "}]", "must have its id"},
        {"keys: [{id: x, secret: a, wrapped: b}]", "must have its id"},
        {"keys: [{id: \"" ZERO_ID "\", secret: AAAA}]", "base64 of 32 bytes"},
        {"keys: [{id: \"" ZERO_ID "\", secret: \"*\"}]", "base64 of 32 bytes"},
        {"keys: [{id: \"0123456789abcdef\", secret: " ZERO "}]", "another one"},
        {"keys: [{id: \"" ZERO_ID "\", wrapped: " ZERO "}]", "--encryption-key-command"},
        {"keys: [{id: \"" ZERO_ID "\", secret: " ZERO
         ", created: \"a date much longer than any\"}]",
         "must have its id"},
        {"keys: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "this one more"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct keyring ring = {0};
        char *error = NULL;
        int r = keyring_parse(&ring, str_of(cases[i].text), "the-file", "", &error);
        if (r >= 0 || !strstr(error, "the-file") || !strstr(error, cases[i].words))
            fail_msg("%s: %d %s", cases[i].text, r, error ? error : "");
        assert_int_equal(ring.n, 0);
        assert_null(strstr(error, ZERO));
        mem_free(error);
    }
}

TEST(command_that_cannot_undo_its_wrapping_saves_nothing)
{
    static const struct {
        const char *command, *words;
    } cases[] = {
        {"cat; exit 1;:", "exit code 1"},   {"echo '***' #", "does not print base64"},
        {"true", "does not print base64"},  {"echo " ZERO " #", "does not give back"},
        {"echo AAAA #", "base64 of a key"},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct keyring ring = {0};
        char *error = NULL;
        (void) keyring_add(&ring);
        assert_true(keyring_save(&ring, f.path, cases[i].command, &error) < 0);
        if (!strstr(error, cases[i].words))
            fail_msg("%s: %s", cases[i].command, error);
        assert_int_equal(access(f.path, F_OK), -1);
        mem_free(error);
        keyring_done(&ring);
    }
    fixture_done(&f);
}
