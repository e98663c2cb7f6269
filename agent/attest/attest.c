/* SPDX-License-Identifier: Apache-2.0 */
/* Attestation at work: the machine's actions as requests and topics, and what comes of them as its
 * events. */
#include "attest/attest.h"

#include <errno.h>
#include <zlib.h>

#include "attest/certificates.h"
#include "attest/keys.h"
#include "attest/machine.h"
#include "attest/messages.h"
#include "attest/sending.h"
#include "attest/vault.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "node/link.h"
#include "pki/file.h"
#include "zedagent/zedagent.h"

#define RETRY_MS 15000
#define RETRY_SPREAD 20
#define TOKEN_FILE STR("eve.integrity_token")
#define EVENT_LOG "/sys/kernel/security/tpm0/binary_bios_measurements"
#define GZIP_WINDOW (15 + 16)

struct attest {
    struct zedagent *zedagent;
    struct node *node;
    struct certificates *certificates; /* NULL: somebody else has them */
    struct vault *vault;               /* the same */
    struct sending *sending;
    struct publication *nonces, *given_keys;
    struct subscription *quotes, *vault_keys;
    struct node_watch watch;
    struct zedagent_listener listener;
    struct loop_timer *timer;
    struct loop_deferred soon; /* the event that was raised within an action */
    enum attest_event soon_event;
    struct uplink_call *call;
    struct attest_machine machine;
    bool is_started;
    bool was_forbidden; /* a configuration waits for us */
    char *nonce_key;    /* of what is published; NULL: nothing is */
    /* On the heap. */
    struct str quote;   /* text of the AttestQuote that is to be sent */
    struct str token;   /* for the escrow */
    struct str problem; /* absent: none */
};

static void step(struct attest *a, enum attest_event e);

/* ---- being told ----------------------------------------------------------------------------- */

/* An event that an action itself brings: after it. */
static void step_soon(struct attest *a, enum attest_event e)
{
    a->soon_event = e;
    loop_defer(a->node->loop, &a->soon);
}

static void replace(struct str *at, struct str by)
{
    mem_free((char *) (uintptr_t) at->p);
    *at = by.p ? str_range(mem_dup(by.p, by.n), by.n) : STR_NONE;
}

static void tell(struct attest *a)
{
    zedagent_set_attest(a->zedagent, a->machine.state, a->problem);
}

static void fail(struct attest *a, enum attest_event e, const char *problem)
{
    log_warning("attestation goes on later", LOG_TEXT("problem", problem),
                LOG_TEXT("state", attest_state_name(a->machine.state)));
    replace(&a->problem, str_of(problem));
    step(a, e);
    tell(a);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void request(struct attest *a, struct arena *arena, struct str body,
                    void (*on_done)(void *arg, const struct uplink_answer *answer))
{
    struct node_link *link = zedagent_link(a->zedagent);
    const struct uplink_request r = {
        .url = node_link_url(arena, link, STR("attest")),
        .body = body,
        .bails_on_http_error = true,
        .opens_reply = true,
    };
    if (a->call)
        uplink_cancel(a->call);
    a->call = uplink_send(link->uplink, &r, on_done, a);
}

/* False: it was none, and the machine knows. */
static bool read_answer(struct attest *a, struct arena *arena, enum attest_answer_kind kind,
                        const struct uplink_answer *answer, struct attest_answer *ret)
{
    const char *problem = NULL;
    a->call = NULL;
    if (answer->error < 0 || answer->status != UPLINK_NONE) {
        /* Whoever fetches the configuration finds out about certificates. */
        if (answer->status == UPLINK_CERT_MISS || answer->status == UPLINK_CERT_INVALID)
            zedagent_hurry(a->zedagent);
        fail(a, ATTEST_FAILED,
             arena_printf(arena, "the controller cannot be asked: %.*s", STR_ARG(answer->words)).p);
        return false;
    }
    if (attest_read_answer(arena, kind, answer->body, ret, &problem) < 0) {
        fail(a, ATTEST_FAILED, problem);
        return false;
    }
    if (ret->is_granted) {
        replace(&a->problem, STR_NONE);
        return true;
    }
    if (ret->misses_certs)
        sending_again(a->sending);
    fail(a, ATTEST_DENIED, ret->problem);
    return false;
}

/* ---- nonce ---------------------------------------------------------------------------------- */

static void unpublish_nonce(struct attest *a)
{
    if (!a->nonce_key)
        return;
    (void) publication_unpublish(a->nonces, str_of(a->nonce_key));
    mem_free(a->nonce_key);
    a->nonce_key = NULL;
}

/* For the owner of the TPM, who answers with a quote under the same key. */
static void publish_nonce(struct attest *a, struct arena *arena, struct str nonce)
{
    struct json *value = json_new(arena, json_object());
    const struct str key = pki_hex(arena, (const unsigned char *) nonce.p, nonce.n);
    unpublish_nonce(a);
    a->nonce_key = mem_strdup(key.p);
    json_append_member(arena, value, STR("Nonce"),
                       json_string(base64_encode(arena, nonce, BASE64_STANDARD)));
    json_append_member(arena, value, STR("Requester"), json_string(STR("zedagent")));
    const int r = publication_publish(a->nonces, key, value);
    if (r < 0)
        log_warning("the nonce is not published", LOG_ERRNO(r));
}

static void on_nonce(void *arg, const struct uplink_answer *answer)
{
    struct attest *a = arg;
    ARENA_AUTO arena = arena_new();
    struct attest_answer found;
    if (!read_answer(a, arena, ATTEST_ANSWER_NONCE, answer, &found))
        return;
    step(a, ATTEST_NONCE);
    publish_nonce(a, arena, found.nonce);
}

/* ---- quote ---------------------------------------------------------------------------------- */

static struct str gzip(struct arena *a, struct str bytes)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return STR("");
    const size_t room = deflateBound(&z, bytes.n);
    char *out = arena_alloc(a, room);
    z.next_in = (Bytef *) (uintptr_t) bytes.p;
    z.avail_in = (uInt) bytes.n;
    z.next_out = (Bytef *) out;
    z.avail_out = (uInt) room;
    const int r = deflate(&z, Z_FINISH);
    const size_t n = z.total_out;
    (void) deflateEnd(&z);
    return r == Z_STREAM_END ? str_range(out, n) : STR("");
}

