/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "eve/certs.pb-c.h"
#include "eve/envelope.h"
#include "pki/file.h"
#include "protobuf/message.h"

#define MAX_TURNS 20000 /* of a millisecond and more */

/* ---- authorities --------------------------------------------------------------------------- */

struct authority authority_new(const char *name, bool is_ca, const struct authority *by)
{
    struct authority a = {.key = pki_key_new()};
    const struct pki_cert_options o = {
        .common_name = str_of(name), .is_ca = is_ca, .valid_days = 100};
    a.cert = pki_cert_new(&o, a.key, by ? by->cert : NULL, by ? by->key : NULL);
    assert_non_null(a.cert);
    return a;
}

void authority_done(struct authority *a)
{
    pki_cert_free(a->cert);
    pki_key_free(a->key);
}

struct str device_certs(struct device *d, const struct device_cert *certs, size_t n)
{
    Eve__Certs__ZControllerCert m = EVE__CERTS__ZCONTROLLER_CERT__INIT;
    m.certs = ARENA_ARRAY(d->arena, Eve__Certs__ZCert *, n);
    m.n_certs = n;
    for (size_t i = 0; i < n; i++) {
        const struct str pem = pki_cert_pem(d->arena, certs[i].of->cert);
        unsigned char *hash = arena_alloc(d->arena, SHA256_BYTES);
        pki_sha256(pem, hash);
        m.certs[i] = ARENA_NEW(d->arena, Eve__Certs__ZCert);
        eve__certs__zcert__init(m.certs[i]);
        m.certs[i]->type = (Eve__Certs__ZCertType) certs[i].type;
        m.certs[i]->cert = pb_data(pem);
        m.certs[i]->certhash = pb_data(str_range((char *) hash, SHA256_BYTES));
        m.certs[i]->hashalgo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_32BYTES;
    }
    return pb_pack(d->arena, &m.base);
}

struct str device_good_certs(struct device *d)
{
    const struct device_cert certs[] = {
        {EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING, &d->signing},
        {EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE, &d->between},
        {EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE, &d->exchange},
    };
    return device_certs(d, certs, N_ELEMENTS(certs));
}

struct str device_seal(struct device *d, const struct authority *by, struct str payload)
{
    struct envelope_signer signer = {.key = by->key};
    pki_sha256(pki_cert_pem(d->arena, by->cert), signer.cert_hash);
    const struct str sealed = envelope_seal(d->arena, &signer, payload);
    assert_non_null(sealed.p);
    return sealed;
}

/* ---- files --------------------------------------------------------------------------------- */

const char *device_path(struct device *d, const char *below)
{
    return arena_printf(d->arena, "%s/%s", d->root, below).p;
}

void device_write(struct device *d, const char *below, struct str content)
{
    assert_int_equal(pki_file_write(device_path(d, below), content, 0600), 0);
}

struct str device_read(struct device *d, const char *below)
{
    BUF_AUTO content = {0};
    if (pki_file_read(device_path(d, below), &content) < 0)
        return STR_NONE;
    return arena_str(d->arena, buf_str(&content));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void) st;
    (void) type;
    (void) at;
    return remove(path);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void on_turn(void *arg)
{
    struct device *d = arg;
    d->n_turns++;
    if (d->is_so(d->arg) || d->n_turns > MAX_TURNS)
        loop_stop(d->loop);
}

void device_run_until(struct device *d, bool (*is_so)(void *arg), void *arg)
{
    d->is_so = is_so;
    d->arg = arg;
    d->n_turns = 0;
    loop_timer_start(d->timer, 1, 1);
    loop_run(d->loop);
    loop_timer_stop(d->timer);
    if (d->n_turns > MAX_TURNS)
        fail_msg("what was waited for has not come");
}

struct turns {
    const struct device *device;
    int n;
};

static bool are_over(void *arg)
{
    const struct turns *t = arg;
    return t->device->n_turns >= t->n;
}

void device_run_turns(struct device *d, int n)
{
    struct turns t = {d, n};
    device_run_until(d, are_over, &t);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR(" serial-1 \n")};
    return 0;
}

static int set_hostname(struct machine *m, struct str name)
{
    (void) m;
    (void) name;
    return 0;
}

void device_init(struct device *d)
{
    static const struct machine_functions functions = {
        .name = "test", .identity = identity, .set_hostname = set_hostname};
    *d = (struct device){.root = "/tmp/test-node-XXXXXX", .machine = {&functions}};
    assert_non_null(mkdtemp(d->root));
    d->arena = arena_new();
    d->loop = loop_new();
    d->timer = loop_timer_new(d->loop, on_turn, d);
    clock_virtual_init(&d->clock, clock_system.wall_us(&clock_system));
    d->authority = authority_new("root", /* is_ca= */ true, NULL);
    d->between = authority_new("between", /* is_ca= */ true, &d->authority);
    d->signing = authority_new("signing", /* is_ca= */ false, &d->between);
    d->exchange = authority_new("exchange", /* is_ca= */ false, &d->between);
    assert_int_equal(mkdir(device_path(d, "config"), 0700), 0);
    device_write(d, "config/server", STR("controller.example:443\n"));
    device_write(d, "config/root-certificate.pem", pki_cert_pem(d->arena, d->authority.cert));
}

void device_start(struct device *d, bool is_simulated)
{
    char *error = NULL;
    const struct node_options o = {
        .loop = d->loop,
        .clock = &d->clock.clock,
        .machine = &d->machine,
        .wire = d->wire,
        .directories = {device_path(d, "config"), device_path(d, "persist"), device_path(d, "run")},
        .is_simulated = is_simulated};
    if (node_new(&o, &d->node, &error) < 0)
        fail_msg("%s", error);
}

void device_stop(struct device *d)
{
    node_free(TAKE(d->node));
    loop_settle(d->loop);
}

void device_done(struct device *d)
{
    device_stop(d);
    loop_timer_free(d->timer);
    loop_settle(d->loop);
    loop_free(d->loop);
    authority_done(&d->authority);
    authority_done(&d->between);
    authority_done(&d->signing);
    authority_done(&d->exchange);
    (void) nftw(d->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_free(d->arena);
}
