/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's certificates, seen by a device written here from the specification: it knows
 * OpenSSL and the messages, and nothing of the server's code. */
#include "device/controller_certs.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "eve/auth.pb-c.h"
#include "eve/certs.pb-c.h"
#include "pki/file.h"
#include "test.h"

#define LIFETIME_S 90000
#define MAX_CERTS 8

/* ---- a device ------------------------------------------------------------------------------- */

struct device {
    const char *root_file; /* /config/root-certificate.pem */
    X509 *signing;
    unsigned char signing_hash[32];
    unsigned char ecdh_hash[16];
    X509 *ecdh;
    size_t n_between;
};

static void device_done(struct device *d)
{
    X509_free(d->signing);
    X509_free(d->ecdh);
}

static X509 *read_pem(ProtobufCBinaryData pem)
{
    BIO *bio = BIO_new_mem_buf(pem.data, (int) pem.len);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return x;
}

/* As Go's Verify with its default of server authentication. */
static bool leads_to_root(const struct device *d, X509 *leaf, STACK_OF(X509) * between,
                          time_t now_s)
{
    X509_STORE *store = X509_STORE_new();
    assert_int_equal(X509_STORE_load_file(store, d->root_file), 1);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_CTX_init(ctx, store, leaf, between), 1);
    X509_STORE_CTX_set_time(ctx, 0, now_s);
    assert_int_equal(X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER), 1);
    bool ok = X509_verify_cert(ctx) == 1;
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return ok;
}

static bool is_p256(X509 *x)
{
    char group[32] = "";
    return EVP_PKEY_get_group_name(X509_get0_pubkey(x), group, sizeof(group), NULL) == 1 &&
           strcmp(group, "prime256v1") == 0;
}

/* The rules of GET certs: the whole answer is refused when one does not hold. */
static const char *judge(struct device *d, const Eve__Certs__ZControllerCert *m, time_t now_s,
                         STACK_OF(X509) * between)
{
    size_t n_signing = 0, n_ecdh = 0;
    device_done(d);
    d->signing = d->ecdh = NULL;
    for (size_t i = 0; i < m->n_certs; i++) {
        const Eve__Certs__ZCert *c = m->certs[i];
        unsigned char hash[32];
        SHA256(c->cert.data, c->cert.len, hash);
        X509 *x = read_pem(c->cert);
        if (!x)
            return "no certificate";
        if (c->hashalgo != 1 || c->certhash.len != 16 || memcmp(c->certhash.data, hash, 16) != 0) {
            X509_free(x);
            return "wrong hash";
        }
        if (c->type == 1 && n_signing++ == 0) {
            d->signing = x;
            memcpy(d->signing_hash, hash, 32);
        } else if (c->type == 3 && n_ecdh++ == 0) {
            d->ecdh = x;
            memcpy(d->ecdh_hash, hash, 16);
        } else if (c->type == 2) {
            sk_X509_push(between, x);
        } else {
            X509_free(x);
            return "a type too many";
        }
    }
    if (n_signing != 1 || n_ecdh != 1)
        return "not one of each";
    if (!is_p256(d->signing) || !is_p256(d->ecdh))
        return "not on P-256";
    if (!leads_to_root(d, d->signing, between, now_s))
        return "the signing certificate is not trusted";
    return leads_to_root(d, d->ecdh, between, now_s) ? NULL : "the ECDH certificate is not trusted";
}

static const char *device_get_certs_at(struct device *d, const struct controller_set *set,
                                       time_t now_s)
{
    Eve__Auth__AuthContainer *e = eve__auth__auth_container__unpack(
        NULL, set->certs_envelope.n, (const uint8_t *) set->certs_envelope.p);
    assert_non_null(e);
    ProtobufCBinaryData payload = e->protectedpayload->payload;
    assert_int_equal(payload.len, set->certs_message.n);
    assert_memory_equal(payload.data, set->certs_message.p, payload.len);
    Eve__Certs__ZControllerCert *m =
        eve__certs__zcontroller_cert__unpack(NULL, payload.len, payload.data);
    assert_non_null(m);
    STACK_OF(X509) *between = sk_X509_new_null();
    const char *wrong = judge(d, m, now_s, between);
    d->n_between = (size_t) sk_X509_num(between);
    sk_X509_pop_free(between, X509_free);
    eve__certs__zcontroller_cert__free_unpacked(m, NULL);
    eve__auth__auth_container__free_unpacked(e, NULL);
    return wrong;
}

