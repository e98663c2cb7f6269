/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate enrolment: SCEPProfile. */
#include "zedagent/parse_internal.h"

#define MAX_PERCENT 100

/* scheme://host... */
static bool is_url(struct str url)
{
    const ptrdiff_t at = str_find_str(url, STR("://"));
    return at > 0 && url.n > (size_t) at + 3 && url.p[at + 3] != '/';
}

static struct str check_authorities(struct parse *p, const Eve__Config__SCEPProfile *c)
{
    struct str error = STR_NONE;
    for (size_t i = 0; i < c->n_ca_cert_pem; i++) {
        CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
        if (pki_cert_parse(pb_bytes(c->ca_cert_pem[i]), &cert) < 0)
            error = arena_printf(p->arena, "CA cert %zu is not a valid X.509 certificate", i);
    }
    return error;
}

static struct json *addresses_value(struct parse *p, const Eve__Config__CSRProfile *c,
                                    struct str *error)
{
    struct json *list = NULL;
    for (size_t i = 0; i < c->n_san_ip; i++) {
        struct address address;
        if (!address_parse(str_of(c->san_ip[i]), &address)) {
            *error = arena_printf(p->arena, "Invalid SAN IP address \"%s\"", c->san_ip[i]);
            continue;
        }
        list = list ? list : json_new(p->arena, json_array());
        json_push(p->arena, list, json_string(address_text(p->arena, &address)));
    }
    return list;
}

static void single(struct gotype *g, const char *name, char *text)
{
    gotype_texts(g, name, &text, pb_text(text).n ? 1 : 0);
}

static struct json *request_value(struct parse *p, const Eve__Config__CSRProfile *csr,
                                  struct str *error)
{
    static const Eve__Config__CSRProfile none = EVE__CONFIG__CSRPROFILE__INIT;
    const Eve__Config__CSRProfile *c = csr ? csr : &none;
    struct gotype g = gotype_new(p->arena), subject = gotype_new(p->arena);
    struct gotype names = gotype_new(p->arena);
    gotype_text(&subject, "CommonName", pb_text(c->common_name));
    single(&subject, "Organization", c->organization);
    single(&subject, "OrganizationalUnit", c->organizational_unit);
    single(&subject, "Country", c->country);
    single(&subject, "State", c->state);
    single(&subject, "Locality", c->locality);
    gotype_texts(&names, "DNSNames", c->san_dns, c->n_san_dns);
    gotype_texts(&names, "EmailAddresses", c->san_email, c->n_san_email);
    gotype_value(&names, "IPAddresses", addresses_value(p, c, error));
    gotype_texts(&names, "URIs", c->san_uri, c->n_san_uri);
    if (c->renew_period_percent > MAX_PERCENT)
        *error = arena_printf(p->arena,
                              "certificate renewal period (in percent) must be between 0 and 100 "
                              "(got %u)",
                              c->renew_period_percent);
    gotype_value(&g, "Subject", subject.object);
    gotype_value(&g, "SAN", names.object);
    gotype_int(&g, "RenewPeriodPercent",
               c->renew_period_percent > MAX_PERCENT ? 0 : c->renew_period_percent);
    gotype_int(&g, "KeyType", c->key_type);
    gotype_int(&g, "HashAlgorithm", c->hash_algorithm);
    return g.object;
}

static struct json *profile_value(struct parse *p, const Eve__Config__SCEPProfile *c)
{
    struct gotype g = gotype_new(p->arena), problem = gotype_new(p->arena);
    const struct str url = pb_text(c->scep_url);
    struct gotype password = gotype_new(p->arena);
    struct str error = STR_NONE, sealed;
    struct json *request;
    if (!url.n)
        error = STR("SCEP URL must not be empty");
    else if (!is_url(url))
        error = arena_printf(p->arena, "Invalid SCEP URL \"%.*s\"", STR_ARG(url));
    const struct str authorities = check_authorities(p, c);
    error = authorities.n ? authorities : error;
    request = request_value(p, c->csr_profile, &error);
    sealed = parse_cipher_block(p, &password, pb_text(c->profile_name), c->scep_challenge_password);
    if (sealed.n)
        error = arena_printf(p->arena, "failed to parse encrypted SCEP challenge password: %.*s",
                             STR_ARG(sealed));
    gotype_text(&g, "ProfileName", pb_text(c->profile_name));
    gotype_text(&g, "SCEPServerURL", url);
    gotype_bool(&g, "UseControllerProxy", c->use_controller_proxy);
    gotype_value(&g, "EncryptedChallengePassword", password.object);
    gotype_value(&g, "pubsub-large-ProxyCertPEM",
                 parse_bytes_list(p->arena, c->ca_cert_pem, c->n_ca_cert_pem));
    gotype_value(&g, "CSRProfile", request);
    gotype_error(&problem, error, p->now_us);
    gotype_value(&g, "ParsingError", problem.object);
    return g.object;
}

struct json *parse_scep(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t i = 0; i < p->config->n_scep_profiles; i++) {
        const struct str name = pb_text(p->config->scep_profiles[i]->profile_name);
        if (name.n)
            json_append_member(p->arena, all, gotype_key(p->arena, name),
                               *profile_value(p, p->config->scep_profiles[i]));
    }
    return all;
}
