/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are no registration, or not by whom they say. */
#include "base/base64.h"
#include "eve/register.pb-c.h"
#include "test.h"
#include "world.h"

struct fixture {
    struct world w;
    struct identity device, onboard;
};

static void open_fixture(struct fixture *f)
{
    world_open(&f->w);
    identity_init(&f->w, &f->device, "EVE", NULL, 3650);
    identity_init(&f->w, &f->onboard, "onboarding", NULL, 3650);
}

static void close_fixture(struct fixture *f)
{
    identity_done(&f->device);
    identity_done(&f->onboard);
    world_close(&f->w);
}
#define FIXTURE(f) \
    CLEANUP(close_fixture) struct fixture f; \
    open_fixture(&f)

struct bad {
    struct arena *arena;
    struct device_call call;
    Eve__Register__ZRegisterMsg message;
    struct str payload; /* instead of the message */
    const struct identity *signer;
};

static int send_bad(struct fixture *f, void (*spoil)(struct fixture *f, struct bad *b))
{
    ARENA_AUTO a = arena_new();
    unsigned char signature[PKI_RAW_SIGNATURE_BYTES];
    struct bad b = {.arena = a, .signer = &f->onboard};
    eve__register__zregister_msg__init(&b.message);
    b.message.pemcert = pb_data(base64_encode(a, f->device.pem, BASE64_STANDARD));
    b.message.serial = (char *) "S1";
    b.call = (struct device_call){
        .api = &f->w.api,
        .arena = a,
        .envelope = {.sender_hash = str_range((const char *) f->onboard.hash, SHA256_BYTES),
                     .sender_cert = base64_encode(a, f->onboard.pem, BASE64_STANDARD),
                     .algorithm = 2}};
    struct envelope *e = &b.call.envelope;
    spoil(f, &b);
    e->payload = b.payload.p ? b.payload : pb_pack(a, &b.message.base);
    assert_int_equal(pki_sign_raw(b.signer->key, e->payload, signature), 0);
    e->signature = str_range((const char *) signature, sizeof(signature) - (e->signature.n == 1));
    b.call.payload = e->payload;
    (void) device_register(&b.call);
    return b.call.status;
}

static void nothing(struct fixture *f, struct bad *b)
{
    (void) f;
    (void) b;
}
static void other_signer(struct fixture *f, struct bad *b)
{
    b->signer = &f->device;
}
static void short_signature(struct fixture *f, struct bad *b)
{
    (void) f;
    b->call.envelope.signature = STR("x");
}
static void other_hash(struct fixture *f, struct bad *b)
{
    b->call.envelope.sender_hash = str_range((const char *) f->device.hash, SHA256_BYTES);
}
static void pem_hash(struct fixture *f, struct bad *b)
{
    unsigned char *hash = arena_alloc(b->arena, SHA256_BYTES);
    pki_sha256(f->onboard.pem, hash);
    b->call.envelope.sender_hash = str_range((const char *) hash, SHA256_BYTES);
}
static void no_sender(struct fixture *f, struct bad *b)
{
    (void) f;
    b->call.envelope.sender_cert = STR("");
}
static void garbled_sender(struct fixture *f, struct bad *b)
{
    (void) f;
    b->call.envelope.sender_cert = STR("bm90IGEgY2VydGlmaWNhdGU=");
}
static void no_message(struct fixture *f, struct bad *b)
{
    (void) f;
    b->payload = STR("\x12\xff");
}
static void short_certificate(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.pemcert = pb_data(STR("short"));
}
static void garbled_certificate(struct fixture *f, struct bad *b)
{
    (void) f;
    char *text = arena_alloc(b->arena, 200);
    memset(text, 'A', 200);
    b->message.pemcert = pb_data(str_range(text, 200));
}
static void long_certificate(struct fixture *f, struct bad *b)
{
    char *text = arena_alloc(b->arena, 10241);
    const struct str pem = base64_encode(b->arena, f->device.pem, BASE64_STANDARD);
    memset(text, '\n', 10241);
    memcpy(text, pem.p, pem.n);
    b->message.pemcert = pb_data(str_range(text, 10241));
}
static char *many(struct bad *b, size_t n)
{
    char *text = arena_alloc(b->arena, n + 1);
    memset(text, '7', n);
    text[n] = '\0';
    return text;
}
static void long_serial(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.serial = many(b, 257);
}
static void longest_serial(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.serial = many(b, 256);
}
static void serial_no_text(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.serial = (char *) "\xff";
}
static void long_soft_serial(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.softserial = many(b, 257);
}
static void odd_soft_serial(struct fixture *f, struct bad *b)
{
    (void) f;
    b->message.softserial = (char *) "a b";
}
static void v1(struct fixture *f, struct bad *b)
{
    b->call.is_v1 = true;
    b->call.certificate = f->onboard.cert;
    b->call.envelope = (struct envelope){0};
}
static void v1_without_certificate(struct fixture *f, struct bad *b)
{
    v1(f, b);
    b->call.certificate = NULL;
}

TEST(bad_messages_are_refused_each_with_its_code)
{
    static const struct {
        void (*spoil)(struct fixture *f, struct bad *b);
        int status;
    } cases[] = {
        {other_signer, 401},     {short_signature, 401},   {other_hash, 401},
        {pem_hash, 401},         {no_sender, 401},         {garbled_sender, 401},
        {no_message, 422},       {short_certificate, 422}, {garbled_certificate, 422},
        {long_certificate, 422}, {long_serial, 422},       {serial_no_text, 422},
        {long_soft_serial, 422}, {odd_soft_serial, 422},   {v1_without_certificate, 401},
        {longest_serial, 201},   {nothing, 200},           {v1, 200},
    };
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (send_bad(&f, cases[i].spoil) != cases[i].status)
            fail_msg("case %zu is not answered %d", i, cases[i].status);
    assert_int_equal(world_count(&f.w, "devices", NULL), 1);
}
