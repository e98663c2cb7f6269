/* SPDX-License-Identifier: Apache-2.0 */
/* Makes many devices: keys, self-signed certificates and what they send, as prepared requests for
 * bench/load.
 *
 *     make_devices N NAMESPACE DIRECTORY
 *
 * writes DIRECTORY/create (a Device each) and DIRECTORY/first (a poll each by a device that has no
 * configuration yet), says "ready" and waits for a line. By then DIRECTORY/answers holds the
 * answers to the first polls; it writes DIRECTORY/polls, where each device has what it was told. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/random.h"
#include "base/uuid.h"
#include "eve/config.pb-c.h"
#include "eve/envelope.h"
#include "protobuf/message.h"

struct maker {
    struct str namespace;
    const char *directory;
    FILE *file;
};

struct sender {
    struct pki_key *key;
    struct envelope_signer signer;
    char uuid[UUID_TEXT_BYTES];
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "make_devices: %s: %s\n", what, why);
    exit(1);
}

static FILE *open_file(const struct maker *m, const char *name, const char *mode)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/%s", m->directory, name);
    FILE *f = fopen(path.p, mode);
    if (!f)
        die(path.p, "cannot be opened");
    return f;
}

static void put_request(FILE *f, struct str path, const char *content_type, struct str body)
{
    fprintf(f, "POST %.*s %s %zu\n", STR_ARG(path), content_type, body.n);
    (void) fwrite(body.p, 1, body.n, f);
    (void) fputc('\n', f);
}

/* ---- devices ------------------------------------------------------------------------------- */

static void put_device(FILE *f, const struct maker *m, const char *uuid, struct str pem)
{
    ARENA_AUTO a = arena_new();
    struct str path = arena_printf(a, "/apis/eve.lfedge.org/v1beta1/namespaces/%.*s/devices",
                                   STR_ARG(m->namespace));
    struct str certificate = base64_encode(a, pem, BASE64_STANDARD);
    struct str body = arena_printf(
        a,
        "{\"apiVersion\":\"eve.lfedge.org/v1beta1\",\"kind\":\"Device\",\"metadata\":{\"name\":"
        "\"device-%s\",\"annotations\":{\"eve.lfedge.org/uuid\":\"%s\"}},\"spec\":{"
        "\"certificate\":\"%.*s\"}}",
        uuid, uuid, STR_ARG(certificate));
    put_request(f, path, "application/json", body);
}

static void make_sender(struct maker *m, struct sender *s)
{
    static const struct str organization = STR("The Linux Foundation");
    ARENA_AUTO a = arena_new();
    random_uuid(s->uuid);
    s->key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = pki_cert_new(&(struct pki_cert_options){.common_name = STR("EVE"),
                                                                 .organizations = &organization,
                                                                 .n_organizations = 1,
                                                                 .is_ca = true,
                                                                 .valid_days = 7300},
                                      s->key, NULL, NULL);
    if (!s->key || !c)
        die("certificate", "cannot be made");
    s->signer.key = s->key;
    pki_cert_fingerprint(c, s->signer.cert_hash);
    put_device(m->file, m, s->uuid, pki_cert_pem(a, c));
}

static void put_poll(FILE *f, const struct sender *s, const char *hash)
{
    ARENA_AUTO a = arena_new();
    Eve__Config__ConfigRequest q = EVE__CONFIG__CONFIG_REQUEST__INIT;
    q.confighash = (char *) (uintptr_t) hash;
    struct str body = envelope_seal(a, &s->signer, pb_pack(a, &q.base));
    if (!body.p)
        die("poll", "cannot be signed");
    put_request(f, arena_printf(a, "/api/v2/edgedevice/id/%s/config", s->uuid),
                "application/x-proto-binary", body);
}

/* ---- answers ------------------------------------------------------------------------------- */

static const char *read_hash(struct arena *a, FILE *f)
{
    char head[32];
    struct envelope e;
    if (!fgets(head, sizeof(head), f))
        die("answers", "are fewer than devices");
    size_t n = strtoul(head, NULL, 10);
    char *bytes = arena_alloc(a, n + 1);
    if (fread(bytes, 1, n + 1, f) != n + 1 || envelope_parse(str_range(bytes, n), &e) < 0)
        die("answers", "are no envelopes");
    const Eve__Config__ConfigResponse *r = PB_UNPACK(a, eve__config__config_response, e.payload);
    if (!r || !pb_text(r->confighash).n)
        die("answers", "hold no configuration");
    return r->confighash;
}

static void put_polls(const struct maker *m, const struct sender *senders, size_t n)
{
    FILE *answers = open_file(m, "answers", "re"), *polls = open_file(m, "polls", "we");
    for (size_t i = 0; i < n; i++) {
        ARENA_AUTO a = arena_new();
        put_poll(polls, &senders[i], read_hash(a, answers));
    }
    (void) fclose(answers);
    if (fclose(polls) != 0)
        die("polls", "cannot be written");
}

int main(int argc, char **argv)
{
    size_t n = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    if (!n)
        die("usage", "N NAMESPACE DIRECTORY");
    struct maker m = {.namespace = str_of(argv[2]), .directory = argv[3]};
    struct sender *senders = mem_zalloc(n * sizeof(*senders));
    m.file = open_file(&m, "create", "we");
    FILE *first = open_file(&m, "first", "we");
    for (size_t i = 0; i < n; i++) {
        make_sender(&m, &senders[i]);
        put_poll(first, &senders[i], "");
    }
    if (fclose(m.file) != 0 || fclose(first) != 0)
        die(m.directory, "cannot be written");
    printf("ready\n");
    (void) fflush(stdout);
    if (getchar() != EOF)
        put_polls(&m, senders, n);
    for (size_t i = 0; i < n; i++)
        pki_key_free(senders[i].key);
    mem_free(senders);
    return 0;
}
