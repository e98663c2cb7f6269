/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/device: devices and their certificates. */
#include <errno.h>

#include "adam/adam_internal.h"
#include "base/base64.h"
#include "eve/attest.pb-c.h"
#include "protobuf/message.h"
#include "roster/state.h"

#define RESOURCE STR("devices")

/* ---- reading --------------------------------------------------------------------------------- */

static int add_uuid(void *ctx, const struct json *object)
{
    struct buf *uuids = ctx;
    const struct str uuid = json_str(json_at(object, "status", "uuid", NULL));
    if (uuid.n && uuids->n)
        buf_append_char(uuids, '\n');
    buf_append_str(uuids, uuid.n ? uuid : STR(""));
    return 0;
}

int adam_device_list(struct adam_call *c)
{
    struct status st;
    BUF_AUTO uuids = {0};
    const struct adam_place place = adam_place_of(c, &st);
    if (adam_each(&place, RESOURCE, add_uuid, &uuids) < 0)
        return adam_refuse_status(c, &st);
    return adam_answer(c, 200, ADAM_TEXT, arena_str(c->arena, buf_str(&uuids)));
}

/* Go writes bytes that are not there as null. */
static void add_cert(struct adam_call *c, struct json *answer, const char *key, const char *field)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = adam_cert_of(c->object, field);
    if (cert)
        adam_add(c->arena, answer, key,
                 base64_encode(c->arena, pki_cert_pem(c->arena, cert), BASE64_STANDARD));
    else
        (void) json_append_member(c->arena, answer, str_of(key), json_null());
}

int adam_device_get(struct adam_call *c)
{
    struct json answer = json_object();
    const struct str serial = json_str(json_at(c->object, "spec", "serial", NULL));
    add_cert(c, &answer, "Cert", "certificate");
    add_cert(c, &answer, "Onboard", "onboard");
    adam_add(c->arena, &answer, "Serial", serial.p ? serial : STR(""));
    return adam_answer(c, 200, ADAM_JSON, json_text(c->arena, &answer));
}

/* ---- writing --------------------------------------------------------------------------------- */

/* As Adam's tools send it, and eden: the same with another content type. */
static bool is_taken_type(struct str content_type)
{
    const struct str type = adam_media_type(content_type);
    return str_eq_nocase(type, ADAM_JSON) || str_eq_nocase(type, STR("text/plain"));
}

static int create(struct adam_call *c, const struct adam_new_device *d)
{
    struct status st;
    struct json *device = NULL;
    const struct adam_place place = adam_place_of(c, &st);
    const int r = adam_create_device(&place, d, &device);
    if (r == -EEXIST)
        return adam_refuse(c, 409, "device already registered");
    if (r < 0)
        return adam_refuse_status(c, &st);
    /* The device is known before its event comes. */
    device_unref(roster_take(c->adam->options.roster, json_text(c->arena, device)));
    return adam_done(c, 201);
}

int adam_device_add(struct adam_call *c)
{
    struct json_parse_result parsed = {0};
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    CLEANUP(pki_cert_freep) struct pki_cert *onboard = NULL;
    const char *reason = NULL;
    if (!is_taken_type(c->request->content_type))
        return adam_refuse(c, 400, "Bad Request");
    if (json_parse(c->arena, c->request->body, &parsed) < 0)
        return adam_refuse(c, 400, "%.*s", STR_ARG(parsed.error));
    const struct str text = json_str(adam_member(parsed.value, "Cert")),
                     onboard_text = json_str(adam_member(parsed.value, "Onboard")),
                     serial = json_str(adam_member(parsed.value, "Serial"));
    if (pki_cert_decode(text.p ? text : STR(""), &cert, &reason) < 0)
        return adam_refuse(c, 400, "bad device cert: %s", reason);
    if (onboard_text.n && pki_cert_decode(onboard_text, &onboard, &reason) < 0)
        return adam_refuse(c, 400, "bad onboard cert: %s", reason);
    return create(c, &(struct adam_new_device){.cert = cert, .onboard = onboard, .serial = serial});
}

int adam_device_remove(struct adam_call *c)
{
    struct status st;
    const struct adam_place place = adam_place_of(c, &st);
    const int r = adam_delete(&place, RESOURCE, c->device->name);
    if (r < 0)
        return r == -ENOENT ? adam_refuse(c, 404, "Not Found") : adam_refuse_status(c, &st);
    return adam_done(c, 200);
}

int adam_device_clear(struct adam_call *c)
{
    struct status st;
    const struct adam_place place = adam_place_of(c, &st);
    return adam_delete_all(&place, RESOURCE) < 0 ? adam_refuse_status(c, &st) : adam_done(c, 200);
}

/* ---- certificates it has sent ---------------------------------------------------------------- */

static void add_int(struct arena *a, struct json *object, const char *key, int64_t value)
{
    if (value)
        (void) json_append_member(a, object, str_of(key), json_int(value));
}

static void add_bytes(struct arena *a, struct json *object, const char *key,
                      ProtobufCBinaryData value)
{
    if (value.len)
        adam_add(a, object, key, base64_encode(a, pb_bytes(value), BASE64_STANDARD));
}

static void add_true(struct arena *a, struct json *object, const char *key, bool value)
{
    if (value)
        (void) json_append_member(a, object, str_of(key), json_bool(true));
}

/* As Go's plain JSON has messages: names of the .proto, enums by number, zeros left out. */
static struct json cert_json(struct arena *a, const Eve__Certs__ZCert *cert)
{
    struct json object = json_object(), items = json_array();
    add_int(a, &object, "hashAlgo", (int64_t) cert->hashalgo);
    add_bytes(a, &object, "certHash", cert->certhash);
    add_int(a, &object, "type", (int64_t) cert->type);
    add_bytes(a, &object, "cert", cert->cert);
    if (cert->attributes) {
        struct json attributes = json_object();
        add_true(a, &attributes, "is_mutable", cert->attributes->is_mutable);
        add_true(a, &attributes, "is_tpm", cert->attributes->is_tpm);
        (void) json_append_member(a, &object, STR("attributes"), attributes);
    }
    for (size_t i = 0; i < cert->n_meta_data_items; i++) {
        struct json item = json_object();
        add_int(a, &item, "type", (int64_t) cert->meta_data_items[i]->type);
        add_bytes(a, &item, "meta_data", cert->meta_data_items[i]->meta_data);
        (void) json_push(a, &items, item);
    }
    if (json_count(&items))
        (void) json_append_member(a, &object, STR("meta_data_items"), items);
    return object;
}

int adam_device_certs(struct adam_call *c)
{
    struct status st;
    struct device_state state = {0};
    struct json answer = json_object(), certs = json_array();
    status_init(&st, c->arena);
    if (device_state_load(c->adam->options.client, c->arena, c->device, &state, &st) < 0)
        return adam_refuse_status(c, &st);
    const Eve__Attest__ZAttestReq *kept =
        PB_UNPACK(c->arena, eve__attest__zattest_req, state.certificates);
    if (!kept || !kept->n_certs)
        return adam_refuse(c, 404, "Not Found");
    for (size_t i = 0; i < kept->n_certs; i++)
        (void) json_push(c->arena, &certs, cert_json(c->arena, kept->certs[i]));
    (void) json_append_member(c->arena, &answer, STR("certs"), certs);
    return adam_answer(c, 200, ADAM_JSON, json_text(c->arena, &answer));
}
