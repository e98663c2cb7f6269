/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens that claim to be ours: splitting, signature, claims. Read as a token, and as the
 * payload of one that is signed. */
#include <stdlib.h>
#include <unistd.h>

#include "api/token/token_issuer.h"
#include "base/log.h"
#include "pki/file.h"
#include "pki/jws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of this test alone, so that the corpus can hold tokens that are valid. */
static const char signing_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwr8gv5HyxfChveU/\n"
    "Cczsz/UGGnjM0pFnIH9tY9id+OyhRANCAATHggObWyxYHZZlMjUJJ6VbcuBSgcX+\n"
    "Xypb6I6f5JeH0i+iWxMZ3Qx+Qg94Vf2Q5XVQeWB3KiqLp1FWuEHjX533\n"
    "-----END PRIVATE KEY-----\n";

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct token_issuer *open_issuer(void)
{
    char path[] = "/tmp/seth-fuzz-jwt-XXXXXX";
    const int fd = mkstemp(path);
    require(fd >= 0 && close(fd) == 0);
    require(pki_file_write(path, str_of(signing_key), 0600) == 0);
    const struct token_issuer_options o = {.own_key_path = "",
                                           .signing_key_file = path,
                                           .key_files = "",
                                           .issuers = "https://kubernetes.default.svc",
                                           .api_audiences = "",
                                           .jwks_uri = ""};
    struct token_issuer *issuer = NULL;
    char *error = NULL;
    log_set_level(LOG_ERROR);
    require(token_issuer_open(&o, &issuer, &error) == 0);
    (void) unlink(path);
    return issuer;
}

static void require_whole(const struct account_claims *c)
{
    require(c->namespace.n && c->account.name.n && c->account.uid.n && c->issuer.n);
    require(c->is_legacy ? c->secret.name.n > 0 : c->audiences.n > 0 && c->expires_s >= 0);
}

/* What was understood is written and understood the same. */
static void check_payload(struct arena *a, struct str payload)
{
    struct account_claims c, again;
    if (account_claims_read(a, payload, &c) < 0)
        return;
    require_whole(&c);
    const struct str text = account_claims_write(a, &c);
    require(account_claims_read(a, text, &again) == 0);
    require(str_eq(account_claims_write(a, &again), text));
    require(again.is_legacy == c.is_legacy && again.expires_s == c.expires_s);
}

/* A change of any character of a valid token makes it another. */
static void check_token(struct arena *a, const struct token_issuer *issuer, struct str token)
{
    struct account_claims c;
    if (token_issuer_verify(issuer, a, token, &c) < 0)
        return;
    require_whole(&c);
    char *changed = arena_strz(a, token);
    const size_t at = token.n / 2;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    require(token_issuer_verify(issuer, a, str_range(changed, token.n), &c) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct token_issuer *issuer;
    if (!issuer)
        issuer = open_issuer();
    ARENA_AUTO a = arena_new();
    const struct str input = str_range((const char *) data, size);
    struct jws parts;
    check_token(a, issuer, input);
    check_payload(a, input);
    if (jws_split(a, input, &parts) == 0)
        check_payload(a, parts.payload);
    struct jws_key *k = jws_key_pem(input);
    jws_key_free(k);
    return 0;
}
