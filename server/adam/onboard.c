/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/onboard: certificates that devices register with. */
#include <errno.h>

#include "adam/adam_internal.h"
#include "base/base64.h"

#define RESOURCE STR("onboardcertificates")

/* ---- reading --------------------------------------------------------------------------------- */

static int add_name(void *ctx, const struct json *object)
{
    struct buf *names = ctx;
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_cert_freep) struct pki_cert *cert = adam_cert_of(object, "certificate");
    if (!cert)
        return 0;
    if (names->n)
        buf_append_char(names, '\n');
    buf_append_str(names, pki_cert_common_name(a, cert));
    return 0;
}

int adam_onboard_list(struct adam_call *c)
{
    struct status st;
    BUF_AUTO names = {0};
    const struct adam_place place = adam_place_of(c, &st);
    if (adam_each(&place, RESOURCE, add_name, &names) < 0)
        return adam_refuse_status(c, &st);
    return adam_answer(c, 200, ADAM_TEXT, arena_str(c->arena, buf_str(&names)));
}

/* Without a list any serial number will do, which Adam writes as an asterisk. */
static struct str serials_of(struct arena *a, const struct json *object)
{
    const struct json *list = json_at(object, "spec", "serials", NULL);
    BUF_AUTO text = {0};
    if (!json_count(list))
        return STR("*");
    JSON_FOR_EACH_ITEM (list, serial) {
        if (text.n)
            buf_append_char(&text, ',');
        buf_append_str(&text, json_str(serial));
    }
    return arena_str(a, buf_str(&text));
}

int adam_onboard_get(struct adam_call *c)
{
    struct status st;
    struct str name = STR_NONE;
    struct json *object = NULL, answer = json_object();
    const struct adam_place place = adam_place_of(c, &st);
    int r = adam_find_onboard(&place, c->arguments[0], &name);
    if (r == 0)
        r = adam_get(&place, RESOURCE, name, &object);
    if (r < 0)
        return r == -ENOENT ? adam_refuse(c, 404, "Not Found") : adam_refuse_status(c, &st);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = adam_cert_of(object, "certificate");
    if (!cert)
        return adam_refuse(c, 404, "Not Found");
    adam_add(c->arena, &answer, "Cert",
             base64_encode(c->arena, pki_cert_pem(c->arena, cert), BASE64_STANDARD));
    adam_add(c->arena, &answer, "Serial", serials_of(c->arena, object));
    return adam_answer(c, 200, ADAM_JSON, json_text(c->arena, &answer));
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t read_serials(struct arena *a, struct str text, struct str **ret_serials)
{
    struct str rest = text, one;
    size_t n = 0;
    struct str *serials = ARENA_ARRAY(a, struct str, ADAM_MAX_SERIALS);
    while (n < ADAM_MAX_SERIALS && str_split(&rest, ',', &one))
        if (str_trim(one).n)
            serials[n++] = str_trim(one);
    *ret_serials = serials;
    return rest.n ? 0 : n;
}

static int add(struct adam_call *c, const struct pki_cert *cert, struct str serial_text)
{
    struct status st;
    struct str *serials = NULL;
    const struct adam_place place = adam_place_of(c, &st);
    const size_t n = read_serials(c->arena, serial_text, &serials);
    if (!pki_cert_common_name(c->arena, cert).n)
        return adam_refuse(c, 400, "the certificate has no common name, by which it is known here");
    if (n == 0)
        return adam_refuse(c, 400,
                           "Serial: name the serial numbers that may register, at most %d, or * "
                           "for any",
                           ADAM_MAX_SERIALS);
    if (adam_put_onboard(&place, cert, serials, n, /* ret_is_new= */ NULL) < 0)
        return adam_refuse_status(c, &st);
    return adam_done(c, 201);
}

int adam_onboard_add(struct adam_call *c)
{
    struct json_parse_result parsed = {0};
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    const char *reason = NULL;
    if (!str_eq_nocase(adam_media_type(c->request->content_type), ADAM_JSON))
        return adam_refuse(c, 400, "Bad Request");
    if (json_parse(c->arena, c->request->body, &parsed) < 0 || !json_is(parsed.value, JSON_OBJECT))
        return adam_refuse(c, 400, "Bad Request");
    const struct str text = json_str(adam_member(parsed.value, "Cert"));
    if (pki_cert_decode(text.p ? text : STR(""), &cert, &reason) < 0)
        return adam_refuse(c, 400, "%s", reason);
    const struct str serial = json_str(adam_member(parsed.value, "Serial"));
    return add(c, cert, serial.p ? serial : STR(""));
}

int adam_onboard_remove(struct adam_call *c)
{
    struct status st;
    struct str name = STR_NONE;
    const struct adam_place place = adam_place_of(c, &st);
    int r = adam_find_onboard(&place, c->arguments[0], &name);
    if (r == 0)
        r = adam_delete(&place, RESOURCE, name);
    if (r < 0)
        return r == -ENOENT ? adam_refuse(c, 404, "Not Found") : adam_refuse_status(c, &st);
    return adam_done(c, 200);
}

int adam_onboard_clear(struct adam_call *c)
{
    struct status st;
    const struct adam_place place = adam_place_of(c, &st);
    return adam_delete_all(&place, RESOURCE) < 0 ? adam_refuse_status(c, &st) : adam_done(c, 200);
}