/* What the firmware has measured; empty where there is no such log. */
static struct str event_log(struct arena *a)
{
    BUF_AUTO log = {0};
    return pki_file_read(EVENT_LOG, &log) == 0 && log.n ? gzip(a, buf_str(&log)) : STR("");
}

static struct attest_versions versions_of(struct attest *a, struct arena *arena)
{
    struct machine_identity id = {0};
    struct machine *m = a->node->machine;
    if (m->functions->identity(m, arena, &id) < 0)
        return (struct attest_versions){STR(""), STR("")};
    const struct str parts[] = {id.bios_vendor, id.bios_version, id.bios_release_date};
    struct str firmware = STR("");
    for (size_t i = 0; i < N_ELEMENTS(parts); i++)
        if (parts[i].n)
            firmware = arena_printf(arena, "%.*s%s%.*s", STR_ARG(firmware), firmware.n ? "-" : "",
                                    STR_ARG(parts[i]));
    return (struct attest_versions){str_trim(id.eve_version), firmware};
}

/* For whoever has a vault. */
static void publish_given_key(struct attest *a, struct arena *arena, struct str key)
{
    struct json *value = json_new(arena, json_object());
    struct json policy = json_object();
    json_append_member(arena, &policy, STR("PolicyPresent"), json_bool(false));
    json_append_member(arena, &policy, STR("Indexes"), json_null());
    json_append_member(arena, &policy, STR("ID"), json_int(0));
    json_append_member(arena, value, STR("Name"), json_string(VAULT_NAME));
    json_append_member(arena, value, STR("EncryptedVaultKey"),
                       key.n ? json_string(base64_encode(arena, key, BASE64_STANDARD))
                             : json_null());
    json_append_member(arena, value, STR("PolicyPcr"), policy);
    const int r = publication_publish(a->given_keys, VAULT_NAME, value);
    if (r < 0)
        log_warning("the controller's key is not published", LOG_ERRNO(r));
}

static void on_quote_answer(void *arg, const struct uplink_answer *answer)
{
    struct attest *a = arg;
    ARENA_AUTO arena = arena_new();
    struct attest_answer found;
    if (!read_answer(a, arena, ATTEST_ANSWER_QUOTE, answer, &found))
        return;
    const int r = node_file_write(a->node, NODE_RUN, TOKEN_FILE, found.token);
    if (r < 0)
        log_warning("the integrity token is not kept", LOG_ERRNO(r));
    replace(&a->token, found.token);
    publish_given_key(a, arena, found.key);
    step(a, ATTEST_GRANTED);
}