static void device_get_certs(struct device *d, const struct controller_set *set)
{
    const char *wrong = device_get_certs_at(d, set, time(NULL));
    if (wrong)
        fail_msg("the device refuses the certificates: %s", wrong);
}

static bool is_signed(X509 *by, ProtobufCBinaryData payload, ProtobufCBinaryData raw)
{
    if (raw.len != 64)
        return false;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    ECDSA_SIG_set0(sig, BN_bin2bn(raw.data, 32, NULL), BN_bin2bn(raw.data + 32, 32, NULL));
    unsigned char *der = NULL;
    int n_der = i2d_ECDSA_SIG(sig, &der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, X509_get0_pubkey(by)) == 1 &&
              EVP_DigestVerify(ctx, der, (size_t) n_der,
                               payload.data ? payload.data : (uint8_t *) "", payload.len) == 1;
    EVP_MD_CTX_free(ctx);
    OPENSSL_free(der);
    ECDSA_SIG_free(sig);
    return ok;
}

enum verdict { GOOD, CERT_MISS, BAD_SIGNATURE };

static enum verdict device_receives(const struct device *d, struct str answer)
{
    Eve__Auth__AuthContainer *e =
        eve__auth__auth_container__unpack(NULL, answer.n, (const uint8_t *) answer.p);
    assert_non_null(e);
    enum verdict v = GOOD;
    size_t n = e->algo == 1 ? 16 : 32;
    if (e->sendercerthash.len != n || memcmp(e->sendercerthash.data, d->signing_hash, n) != 0)
        v = CERT_MISS;
    else if (!is_signed(d->signing, e->protectedpayload->payload, e->signaturehash))
        v = BAD_SIGNATURE;
    eve__auth__auth_container__free_unpacked(e, NULL);
    return v;
}

/* ---- a data directory ----------------------------------------------------------------------- */

struct place {
    char dir[64];
    struct arena *arena;
    struct pki_key *root_key;
    struct pki_cert *root;
    struct clock_virtual clock;
    struct controller_certs_options options;
    struct controller_certs *certs;
    struct device device;
};

static const char *path_of(struct place *p, const char *file)
{
    return arena_printf(p->arena, "%s/pki/%s", p->dir, file).p;
}

static void make_root(struct place *p)
{
    pki_key_free(p->root_key);
    pki_cert_free(p->root);
    p->root_key = pki_key_new();
    p->root = pki_cert_new(
        &(struct pki_cert_options){
            .common_name = STR("root"), .is_ca = true, .valid_days = 3650, .backdate_s = 200000},
        p->root_key, NULL, NULL);
    assert_int_equal(pki_key_save(p->root_key, path_of(p, "root-key.pem")), 0);
    assert_int_equal(pki_cert_save(p->root, path_of(p, "root-certificate.pem")), 0);
}

static void place_init(struct place *p)
{
    *p = (struct place){.arena = arena_new()};
    snprintf(p->dir, sizeof(p->dir), "/tmp/seth-certs-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    assert_int_equal(mkdir(arena_printf(p->arena, "%s/pki", p->dir).p, 0700), 0);
    make_root(p);
    clock_virtual_init(&p->clock, (int64_t) time(NULL) * 1000000);
    p->options = (struct controller_certs_options){.data_dir = p->dir,
                                                   .clock = &p->clock.clock,
                                                   .signing_cert_file = "",
                                                   .signing_key_file = "",
                                                   .ecdh_cert_file = "",
                                                   .ecdh_key_file = "",
                                                   .lifetime_s = LIFETIME_S};
    p->device.root_file = path_of(p, "root-certificate.pem");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void) st, (void) type, (void) f;
    return remove(path);
}

