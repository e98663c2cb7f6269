/* SPDX-License-Identifier: Apache-2.0 */
/* Which register values a device may boot with, by the version of EVE and of the firmware it says
 * it runs. */
#pragma once

#include "eve/quote.h"
#include "json/json.h"

/* ConfigMap eve-system/pcr-templates, in its data:
 *   templates.json
 * [{"eveVersion":"14.5.0","firmwareVersion":"","PCRValues":[{"index":0,"value":"<hex>"}]}] enforce
 * "false": the templates are kept and not used An empty firmwareVersion is any; so is a value that
 * is empty or "*". One template that fits is enough. */
#define PCR_TEMPLATES_NAME "pcr-templates"
#define PCR_TEMPLATES_KEY "templates.json"
#define PCR_TEMPLATES_ENFORCE "enforce"

struct pcr_report {
    struct str eve_version, firmware_version;
    const struct quote_pcr *pcrs;
    size_t n_pcrs;
    uint32_t pcr_mask; /* what the TPM signed of them */
};

enum pcr_verdict {
    PCR_UNJUDGED,    /* there are no templates */
    PCR_FITS,        /* one of them fits */
    PCR_NO_TEMPLATE, /* none is for these versions */
    PCR_DIFFERS      /* none of those that are fits */
};
/* data: of the ConfigMap; NULL: there is none. *ret_message says what differs. */
enum pcr_verdict pcr_template_judge(struct arena *a, const struct json *data,
                                    const struct pcr_report *r, struct str *ret_message);
