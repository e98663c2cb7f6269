/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pcr_template.h"

#include <inttypes.h>

/* Devices quote registers 0 to 15 and send all 24. */
#define N_QUOTED 16

static bool is_for(const struct json *template, const struct pcr_report *r)
{
    const struct str firmware = json_get_str(template, STR("firmwareVersion"));
    return r->eve_version.n && str_eq(json_get_str(template, STR("eveVersion")), r->eve_version) &&
           (!firmware.n || str_eq(firmware, r->firmware_version));
}

static struct str value_of(struct arena *a, const struct pcr_report *r, int64_t index)
{
    for (size_t i = 0; i < r->n_pcrs; i++)
        if (r->pcrs[i].index == index)
            return pki_hex(a, (const unsigned char *) r->pcrs[i].value.p, r->pcrs[i].value.n);
    return STR_NONE;
}

/* Registers above those that devices quote are compared as they were sent: no TPM vouches for them,
 * but templates made from what a device sent name them. */
static bool fits_one(struct arena *a, const struct json *wanted, const struct pcr_report *r,
                     struct str *ret_message)
{
    const int64_t index = json_get_int(wanted, STR("index"), 0);
    const struct str value = json_get_str(wanted, STR("value"));
    if (!value.n || str_is(value, "*"))
        return true;
    if (index < 0 || index >= QUOTE_PCRS ||
        (index < N_QUOTED && !(r->pcr_mask & 1u << (unsigned) index))) {
        *ret_message = arena_printf(a, "PCR %" PRId64 " is not in the quote", index);
        return false;
    }
    const struct str is = value_of(a, r, index);
    if (is.p && str_eq_nocase(is, value))
        return true;
    *ret_message = arena_printf(a, "PCR %" PRId64 " is %.*s, the template says %.*s", index,
                                STR_ARG(is), STR_ARG(value));
    return false;
}

static bool fits(struct arena *a, const struct json *template, const struct pcr_report *r,
                 struct str *ret_message)
{
    JSON_FOR_EACH_ITEM (json_get(template, STR("PCRValues")), wanted)
        if (!fits_one(a, wanted, r, ret_message))
            return false;
    return true;
}

static enum pcr_verdict judge_all(struct arena *a, const struct json *templates,
                                  const struct pcr_report *r, struct str *ret_message)
{
    enum pcr_verdict verdict = PCR_NO_TEMPLATE;
    *ret_message =
        arena_printf(a, "no PCR template is for EVE version \"%.*s\" and firmware \"%.*s\"",
                     STR_ARG(r->eve_version), STR_ARG(r->firmware_version));
    JSON_FOR_EACH_ITEM (templates, template) {
        if (!is_for(template, r))
            continue;
        if (fits(a, template, r, ret_message))
            return PCR_FITS;
        verdict = PCR_DIFFERS;
    }
    return verdict;
}

enum pcr_verdict pcr_template_judge(struct arena *a, const struct json *data,
                                    const struct pcr_report *r, struct str *ret_message)
{
    struct json_parse_result parsed = {0};
    const struct str text = json_get_str(data, STR(PCR_TEMPLATES_KEY));
    if (!str_trim(text).n || str_is(json_get_str(data, STR(PCR_TEMPLATES_ENFORCE)), "false"))
        return PCR_UNJUDGED;
    /* Templates that cannot be read let nobody pass. */
    if (json_parse(a, text, &parsed) < 0 || !json_is(parsed.value, JSON_ARRAY)) {
        *ret_message = arena_printf(a,
                                    PCR_TEMPLATES_KEY " of ConfigMap " PCR_TEMPLATES_NAME
                                                      " is no list of templates: %.*s",
                                    STR_ARG(parsed.error));
        return PCR_NO_TEMPLATE;
    }
    return json_count(parsed.value) ? judge_all(a, parsed.value, r, ret_message) : PCR_UNJUDGED;
}