static void send_quote(struct attest *a)
{
    ARENA_AUTO arena = arena_new();
    const struct json *quote = json_parse_quick(arena, a->quote);
    struct str body;
    const struct str log = json_get_str(quote, STR("Quote")).n ? event_log(arena) : STR("");
    if (attest_quote_request(arena, quote, versions_of(a, arena), log, &body) < 0) {
        log_warning("the quote that was published is none");
        step_soon(a, ATTEST_DENIED);
        return;
    }
    request(a, arena, body, on_quote_answer);
}

static void on_quote(void *arg, struct str key, const struct json *value)
{
    struct attest *a = arg;
    BUF_AUTO text = {0};
    if (!a->nonce_key || !str_is(key, a->nonce_key))
        return;
    json_write(&text, value);
    replace(&a->quote, buf_str(&text));
    step(a, ATTEST_QUOTE);
}

static void on_quote_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    (void) old;
    on_quote(arg, key, value);
}

/* ---- escrow --------------------------------------------------------------------------------- */

static void on_escrow_answer(void *arg, const struct uplink_answer *answer)
{
    struct attest *a = arg;
    ARENA_AUTO arena = arena_new();
    struct attest_answer found;
    if (!read_answer(a, arena, ATTEST_ANSWER_ESCROW, answer, &found))
        return;
    const int r = vault_note_escrowed(a->node);
    if (r < 0)
        log_warning("that the key is escrowed is not kept", LOG_ERRNO(r));
    step(a, ATTEST_RECORDED);
}

static void send_escrow(struct attest *a)
{
    ARENA_AUTO arena = arena_new();
    const struct json *value = subscription_get(arena, a->vault_keys, VAULT_NAME);
    const struct str text = json_get_str(value, STR("EncryptedVaultKey"));
    struct str key = STR("");
    if (!value || (text.n && base64_decode(arena, text, BASE64_STANDARD, &key, NULL) < 0))
        step_soon(a, ATTEST_NO_ESCROW);
    else if (!key.n)
        step_soon(a, ATTEST_RECORDED); /* no TPM, nothing to keep */
    else
        request(a, arena, attest_escrow_request(arena, a->token, key), on_escrow_answer);
}

static void on_soon(struct loop_deferred *d)
{
    struct attest *a = CONTAINER_OF(d, struct attest, soon);
    ARENA_AUTO arena = arena_new();
    step(a, a->soon_event);
    /* It may have come while we found that it is not there. */
    if (a->machine.state == ATTEST_INTERNAL_ESCROW_WAIT &&
        subscription_get(arena, a->vault_keys, VAULT_NAME))
        step(a, ATTEST_ESCROW);
}

static void on_vault_key(void *arg, struct str key, const struct json *value)
{
    (void) value;
    if (str_eq(key, VAULT_NAME))
        step(arg, ATTEST_ESCROW);
}

static void on_vault_key_again(void *arg, struct str key, const struct json *value,
                               const struct json *old)
{
    (void) old;
    on_vault_key(arg, key, value);
}

/* ---- the machine ---------------------------------------------------------------------------- */

static void ask_nonce(struct attest *a)
{
    ARENA_AUTO arena = arena_new();
    unpublish_nonce(a);
    request(a, arena, attest_nonce_request(arena), on_nonce);
}

/* Whoever was refused a configuration asks again at once. */
static void finish(struct attest *a)
{
    unpublish_nonce(a);
    replace(&a->quote, STR_NONE);
    if (a->was_forbidden)
        zedagent_hurry(a->zedagent);
    a->was_forbidden = false;
}

static void step(struct attest *a, enum attest_event e)
{
    const enum attest_state before = a->machine.state;
    switch (attest_machine_step(&a->machine, e)) {
    case ATTEST_DO_NOTHING:
    case ATTEST_ASK_QUOTE: /* on_nonce() publishes it */
        break;
    case ATTEST_ASK_NONCE:
        ask_nonce(a);
        break;
    case ATTEST_SEND_QUOTE:
        send_quote(a);
        break;
    case ATTEST_SEND_ESCROW:
        send_escrow(a);
        break;
    case ATTEST_START_TIMER:
        loop_timer_start(a->timer, node_spread_ms(a->node, RETRY_MS, RETRY_SPREAD), 0);
        break;
    case ATTEST_FINISH:
        finish(a);
        break;
    }
    if (a->machine.state == before)
        return;
    log_debug("attestation", LOG_TEXT("state", attest_state_name(a->machine.state)));
    tell(a);
}

