/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/messages.h"

#include <errno.h>

#include "eve/attest.pb-c.h"
#include "protobuf/message.h"
#include "test.h"

static const Eve__Attest__ZAttestReq *unpack(struct arena *a, struct str bytes)
{
    const Eve__Attest__ZAttestReq *req = PB_UNPACK(a, eve__attest__zattest_req, bytes);
    assert_non_null(req);
    return req;
}

TEST(nonce_and_escrow_are_asked_for)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(unpack(a, attest_nonce_request(a))->reqtype, 2);
    const Eve__Attest__ZAttestReq *req =
        unpack(a, attest_escrow_request(a, STR("token"), STR("sealed")));
    assert_int_equal(req->reqtype, 4);
    assert_str(pb_bytes(req->storage_keys->integrity_token), "token");
    assert_int_equal(req->storage_keys->n_keys, 1);
    assert_int_equal(req->storage_keys->keys[0]->key_type, 1);
    assert_str(pb_bytes(req->storage_keys->keys[0]->key), "sealed");
}

TEST(a_quote_is_what_the_topic_says)
{
    ARENA_AUTO a = arena_new();
    const struct json *quote = json_parse_quick(
        a,
        STR("{\"Nonce\":\"bm9uY2U=\",\"SigType\":1,\"Signature\":\"c2ln\",\"Quote\":\"cXVvdGU=\","
            "\"PCRs\":[{\"Index\":0,\"Algo\":2,\"Digest\":\"MA==\"},{\"Index\":23,\"Algo\":1,"
            "\"Digest\":\"MQ==\"}]}"));
    const struct attest_versions versions = {STR("13.4.0-kvm-amd64"), STR("SeaBIOS-1.2")};
    struct str body;
    assert_int_equal(attest_quote_request(a, quote, versions, STR("log"), &body), 0);
    const Eve__Attest__ZAttestReq *req = unpack(a, body);
    assert_int_equal(req->reqtype, 3);
    assert_str(pb_bytes(req->quote->attestdata), "quote");
    assert_str(pb_bytes(req->quote->signature), "sig");
    assert_str(pb_bytes(req->quote->tpm_binary_event_log), "log");
    assert_int_equal(req->quote->n_pcr_values, 2);
    assert_int_equal(req->quote->pcr_values[1]->index, 23);
    assert_int_equal(req->quote->pcr_values[1]->hash_algo, 1);
    assert_str(pb_bytes(req->quote->pcr_values[1]->value), "1");
    assert_int_equal(req->quote->n_versions, 2);
    assert_string_equal(req->quote->versions[1]->version, "SeaBIOS-1.2");
}

TEST(without_a_tpm_a_quote_is_empty)
{
    ARENA_AUTO a = arena_new();
    const struct json *quote = json_parse_quick(
        a, STR("{\"Nonce\":\"bm9uY2U=\",\"SigType\":1,\"Signature\":null,\"Quote\":null,\"PCRs\":"
               "null}"));
    struct str body;
    assert_int_equal(
        attest_quote_request(a, quote, (struct attest_versions){STR("v"), STR("")}, STR(""), &body),
        0);
    const Eve__Attest__ZAttestReq *req = unpack(a, body);
    assert_int_equal(req->quote->attestdata.len + req->quote->signature.len, 0);
    assert_int_equal(req->quote->n_pcr_values, 0);
    assert_int_equal(req->quote->n_versions, 1);
}

TEST(an_event_log_that_does_not_fit_stays_behind)
{
    ARENA_AUTO a = arena_new();
    char *log = arena_zalloc(a, ATTEST_MAX_QUOTE_BYTES);
    const struct json *quote = json_parse_quick(a, STR("{}"));
    const struct attest_versions versions = {STR("v"), STR("")};
    struct str body;
    assert_int_equal(attest_quote_request(a, quote, versions,
                                          str_range(log, ATTEST_MAX_QUOTE_BYTES - 100), &body),
                     0);
    assert_true(unpack(a, body)->quote->tpm_binary_event_log.len > 0);
    assert_int_equal(
        attest_quote_request(a, quote, versions, str_range(log, ATTEST_MAX_QUOTE_BYTES), &body), 0);
    assert_int_equal(unpack(a, body)->quote->tpm_binary_event_log.len, 0);
    assert_true(body.n < 100);
}

