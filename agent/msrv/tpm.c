/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of the device for its applications: a signature by the device's key, and the exchange by
 * which a stranger convinces himself of the TPM. */
#include <errno.h>

#include "base/base64.h"
#include "base/log.h"
#include "msrv/msrv_internal.h"

/* A TPM2B structure begins with its size. */
#define TPM2B_SIZE_BYTES 2

void signer_check(struct request *r)
{
    if (r->is_body_cut || r->body.n > MSRV_MAX_SIGNED_BYTES)
        answer_error(r, 400, STR("signerHandler: size exceeds limit. Expected <= 65535"));
    else if (!r->app)
        answer_error(r, 403,
                     arena_printf(r->arena, "signerHandler: no AppNetworkStatus for %.*s",
                                  STR_ARG(r->caller)));
}

void signer_answer(struct request *r)
{
    const struct msrv_options *o = &r->msrv->options;
    struct str out = STR_NONE;
    int e = o->world->sign ? o->world->sign(o->ctx, r->arena, r->body, &out) : -EOPNOTSUPP;
    if (e < 0) {
        log_warning("cannot sign for an application", LOG_STR("app", r->app->uuid), LOG_ERRNO(e));
        answer_error(r, 500, STR("Failed to AddAuthentication"));
        return;
    }
    answer_text(r, 200, "application/x-proto-binary", out);
}

/* ---- activate credential -------------------------------------------------------------------- */

static void fail(struct request *r, int status)
{
    answer_message(r, status, STR("Operation failed"));
}

static void set_base64(struct request *r, struct json *object, struct str key, struct str bytes)
{
    json_append_member(r->arena, object, key,
                       json_string(base64_encode(r->arena, bytes, BASE64_STANDARD)));
}

void tpm_keys_answer(struct request *r)
{
    const struct msrv_options *o = &r->msrv->options;
    struct msrv_tpm_keys keys = {0};
    if (!o->world->tpm_keys || o->world->tpm_keys(o->ctx, r->arena, &keys) < 0) {
        fail(r, 500);
        return;
    }
    struct json *out = json_new(r->arena, json_object());
    set_base64(r, out, STR("ek"), keys.ek);
    set_base64(r, out, STR("aikpub"), keys.aik_public);
    set_base64(r, out, STR("aikname"), keys.aik_name);
    answer_json(r, 200, out);
}

static int get_base64(struct arena *a, const struct json *object, struct str key, struct str *ret)
{
    struct str text = json_get_str(object, key);
    if (!text.p)
        return -EBADMSG;
    return base64_decode(a, text, BASE64_STANDARD, ret, NULL) < 0 ? -EBADMSG : 0;
}

static int read_challenge(struct request *r, struct msrv_tpm_challenge *ret)
{
    struct json_parse_result in = {0};
    struct str credential = STR_NONE, secret = STR_NONE;
    if (json_parse(r->arena, r->body, &in) < 0)
        return -EBADMSG;
    if (get_base64(r->arena, in.value, STR("data"), &ret->data) < 0 ||
        get_base64(r->arena, in.value, STR("cred"), &credential) < 0 ||
        get_base64(r->arena, in.value, STR("secret"), &secret) < 0)
        return -EBADMSG;
    if (credential.n < TPM2B_SIZE_BYTES || secret.n < TPM2B_SIZE_BYTES)
        return -EBADMSG;
    ret->credential = str_from(credential, TPM2B_SIZE_BYTES);
    ret->secret = str_from(secret, TPM2B_SIZE_BYTES);
    return 0;
}

void tpm_activate_answer(struct request *r)
{
    const struct msrv_options *o = &r->msrv->options;
    struct msrv_tpm_challenge challenge = {0};
    struct msrv_tpm_proof proof = {0};
    if (r->is_body_cut || r->body.n > MSRV_MAX_SIGNED_BYTES) {
        fail(r, 400);
        return;
    }
    if (read_challenge(r, &challenge) < 0 || !o->world->tpm_activate ||
        o->world->tpm_activate(o->ctx, r->arena, &challenge, &proof) < 0) {
        fail(r, 500);
        return;
    }
    struct json *out = json_new(r->arena, json_object());
    set_base64(r, out, STR("secret"), proof.secret);
    set_base64(r, out, STR("sig"), proof.signature);
    answer_json(r, 200, out);
}