static void on_timer(void *arg)
{
    step(arg, ATTEST_TIMEOUT);
}

/* ---- life ----------------------------------------------------------------------------------- */

/* What failed is repeated when the way there is another. */
static void on_network(struct attest *a)
{
    const enum attest_state s = a->machine.state;
    if (!a->call && (s == ATTEST_NONCE_WAIT || s == ATTEST_WAIT || s == ATTEST_ESCROW_WAIT))
        loop_timer_start(a->timer, 0, 0);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct attest *a = CONTAINER_OF(w, struct attest, watch);
    if (a->is_started && changes & NODE_NETWORK)
        on_network(a);
    if (a->is_started || uuid_is_zero(&a->node->device) || !a->node->ports)
        return;
    a->is_started = true;
    step(a, ATTEST_START);
}

static void on_event(struct zedagent_listener *l, enum zedagent_event e)
{
    struct attest *a = CONTAINER_OF(l, struct attest, listener);
    if (e != ZEDAGENT_FORBIDDEN)
        return;
    a->was_forbidden = true;
    if (a->is_started)
        step(a, ATTEST_RESTART);
}

/* Where nobody else does it: -EADDRINUSE is that somebody does. */
static int open_helpers(struct attest *a, struct tpm *tpm)
{
    int r = certificates_new(a->node, tpm, &a->certificates);
    if (r == -EADDRINUSE || r == -ENOKEY) {
        log_debug("the device's certificates are made elsewhere", LOG_ERRNO(r));
        r = 0;
    }
    if (r < 0)
        return r;
    r = vault_new(a->node, tpm, &a->vault);
    return r == -EADDRINUSE ? 0 : r;
}

static int open_topics(struct attest *a)
{
    static const struct subscription_handlers quotes = {.on_create = on_quote,
                                                        .on_modify = on_quote_again};
    static const struct subscription_handlers vault_keys = {.on_create = on_vault_key,
                                                            .on_modify = on_vault_key_again};
    const struct pubsub_name nonce_name = {.agent = STR("zedagent"), .topic = STR("AttestNonce")};
    const struct pubsub_name given_name = {.agent = STR("zedagent"),
                                           .topic = STR("EncryptedVaultKeyFromController")};
    const struct pubsub_name quote_name = {.agent = STR("tpmmgr"), .topic = STR("AttestQuote")};
    const struct pubsub_name vault_name = {.agent = STR("vaultmgr"),
                                           .topic = STR("EncryptedVaultKeyFromDevice")};
    struct pubsub *ps = a->node->pubsub;
    int r = publication_new(ps, &nonce_name, &a->nonces);
    if (r == 0)
        r = publication_new(ps, &given_name, &a->given_keys);
    if (r == 0)
        r = subscription_new(ps, &quote_name, &quotes, a, &a->quotes);
    return r < 0 ? r : subscription_new(ps, &vault_name, &vault_keys, a, &a->vault_keys);
}

int attest_new(struct zedagent *z, struct node *n, const struct attest_options *o,
               struct attest **ret)
{
    struct attest *a = NEW(struct attest);
    a->zedagent = z;
    a->node = n;
    a->soon.fn = on_soon;
    a->watch.on_change = on_change;
    a->listener.on_event = on_event;
    a->timer = loop_timer_new(n->loop, on_timer, a);
    int r = open_topics(a);
    if (r == 0)
        r = open_helpers(a, node_keys_tpm(o ? o->keys : NULL));
    if (r == 0)
        r = sending_new(z, n, &a->sending);
    if (r < 0) {
        attest_free(a);
        return r;
    }
    node_watch(n, &a->watch);
    zedagent_listen(z, &a->listener);
    *ret = a;
    return 0;
}

void attest_free(struct attest *a)
{
    if (!a)
        return;
    if (a->call)
        uplink_cancel(a->call);
    if (a->listener.link.next)
        zedagent_unlisten(&a->listener);
    node_unwatch(&a->watch);
    loop_undefer(a->node->loop, &a->soon);
    loop_timer_free(a->timer);
    sending_free(a->sending);
    vault_free(a->vault);
    certificates_free(a->certificates);
    subscription_free(a->quotes);
    subscription_free(a->vault_keys);
    publication_free(a->nonces);
    publication_free(a->given_keys);
    mem_free(a->nonce_key);
    replace(&a->quote, STR_NONE);
    replace(&a->token, STR_NONE);
    replace(&a->problem, STR_NONE);
    mem_free(a);
}