static void place_done(struct place *p)
{
    controller_certs_free(p->certs);
    device_done(&p->device);
    pki_key_free(p->root_key);
    pki_cert_free(p->root);
    arena_free(p->arena);
    assert_int_equal(nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
#define PLACE_AUTO CLEANUP(place_done) struct place

static void must(int r, char *error)
{
    if (r < 0)
        fail_msg("%d: %s", r, error ? error : "");
    assert_null(error);
}

static struct controller_set *open_certs(struct place *p)
{
    char *error = NULL;
    must(controller_certs_open(&p->options, &p->certs, &error), error);
    return controller_certs_get(p->certs);
}

static bool reload(struct place *p)
{
    char *error = NULL;
    bool changed = false;
    must(controller_certs_reload(p->certs, &changed, &error), error);
    return changed;
}

static bool renew(struct place *p)
{
    char *error = NULL;
    bool changed = false;
    must(controller_certs_renew(p->certs, &changed, &error), error);
    return changed;
}

static void rotate(struct place *p, unsigned which)
{
    char *error = NULL;
    must(controller_certs_rotate(p->dir, which, LIFETIME_S, &error), error);
}

static struct str seal(struct place *p, const struct controller_set *set)
{
    return envelope_seal(p->arena, &set->signer, STR("a configuration"));
}

static void drop(struct controller_set *set)
{
    bytes_unref(&set->bytes);
}

static struct str content(struct place *p, const char *file)
{
    BUF_AUTO b = {0};
    assert_int_equal(pki_file_read(path_of(p, file), &b), 0);
    return arena_str(p->arena, buf_str(&b));
}

static size_t count_kept(struct place *p)
{
    DIR *d = opendir(arena_printf(p->arena, "%s/pki", p->dir).p);
    size_t n = 0;
    for (struct dirent *e = NULL; (e = readdir(d));)
        n += str_starts_with(str_of(e->d_name), STR("ecdh-"));
    (void) closedir(d);
    return n;
}

/* ---- our own -------------------------------------------------------------------------------- */

TEST(device_believes_what_is_made_at_first_start)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *set = open_certs(&p);
    device_get_certs(&p.device, set);
    assert_int_equal(p.device.n_between, 0);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
    assert_int_equal(device_receives(&p.device, set->certs_envelope), GOOD);
    assert_memory_equal(p.device.signing_hash, set->signer.cert_hash, 32);
    assert_int_equal(set->ecdh_cert_hash.n, 16);
    assert_memory_equal(p.device.ecdh_hash, set->ecdh_cert_hash.p, 16);
    assert_true(set->config_hash.n > 0);
    assert_int_equal(set->n_old_keys, 0);
    assert_in_range(set->not_after_s, time(NULL) + LIFETIME_S - 60, time(NULL) + LIFETIME_S);
    drop(set);
}

TEST(device_with_a_slow_clock_believes_them_too)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *set = open_certs(&p);
    assert_null(device_get_certs_at(&p.device, set, time(NULL) - 23 * 3600));
    assert_string_equal(device_get_certs_at(&p.device, set, time(NULL) + LIFETIME_S + 60),
                        "the signing certificate is not trusted");
    drop(set);
}