TEST(a_quote_that_is_none_is_refused)
{
    ARENA_AUTO a = arena_new();
    static const char *const bad[] = {
        "{\"Quote\":\"!\"}",
        "{\"Quote\":7}",
        "{\"PCRs\":[{\"Index\":0,\"Algo\":9,\"Digest\":\"MA==\"}]}",
        "{\"PCRs\":[{\"Index\":-1,\"Algo\":2,\"Digest\":\"MA==\"}]}",
        "{\"PCRs\":[{\"Index\":0,\"Algo\":2,\"Digest\":\"?\"}]}",
    };
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct str body;
        assert_int_equal(attest_quote_request(a, json_parse_quick(a, str_of(bad[i])),
                                              (struct attest_versions){STR(""), STR("")}, STR(""),
                                              &body),
                         -EBADMSG);
    }
}

TEST(certificates_get_the_types_of_the_message)
{
    ARENA_AUTO a = arena_new();
    const struct json *certs[] = {
        json_parse_quick(a, STR("{\"HashAlgo\":1,\"CertID\":\"aWQ=\",\"CertType\":4,\"Cert\":\"cGVt"
                                "\",\"IsTpm\":false,\"MetaDataItems\":null}")),
        json_parse_quick(a, STR("{\"HashAlgo\":1,\"CertID\":\"aWQ=\",\"CertType\":9,\"Cert\":\"cGVt"
                                "\"}")),
        json_parse_quick(a, STR("{\"HashAlgo\":1,\"CertID\":\"aWQ=\",\"CertType\":3,\"Cert\":\"cGVt"
                                "\",\"MetaDataItems\":[{\"Type\":1,\"Data\":\"cHVi\"}]}")),
        json_parse_quick(a, STR("{\"CertType\":2,\"Cert\":null}")),
        NULL,
    };
    struct str body;
    assert_int_equal(attest_certs_request(a, certs, N_ELEMENTS(certs), &body), 0);
    const Eve__Attest__ZAttestReq *req = unpack(a, body);
    assert_int_equal(req->reqtype, 1);
    assert_int_equal(req->n_certs, 2);
    assert_int_equal(req->certs[0]->type, 13);
    assert_int_equal(req->certs[0]->hashalgo, 1);
    assert_str(pb_bytes(req->certs[0]->certhash), "id");
    assert_str(pb_bytes(req->certs[0]->cert), "pem");
    assert_null(req->certs[0]->attributes);
    assert_int_equal(req->certs[1]->type, 12);
    assert_str(pb_bytes(req->certs[1]->meta_data_items[0]->meta_data), "pub");
    assert_int_equal(attest_certs_request(a, certs, 0, &body), -ENOENT);
}

/* ---- answers -------------------------------------------------------------------------------- */

static int read(struct arena *a, enum attest_answer_kind kind, Eve__Attest__ZAttestResponse *r,
                struct attest_answer *ret)
{
    const char *problem = NULL;
    const int result = attest_read_answer(a, kind, pb_pack(a, &r->base), ret, &problem);
    assert_int_equal(result < 0, problem != NULL);
    return result;
}

