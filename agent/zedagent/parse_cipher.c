/* SPDX-License-Identifier: Apache-2.0 */
/* Cipher contexts, and blocks that refer to them. */
#include "zedagent/parse_internal.h"

static struct json *context_value(struct arena *a, const Eve__Common__CipherContext *c)
{
    struct gotype g = gotype_new(a);
    gotype_text(&g, "ContextID", pb_text(c->contextid));
    gotype_int(&g, "HashScheme", c->hashscheme);
    gotype_int(&g, "KeyExchangeScheme", c->keyexchangescheme);
    gotype_int(&g, "EncryptionScheme", c->encryptionscheme);
    gotype_bytes(&g, "ControllerCertHash", pb_bytes(c->controllercerthash));
    gotype_bytes(&g, "DeviceCertHash", pb_bytes(c->devicecerthash));
    gotype_error(&g, STR_NONE, 0);
    return g.object;
}

struct json *parse_cipher_contexts(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t i = 0; i < p->config->n_ciphercontexts; i++) {
        const Eve__Common__CipherContext *c = p->config->ciphercontexts[i];
        if (pb_text(c->contextid).n)
            json_append_member(p->arena, all, gotype_key(p->arena, pb_text(c->contextid)),
                               *context_value(p->arena, c));
    }
    return all;
}

static struct json *find_context(struct parse *p, struct str id)
{
    for (size_t i = 0; i < p->config->n_ciphercontexts; i++)
        if (str_eq(pb_text(p->config->ciphercontexts[i]->contextid), id))
            return context_value(p->arena, p->config->ciphercontexts[i]);
    return NULL;
}

static struct str write_block(struct parse *p, struct gotype *g, struct str id,
                              const Eve__Common__CipherBlock *block)
{
    static const Eve__Common__CipherBlock none = EVE__COMMON__CIPHER_BLOCK__INIT;
    const Eve__Common__CipherBlock *b = block ? block : &none;
    const struct str context_id = pb_text(b->ciphercontextid);
    const bool is_whole = b->cipherdata.len > 0 && context_id.n > 0;
    gotype_text(g, "CipherBlockID", id);
    gotype_text(g, "CipherContextID", context_id);
    gotype_bytes(g, "InitialValue", pb_bytes(b->initialvalue));
    gotype_bytes(g, "pubsub-large-CipherData", pb_bytes(b->cipherdata));
    gotype_bytes(g, "ClearTextHash", pb_bytes(b->cleartextsha256));
    gotype_bool(g, "IsCipher", is_whole);
    gotype_value(g, "CipherContext", is_whole ? find_context(p, context_id) : NULL);
    if (block && !is_whole)
        return arena_printf(p->arena, "%.*s, block contains incomplete data", STR_ARG(id));
    return STR_NONE;
}

struct str parse_cipher_block(struct parse *p, struct gotype *g, struct str id,
                              const Eve__Common__CipherBlock *block)
{
    const struct str error = write_block(p, g, id, block);
    gotype_error(g, error, p->now_us);
    return error;
}

void parse_cipher_block_with_error(struct parse *p, struct gotype *g, struct str id,
                                   const Eve__Common__CipherBlock *block, struct str error)
{
    const struct str own = write_block(p, g, id, block);
    gotype_error(g, error.n ? error : own, p->now_us);
}

struct json *parse_cipher_value(struct parse *p, struct str id,
                                const Eve__Common__CipherBlock *block)
{
    struct gotype g = gotype_new(p->arena);
    (void) parse_cipher_block(p, &g, id, block);
    return g.object;
}