TEST(keys_are_for_the_owner_alone)
{
    static const char *const files[] = {"signing.pem", "ecdh.pem"};
    PLACE_AUTO p;
    place_init(&p);
    drop(open_certs(&p));
    for (size_t i = 0; i < N_ELEMENTS(files); i++) {
        struct stat st;
        assert_int_equal(stat(path_of(&p, files[i]), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

TEST(restart_and_reload_change_nothing)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *set = open_certs(&p);
    struct str before = content(&p, "signing.pem"), hash = arena_str(p.arena, set->config_hash);
    assert_false(reload(&p));
    assert_false(renew(&p));
    controller_certs_free(TAKE(p.certs));
    drop(set);
    set = open_certs(&p);
    assert_true(str_eq(before, content(&p, "signing.pem")));
    assert_true(str_eq(hash, set->config_hash));
    assert_int_equal(set->n_old_keys, 0);
    drop(set);
}

TEST(own_are_made_anew_under_another_root)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *set = open_certs(&p);
    struct str old_hash = arena_str(p.arena, set->ecdh_cert_hash);
    drop(set);
    controller_certs_free(TAKE(p.certs));
    make_root(&p);
    set = open_certs(&p);
    device_get_certs(&p.device, set);
    assert_int_equal(set->n_old_keys, 1);
    assert_true(str_eq(set->old_keys[0].cert_hash, old_hash));
    drop(set);
}

TEST(damaged_file_is_not_overwritten)
{
    PLACE_AUTO p;
    place_init(&p);
    char *error = NULL;
    assert_int_equal(pki_file_write(path_of(&p, "ecdh.pem"), STR("not a key"), 0600), 0);
    assert_true(controller_certs_open(&p.options, &p.certs, &error) < 0);
    assert_non_null(strstr(error, "ecdh.pem"));
    assert_non_null(strstr(error, "restore it, or remove it"));
    mem_free(error);
    assert_str(content(&p, "ecdh.pem"), "not a key");
}

TEST(no_root_is_said)
{
    PLACE_AUTO p;
    place_init(&p);
    char *error = NULL;
    assert_int_equal(unlink(path_of(&p, "root-certificate.pem")), 0);
    assert_int_equal(controller_certs_open(&p.options, &p.certs, &error), -ENOENT);
    assert_non_null(strstr(error, "no server has been started with this --data-dir"));
    mem_free(TAKE(error));
    assert_int_equal(controller_certs_rotate(p.dir, CONTROLLER_SIGNING, LIFETIME_S, &error),
                     -ENOENT);
    assert_non_null(strstr(error, "no server has been started with this --data-dir"));
    mem_free(error);
}

/* ---- rotation ------------------------------------------------------------------------------- */

TEST(device_follows_a_new_signing_certificate)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *old = open_certs(&p);
    device_get_certs(&p.device, old);
    struct str answer = seal(&p, old);
    rotate(&p, CONTROLLER_SIGNING);
    assert_true(reload(&p));
    struct controller_set *set = controller_certs_get(p.certs);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), CERT_MISS);
    assert_int_equal(device_receives(&p.device, answer), GOOD);
    device_get_certs(&p.device, set);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
    assert_int_equal(device_receives(&p.device, answer), CERT_MISS);
    assert_false(str_eq(old->config_hash, set->config_hash));
    assert_true(str_eq(old->ecdh_cert_hash, set->ecdh_cert_hash));
    assert_int_equal(set->n_old_keys, 0);
    drop(set);
    drop(old);
}

TEST(new_ecdh_certificate_shows_in_the_config_hash_alone)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *old = open_certs(&p);
    device_get_certs(&p.device, old);
    rotate(&p, CONTROLLER_ECDH);
    assert_true(reload(&p));
    struct controller_set *set = controller_certs_get(p.certs);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
    assert_false(str_eq(old->config_hash, set->config_hash));
    assert_false(str_eq(old->ecdh_cert_hash, set->ecdh_cert_hash));
    device_get_certs(&p.device, set);
    assert_memory_equal(p.device.ecdh_hash, set->ecdh_cert_hash.p, 16);
    drop(set);
    drop(old);
}

static void point(const struct pki_key *key, const struct pki_public *with, unsigned char out[64])
{
    assert_int_equal(pki_ecdh_point(key, with, out), 0);
}

