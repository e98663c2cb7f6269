/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/chain.h"

#include <errno.h>
#include <time.h>

#include "base/buf.h"
#include "test.h"

/* A root, an authority under it and a leaf under that. */
struct family {
    struct arena *arena;
    struct pki_key *root_key, *middle_key, *leaf_key;
    struct pki_cert *root, *middle, *leaf;
};

static void family_init(struct family *f, struct pki_cert_options middle,
                        struct pki_cert_options leaf)
{
    *f = (struct family){.arena = arena_new(),
                         .root_key = pki_key_new(),
                         .middle_key = pki_key_new(),
                         .leaf_key = pki_key_new()};
    middle.common_name = STR("middle");
    middle.valid_days = 2;
    leaf.common_name = STR("leaf");
    leaf.valid_days = 1;
    f->root = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("root"), .is_ca = true, .valid_days = 3},
        f->root_key, NULL, NULL);
    f->middle = pki_cert_new(&middle, f->middle_key, f->root, f->root_key);
    f->leaf = pki_cert_new(&leaf, f->leaf_key, f->middle, f->middle_key);
}

static void family_done(struct family *f)
{
    pki_key_free(f->root_key);
    pki_key_free(f->middle_key);
    pki_key_free(f->leaf_key);
    pki_cert_free(f->root);
    pki_cert_free(f->middle);
    pki_cert_free(f->leaf);
    arena_free(f->arena);
}
#define FAMILY_AUTO CLEANUP(family_done) struct family

static void add(struct family *f, struct pki_chain *chain, const struct pki_cert *c)
{
    assert_int_equal(pki_chain_parse(pki_cert_pem(f->arena, c), chain), 0);
}

TEST(text_around_certificates_is_passed_over)
{
    FAMILY_AUTO f;
    family_init(&f, (struct pki_cert_options){.is_ca = true},
                (struct pki_cert_options){.is_ca = false});
    PKI_CHAIN_AUTO chain = {0};
    BUF_AUTO b = {0};
    CLEANUP(pki_key_freep) struct pki_key *key = NULL;
    buf_append_str(&b, STR("a comment\r\n"));
    buf_append_str(&b, pki_key_pem(f.arena, f.leaf_key));
    buf_append_str(&b, pki_cert_pem(f.arena, f.leaf));
    buf_append_str(&b, STR("\n\nanother\n"));
    buf_append_str(&b, pki_cert_pem(f.arena, f.middle));
    assert_int_equal(pki_chain_parse(buf_str(&b), &chain), 0);
    assert_int_equal(chain.n, 2);
    assert_str(pki_cert_common_name(f.arena, chain.certs[0]), "leaf");
    assert_str(pki_cert_common_name(f.arena, chain.certs[1]), "middle");
    assert_int_equal(pki_key_parse(buf_str(&b), &key), 0);
    assert_true(pki_key_fits(key, chain.certs[0]));
    assert_false(pki_key_fits(key, chain.certs[1]));
    assert_true(pki_key_is_p256(key));
}

TEST(what_is_no_chain_is_refused)
{
    FAMILY_AUTO f;
    family_init(&f, (struct pki_cert_options){.is_ca = true},
                (struct pki_cert_options){.is_ca = false});
    struct str good = pki_cert_pem(f.arena, f.leaf);
    BUF_AUTO many = {0};
    for (int i = 0; i <= PKI_CHAIN_MAX; i++)
        buf_append_str(&many, good);
    char *damaged = arena_strz(f.arena, good);
    damaged[100] = '!';
    const struct {
        struct str text;
        int expected;
    } cases[] = {
        {STR(""), -EINVAL},
        {STR("no certificate"), -EINVAL},
        {str_of(damaged), -EINVAL},
        {str_sub(good, 0, good.n - 10), -EINVAL},
        {arena_printf(f.arena, "%.*s%s", STR_ARG(good), damaged), -EINVAL},
        {pki_key_pem(f.arena, f.leaf_key), -EINVAL},
        {buf_str(&many), -E2BIG},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        PKI_CHAIN_AUTO chain = {0};
        int r = pki_chain_parse(cases[i].text, &chain);
        if (r != cases[i].expected)
            fail_msg("case %zu: %d", i, r);
    }
}

static int verify(const struct pki_chain *chain, const struct pki_chain *roots, int64_t at_s)
{
    PKI_CHAIN_AUTO between = {0};
    const char *reason = NULL;
    int r = pki_chain_verify(chain, roots, at_s, &between, &reason);
    assert_int_equal(r < 0, reason != NULL);
    return r < 0 ? r : (int) between.n;
}

TEST(chain_leads_to_a_root)
{
    FAMILY_AUTO f;
    family_init(&f, (struct pki_cert_options){.is_ca = true},
                (struct pki_cert_options){.is_ca = false});
    PKI_CHAIN_AUTO chain = {0}, leaf = {0}, roots = {0}, middle_alone = {0};
    int64_t now_s = time(NULL);
    add(&f, &leaf, f.leaf);
    add(&f, &chain, f.leaf);
    add(&f, &chain, f.root); /* useless, and in the wrong place */
    add(&f, &chain, f.middle);
    add(&f, &roots, f.root);
    add(&f, &middle_alone, f.middle);
    assert_int_equal(verify(&chain, &roots, now_s), 1);
    assert_int_equal(verify(&leaf, &roots, now_s), -EKEYREJECTED);
    assert_int_equal(verify(&leaf, &middle_alone, now_s), 0); /* trusted, though not self-signed */
    assert_int_equal(verify(&chain, &roots, now_s + 25 * 3600), -EKEYREJECTED);
    assert_int_equal(verify(&chain, &roots, now_s - 3600), -EKEYREJECTED);
}

TEST(every_certificate_of_the_chain_must_allow_it)
{
    static const struct {
        struct pki_cert_options middle, leaf;
        int expected;
    } cases[] = {
        {{.is_ca = true}, {.for_server = true}, 1},
        {{.is_ca = true, .for_server = true}, {.is_ca = false}, 1},
        {{.is_ca = true}, {.for_client = true}, -EKEYREJECTED},
        {{.is_ca = true, .for_client = true}, {.for_server = true}, -EKEYREJECTED},
        {{.is_ca = false}, {.is_ca = false}, -EKEYREJECTED},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        FAMILY_AUTO f;
        family_init(&f, cases[i].middle, cases[i].leaf);
        PKI_CHAIN_AUTO chain = {0}, roots = {0};
        add(&f, &chain, f.leaf);
        add(&f, &chain, f.middle);
        add(&f, &roots, f.root);
        if (verify(&chain, &roots, time(NULL)) != cases[i].expected)
            fail_msg("case %zu", i);
    }
}

TEST(names_are_read_back)
{
    static const struct str names[] = {STR("ctl.example.org"), STR("192.0.2.1"), STR("2001:db8::1"),
                                       STR("*.example.org")};
    FAMILY_AUTO f;
    family_init(&f, (struct pki_cert_options){.is_ca = true},
                (struct pki_cert_options){.names = names, .n_names = N_ELEMENTS(names)});
    struct str *found = NULL;
    assert_int_equal(pki_cert_names(f.arena, f.leaf, &found), N_ELEMENTS(names));
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        assert_true(str_eq(found[i], names[i]));
    assert_int_equal(pki_cert_names(f.arena, f.middle, &found), 0);
}
