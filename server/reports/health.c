/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the device itself that no other object could show: condition Healthy. */
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

#define MAX_LOOKED_AT 256 /* entries of each list of the message */

struct faults {
    struct arena *arena;
    struct buf text;
    const char *first; /* the reason of the first */
};

static void add(struct faults *f, const char *reason, struct str of, struct str words)
{
    if (f->text.n > WORDS_MAX_MESSAGE)
        return;
    if (!f->first)
        f->first = reason;
    buf_printf(&f->text, "%s%.*s%s%.*s", f->text.n ? "; " : "", STR_ARG(of), of.n ? ": " : "",
               STR_ARG(words));
}

static void add_error(struct faults *f, const char *reason, const char *of,
                      const Eve__Info__ErrorInfo *e)
{
    if (words_is_fatal(e))
        add(f, reason, words_name(f->arena, of), words_error(f->arena, e));
}

static void look_at_vaults(struct faults *f, const Eve__Info__DataSecAtRest *s)
{
    for (size_t i = 0; s && i < MIN(s->n_vaultlist, (size_t) MAX_LOOKED_AT); i++)
        add_error(f, "VaultError", s->vaultlist[i]->name, s->vaultlist[i]->vaulterr);
}

static void look_at_storage(struct faults *f, const Eve__Info__ZInfoDevice *m)
{
    for (size_t i = 0; i < MIN(m->n_storage_info, (size_t) MAX_LOOKED_AT); i++) {
        const Eve__Info__StorageInfo *s = m->storage_info[i];
        struct str pool = words_name(f->arena, s->pool_name);
        if (s->storage_state <= EVE__INFO__STORAGE_STATUS__STORAGE_STATUS_ONLINE)
            continue;
        struct str words = words_clean(f->arena, pb_text(s->pool_status_msg), WORDS_MAX_MESSAGE);
        add(f, "StorageDegraded", pool,
            words.n ? words
                    : words_reason(f->arena,
                                   words_enum(f->arena, &eve__info__storage_status__descriptor,
                                              (int) s->storage_state),
                                   "STORAGE_STATUS_"));
    }
}

static void look_at_parts(struct faults *f, const Eve__Info__ZInfoDevice *m)
{
    for (size_t i = 0; i < MIN(m->n_assignableadapters, (size_t) MAX_LOOKED_AT); i++)
        add_error(f, "AdapterError", m->assignableadapters[i]->name, m->assignableadapters[i]->err);
    for (size_t i = 0; i < MIN(m->n_enrolled_certs, (size_t) MAX_LOOKED_AT); i++)
        add_error(f, "CertificateError", m->enrolled_certs[i]->cert_enrollment_profile_name,
                  m->enrolled_certs[i]->err);
}

void derive_health(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct faults f = {.arena = d->arena};
    look_at_vaults(&f, m->datasecatrestinfo);
    look_at_storage(&f, m);
    look_at_parts(&f, m);
    if (m->attestation_info)
        add_error(&f, "AttestationError", "attestation", m->attestation_info->error);
    struct str message = words_clean(d->arena, buf_str(&f.text), WORDS_MAX_MESSAGE);
    buf_done(&f.text);
    struct condition c = {"Healthy", f.first ? "False" : "True",
                          f.first ? str_of(f.first) : STR("NoErrors"), message};
    if (derive_condition(d, &c) && f.first)
        derive_event(d, true, f.first, message);
}