TEST(keys_of_the_past_still_open_what_they_sealed)
{
    PLACE_AUTO p;
    place_init(&p);
    CLEANUP(pki_key_freep) struct pki_key *device_key = pki_key_new();
    CLEANUP(pki_public_freep) struct pki_public *device = pki_public_of_key(device_key);
    unsigned char sealed_with[3][64];
    struct str hashes[3];
    drop(open_certs(&p));
    for (size_t i = 0; i < 3; i++) {
        struct controller_set *set = controller_certs_get(p.certs);
        point(set->ecdh_key, device, sealed_with[i]);
        hashes[i] = arena_str(p.arena, set->ecdh_cert_hash);
        drop(set);
        rotate(&p, CONTROLLER_ECDH);
        assert_true(reload(&p));
    }
    controller_certs_free(TAKE(p.certs));
    struct controller_set *set = open_certs(&p);
    assert_int_equal(set->n_old_keys, 3);
    for (size_t i = 0; i < 3; i++) {
        unsigned char opens[64];
        assert_true(str_eq(set->old_keys[i].cert_hash, hashes[2 - i]));
        point(set->old_keys[i].key, device, opens);
        assert_memory_equal(opens, sealed_with[2 - i], 64);
    }
    assert_int_equal(count_kept(&p), 4);
    drop(set);
}

TEST(rotation_before_the_first_reload_loses_no_key)
{
    PLACE_AUTO p;
    place_init(&p);
    rotate(&p, CONTROLLER_ECDH | CONTROLLER_SIGNING);
    rotate(&p, CONTROLLER_ECDH);
    struct controller_set *set = open_certs(&p);
    device_get_certs(&p.device, set);
    assert_int_equal(set->n_old_keys, 1);
    drop(set);
}

TEST(damaged_key_of_the_past_is_passed_over)
{
    PLACE_AUTO p;
    place_init(&p);
    drop(open_certs(&p));
    rotate(&p, CONTROLLER_ECDH);
    assert_int_equal(pki_file_write(path_of(&p, "ecdh-00.pem"), STR("damaged"), 0600), 0);
    assert_true(reload(&p));
    struct controller_set *set = controller_certs_get(p.certs);
    assert_int_equal(set->n_old_keys, 1);
    drop(set);
}

TEST(failed_reload_keeps_the_old)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *old = open_certs(&p);
    char *error = NULL;
    bool changed = true;
    assert_int_equal(pki_file_write(path_of(&p, "signing.pem"), STR("damaged"), 0600), 0);
    assert_true(controller_certs_reload(p.certs, &changed, &error) < 0);
    assert_false(changed);
    assert_non_null(error);
    mem_free(error);
    struct controller_set *set = controller_certs_get(p.certs);
    assert_ptr_equal(set, old);
    drop(set);
    drop(old);
}

TEST(own_are_renewed_in_the_last_third_of_their_life)
{
    PLACE_AUTO p;
    place_init(&p);
    struct controller_set *old = open_certs(&p);
    device_get_certs(&p.device, old);
    int64_t start_us = p.clock.now_us;
    p.clock.now_us = start_us + (int64_t) (LIFETIME_S * 2 / 3 - 60) * 1000000;
    assert_false(renew(&p));
    p.clock.now_us = start_us + (int64_t) (LIFETIME_S * 2 / 3 + 60) * 1000000;
    assert_true(renew(&p));
    struct controller_set *set = controller_certs_get(p.certs);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), CERT_MISS);
    assert_int_equal(set->n_old_keys, 1);
    device_get_certs(&p.device, set);
    assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
    drop(set);
    drop(old);
}

