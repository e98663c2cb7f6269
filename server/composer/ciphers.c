/* SPDX-License-Identifier: Apache-2.0 */
/* What only the device may read: Secrets become cipher blocks, never clear text. */
#include <errno.h>

#include "composer/composer_internal.h"

int cipher_part(struct composition *c, const char *what, struct str owner,
                const Eve__Common__EncryptionBlock *block, struct compose_sealed *ret,
                struct str *ret_why)
{
    const struct str identity = arena_printf(c->arena, "%s/%.*s", what, STR_ARG(owner));
    const struct str plaintext = pb_pack(c->arena, &block->base);
    *ret = (struct compose_sealed){0};
    if (plaintext.n == 0) {
        *ret_why = STR("what is to be encrypted is empty");
        return -EINVAL;
    }
    const int r =
        c->in->seal ? c->in->seal(c->in->seal_ctx, c->arena, identity, plaintext, ret) : -EAGAIN;
    if (r == 0 && ret->block)
        return 0;
    *ret = (struct compose_sealed){0};
    *ret_why = r == -EAGAIN ? STR("waits for the certificate that the device encrypts with, which "
                                  "it has not sent yet")
                            : STR("cannot be encrypted for the device: its certificate is of no "
                                  "use for that");
    return r < 0 ? r : -EINVAL;
}

void cipher_use(struct composition *c, const struct compose_sealed *sealed)
{
    if (!sealed->block || !sealed->context)
        return;
    const struct str id = pb_text(sealed->context->contextid);
    if (part_find(c, SECTION_CONTEXTS, id))
        return;
    Eve__Common__CipherContext *copy = MESSAGE_NEW(c->arena, eve__common__cipher_context);
    *copy = *sealed->context;
    struct part *p = part_add(c, SECTION_CONTEXTS, id, &copy->base);
    part_source(c, p, "", c->in->device, STR("metadata.name"));
}

static char *text_of(struct composition *c, const struct json *secret, struct str key)
{
    struct str value;
    return object_data(c->arena, secret, key, &value) && value.n && str_is_utf8(value) &&
                   !memchr(value.p, 0, value.n)
               ? arena_strz(c->arena, value)
               : NULL;
}

int credentials_find(struct composition *c, struct str name, struct credentials *ret,
                     struct str *ret_why)
{
    *ret = (struct credentials){.secret = set_find(&c->in->secrets, name)};
    if (!ret->secret) {
        *ret_why = arena_printf(c->arena, "Secret '%.*s' not found", STR_ARG(name));
        return -ENOENT;
    }
    ret->username = text_of(c, ret->secret, STR("username"));
    ret->password = text_of(c, ret->secret, STR("password"));
    ret->token = text_of(c, ret->secret, STR("token"));
    if (ret->username || ret->password || ret->token)
        return 0;
    *ret_why =
        arena_printf(c->arena, "Secret '%.*s' has neither username nor password", STR_ARG(name));
    return -EINVAL;
}