TEST(a_nonce_is_read)
{
    ARENA_AUTO a = arena_new();
    Eve__Attest__ZAttestResponse r = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    Eve__Attest__ZAttestNonceResp nonce = EVE__ATTEST__ZATTEST_NONCE_RESP__INIT;
    struct attest_answer answer;
    r.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_NONCE;
    assert_int_equal(read(a, ATTEST_ANSWER_NONCE, &r, &answer), -EBADMSG);
    r.nonce = &nonce;
    assert_int_equal(read(a, ATTEST_ANSWER_NONCE, &r, &answer), -EBADMSG);
    nonce.nonce = pb_data(STR("0123456789ab"));
    assert_int_equal(read(a, ATTEST_ANSWER_NONCE, &r, &answer), 0);
    assert_true(answer.is_granted);
    assert_str(answer.nonce, "0123456789ab");
    assert_int_equal(read(a, ATTEST_ANSWER_QUOTE, &r, &answer), -EBADMSG);
    assert_int_equal(read(a, ATTEST_ANSWER_ESCROW, &r, &answer), -EBADMSG);
}

TEST(every_code_of_a_quote_has_its_meaning)
{
    ARENA_AUTO a = arena_new();
    Eve__Attest__ZAttestResponse r = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    Eve__Attest__ZAttestQuoteResp quote = EVE__ATTEST__ZATTEST_QUOTE_RESP__INIT;
    Eve__Attest__AttestVolumeKey other = EVE__ATTEST__ATTEST_VOLUME_KEY__INIT;
    Eve__Attest__AttestVolumeKey key = EVE__ATTEST__ATTEST_VOLUME_KEY__INIT;
    Eve__Attest__AttestVolumeKey *keys[] = {&other, &key};
    struct attest_answer answer;
    other.key = pb_data(STR("of another type"));
    key.key_type = EVE__ATTEST__ATTEST_VOLUME_KEY_TYPE__ATTEST_VOLUME_KEY_TYPE_VSK;
    key.key = pb_data(STR("sealed"));
    quote.n_keys = N_ELEMENTS(keys);
    quote.keys = keys;
    quote.integrity_token = pb_data(STR("token"));
    r.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_QUOTE_RESP;
    r.quoteresp = &quote;
    for (int code = 2; code <= 4; code++) {
        quote.response = (Eve__Attest__ZAttestResponseCode) code;
        assert_int_equal(read(a, ATTEST_ANSWER_QUOTE, &r, &answer), 0);
        assert_false(answer.is_granted);
        assert_non_null(answer.problem);
        assert_int_equal(answer.misses_certs, code == 3);
        assert_int_equal(answer.token.n + answer.key.n, 0);
    }
    quote.response = 0;
    assert_int_equal(read(a, ATTEST_ANSWER_QUOTE, &r, &answer), -EBADMSG);
    quote.response = 1;
    assert_int_equal(read(a, ATTEST_ANSWER_QUOTE, &r, &answer), 0);
    assert_true(answer.is_granted);
    assert_str(answer.token, "token");
    assert_str(answer.key, "sealed");
}

TEST(an_escrow_is_kept_or_not)
{
    ARENA_AUTO a = arena_new();
    Eve__Attest__ZAttestResponse r = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    Eve__Attest__AttestStorageKeysResp stored = EVE__ATTEST__ATTEST_STORAGE_KEYS_RESP__INIT;
    struct attest_answer answer;
    r.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__Z_ATTEST_RESP_TYPE_STORE_KEYS;
    r.storage_keys_resp = &stored;
    assert_int_equal(read(a, ATTEST_ANSWER_ESCROW, &r, &answer), -EBADMSG);
    stored.response = 2;
    assert_int_equal(read(a, ATTEST_ANSWER_ESCROW, &r, &answer), 0);
    assert_false(answer.is_granted);
    stored.response = 1;
    assert_int_equal(read(a, ATTEST_ANSWER_ESCROW, &r, &answer), 0);
    assert_true(answer.is_granted);
}

TEST(nonsense_is_no_answer)
{
    ARENA_AUTO a = arena_new();
    struct attest_answer answer;
    const char *problem = NULL;
    assert_int_equal(attest_read_answer(a, ATTEST_ANSWER_NONCE, STR("\xff\xff"), &answer, &problem),
                     -EBADMSG);
    assert_non_null(problem);
}