/* What root does must be of use to a server that runs as somebody else. */
TEST(new_files_belong_to_whom_the_directory_belongs_to)
{
    /* Whoever is not root can own files only themselves, and they are to. */
    uid_t user = geteuid() == 0 ? 65534 : geteuid();
    gid_t group = geteuid() == 0 ? 65533 : getegid();
    PLACE_AUTO p;
    place_init(&p);
    assert_int_equal(chown(arena_printf(p.arena, "%s/pki", p.dir).p, user, group), 0);
    rotate(&p, CONTROLLER_SIGNING | CONTROLLER_ECDH);
    struct stat st;
    assert_int_equal(stat(path_of(&p, "signing.pem"), &st), 0);
    assert_int_equal(st.st_uid, user);
    assert_int_equal(st.st_gid, group);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void *use_sets(void *arg)
{
    struct place *p = arg;
    for (int i = 0; i < 200; i++) {
        ARENA_AUTO a = arena_new();
        struct controller_set *set = controller_certs_get(p->certs);
        struct str sealed = envelope_seal(a, &set->signer, set->certs_message);
        drop(set);
        if (!sealed.p)
            return arg;
    }
    return NULL;
}

TEST(sets_are_used_by_others_while_they_change)
{
    PLACE_AUTO p;
    place_init(&p);
    pthread_t threads[3];
    drop(open_certs(&p));
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_sets, &p), 0);
    for (int i = 0; i < 6; i++) {
        rotate(&p, i % 2 ? CONTROLLER_SIGNING : CONTROLLER_ECDH);
        assert_true(reload(&p));
    }
    for (size_t i = 0; i < N_ELEMENTS(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* ---- given by an operator ------------------------------------------------------------------- */

static void save_key(struct place *p, const char *file, EVP_PKEY *key)
{
    FILE *f = fopen(path_of(p, file), "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    (void) fclose(f);
}

static void save_certs(struct place *p, const char *file, const struct pki_cert *first,
                       const struct pki_cert *second)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("  text that people put before\n"));
    buf_append_str(&b, pki_cert_pem(p->arena, first));
    buf_append_str(&b, STR("\n\n"));
    if (second)
        buf_append_str(&b, pki_cert_pem(p->arena, second));
    assert_int_equal(pki_file_write(path_of(p, file), buf_str(&b), 0644), 0);
}

struct given {
    const char *curve;
    bool for_client, for_server;
    int64_t valid_s;
    bool has_intermediate, omits_intermediate, is_other_root, has_other_key;
    const char *expected; /* NULL: it is good */
};

/* A certificate for `role`.pem and its key in `role`.key as the case says. */
static void give(struct place *p, const struct given *g, const char *role)
{
    const char *cert_file = arena_printf(p->arena, "given-%s.pem", role).p,
               *key_file = arena_printf(p->arena, "given-%s.key", role).p;
    EVP_PKEY *pkey = EVP_EC_gen(g->curve ? g->curve : "P-256");
    save_key(p, key_file, pkey);
    EVP_PKEY_free(pkey);
    CLEANUP(pki_key_freep) struct pki_key *key = NULL;
    assert_int_equal(pki_key_load(path_of(p, key_file), &key), 0);
    CLEANUP(pki_key_freep) struct pki_key *middle_key = pki_key_new();
    CLEANUP(pki_key_freep) struct pki_key *other_key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *other = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("other"), .is_ca = true, .valid_days = 9},
        other_key, NULL, NULL);
    const struct pki_cert *root = g->is_other_root ? other : p->root;
    const struct pki_key *root_key = g->is_other_root ? other_key : p->root_key;
    CLEANUP(pki_cert_freep)
    struct pki_cert *middle = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("middle"), .is_ca = true, .valid_days = 9},
        middle_key, root, root_key);
    CLEANUP(pki_cert_freep)
    struct pki_cert *leaf = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("leaf"),
                                   .for_client = g->for_client,
                                   .for_server = g->for_server,
                                   .valid_s = g->valid_s ? g->valid_s : 86400},
        key, g->has_intermediate ? middle : root, g->has_intermediate ? middle_key : root_key);
    save_certs(p, cert_file, leaf, g->has_intermediate && !g->omits_intermediate ? middle : NULL);
    if (g->has_other_key)
        assert_int_equal(pki_key_save(other_key, path_of(p, key_file)), 0);
}

static void use_given_signing(struct place *p)
{
    p->options.signing_cert_file = path_of(p, "given-signing.pem");
    p->options.signing_key_file = path_of(p, "given-signing.key");
}

TEST(given_certificates_are_checked_as_devices_do)
{
    static const struct given cases[] = {
        {.expected = NULL},
        {.for_server = true},
        {.for_server = true, .for_client = true},
        {.has_intermediate = true},
        {.for_client = true, .expected = "serverAuth"},
        {.curve = "P-384", .expected = "P-256"},
        {.valid_s = -10, .expected = "expired"},
        {.has_intermediate = true, .omits_intermediate = true, .expected = "issuer"},
        {.is_other_root = true, .expected = "device-roots.pem"},
        {.has_other_key = true, .expected = "not of this key"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        PLACE_AUTO p;
        place_init(&p);
        char *error = NULL;
        give(&p, &cases[i], "signing");
        use_given_signing(&p);
        int r = controller_certs_open(&p.options, &p.certs, &error);
        if (!cases[i].expected) {
            must(r, error);
            struct controller_set *set = controller_certs_get(p.certs);
            device_get_certs(&p.device, set);
            assert_int_equal(p.device.n_between, cases[i].has_intermediate);
            assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
            drop(set);
            continue;
        }
        if (r >= 0 || !strstr(error, cases[i].expected) || !strstr(error, "given-signing.pem"))
            fail_msg("case %zu: %d %s", i, r, error);
        mem_free(error);
    }
}

TEST(intermediate_of_both_is_sent_once)
{
    PLACE_AUTO p;
    place_init(&p);
    give(&p, &(struct given){.has_intermediate = true}, "signing");
    use_given_signing(&p);
    p.options.ecdh_cert_file = p.options.signing_cert_file;
    p.options.ecdh_key_file = p.options.signing_key_file;
    struct controller_set *set = open_certs(&p);
    device_get_certs(&p.device, set);
    assert_int_equal(p.device.n_between, 1);
    drop(set);
}

TEST(further_roots_of_devices_are_trusted_and_handed_out)
{
    PLACE_AUTO p;
    place_init(&p);
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_key_freep) struct pki_key *leaf_key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *root = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("theirs"), .is_ca = true, .valid_days = 9},
        key, NULL, NULL);
    CLEANUP(pki_cert_freep)
    struct pki_cert *leaf =
        pki_cert_new(&(struct pki_cert_options){.common_name = STR("leaf"), .valid_days = 3},
                     leaf_key, root, key);
    save_certs(&p, "given-signing.pem", leaf, NULL);
    assert_int_equal(pki_key_save(leaf_key, path_of(&p, "given-signing.key")), 0);
    save_certs(&p, "device-roots.pem", root, NULL);
    use_given_signing(&p);
    struct controller_set *set = open_certs(&p);
    struct str roots = STR_NONE;
    char *error = NULL;
    must(controller_roots_pem(p.arena, p.dir, &roots, &error), error);
    assert_int_equal(pki_file_write(path_of(&p, "config.pem"), roots, 0644), 0);
    p.device.root_file = path_of(&p, "config.pem");
    device_get_certs(&p.device, set);
    drop(set);
}

TEST(given_files_are_read_again_and_never_renewed)
{
    PLACE_AUTO p;
    place_init(&p);
    struct given g = {.valid_s = 600};
    give(&p, &g, "signing");
    give(&p, &g, "ecdh");
    use_given_signing(&p);
    p.options.ecdh_cert_file = path_of(&p, "given-ecdh.pem");
    p.options.ecdh_key_file = path_of(&p, "given-ecdh.key");
    struct controller_set *old = open_certs(&p);
    device_get_certs(&p.device, old);
    assert_false(renew(&p));
    assert_int_equal(access(path_of(&p, "signing.pem"), F_OK), -1);
    give(&p, &g, "ecdh");
    assert_true(reload(&p));
    struct controller_set *set = controller_certs_get(p.certs);
    assert_int_equal(set->n_old_keys, 1);
    assert_true(str_eq(set->old_keys[0].cert_hash, old->ecdh_cert_hash));
    assert_int_equal(device_receives(&p.device, seal(&p, set)), GOOD);
    drop(set);
    drop(old);
}

TEST(key_may_stand_in_the_certificate_file)
{
    PLACE_AUTO p;
    place_init(&p);
    rotate(&p, CONTROLLER_SIGNING);
    p.options.signing_cert_file = path_of(&p, "signing.pem");
    struct controller_set *set = open_certs(&p);
    device_get_certs(&p.device, set);
    drop(set);
}
