/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/outcome.h"

const char *uplink_status_name(enum uplink_status s)
{
    static const char *const names[] = {
        "None",
        "Refused",
        "Upgrade",
        "CertInvalid",
        "CertMiss",
        "SignVerifyFail",
        "AlgoFail",
        "HashSizeError",
        "CertUnknownAuthority",
        "CertUnknownAuthorityProxy",
        "NotFound",
        "Forbidden",
        "Failed",
        "Debug",
    };
    return (size_t) s < N_ELEMENTS(names) ? names[s] : "?";
}

bool uplink_type_is(struct str content_type, const char *type)
{
    struct str rest = content_type, bare = STR("");
    (void) str_split(&rest, ';', &bare);
    return str_eq_nocase(str_trim(bare), str_of(type));
}

bool uplink_type_is_message(struct str content_type)
{
    static const char *const types[] = {"application/x-proto-binary", "application/json",
                                        "text/plain"};
    for (size_t i = 0; i < N_ELEMENTS(types); i++)
        if (uplink_type_is(content_type, types[i]))
            return true;
    return false;
}

bool uplink_http_is_delivered(int code, bool accepts_4xx)
{
    return code == 200 || code == 201 || code == 204 || code == 304 ||
           (accepts_4xx && code >= 400 && code <= 499);
}

struct uplink_verdict uplink_judge_http(int code, bool bails_on_http_error)
{
    struct uplink_verdict v = {.is_final = bails_on_http_error && code >= 400 && code <= 599};
    switch (code) {
    case 503:
        v.status = UPLINK_UPGRADE;
        break;
    case 400:
    case 404:
        v.status = UPLINK_NOT_FOUND;
        break;
    case 403:
        /* Another port leads to the same controller, which has decided. */
        v.status = UPLINK_FORBIDDEN;
        v.is_final = true;
        break;
    default:
        break;
    }
    return v;
}

struct uplink_verdict uplink_judge_fault(enum uplink_fault fault, bool used_proxy)
{
    switch (fault) {
    case UPLINK_FAULT_REFUSED:
        /* A proxy that refuses says nothing of the controller. */
        return (struct uplink_verdict){.status = used_proxy ? UPLINK_NONE : UPLINK_REFUSED};
    case UPLINK_FAULT_CERT_TIME:
        return (struct uplink_verdict){.status = UPLINK_CERT_INVALID};
    case UPLINK_FAULT_CERT_AUTHORITY:
        return (struct uplink_verdict){.status = used_proxy ? UPLINK_CERT_UNKNOWN_AUTHORITY_PROXY
                                                            : UPLINK_CERT_UNKNOWN_AUTHORITY};
    default:
        return (struct uplink_verdict){0};
    }
}

enum uplink_refusal uplink_refusal_of(int code)
{
    if (uplink_http_is_delivered(code, /* accepts_4xx= */ false))
        return UPLINK_REFUSAL_NONE;
    switch (code) {
    case 401:
    case 403:
    case 407:
    case 408:
    case 429:
        return UPLINK_REFUSAL_LATER;
    default:
        return code >= 500 ? UPLINK_REFUSAL_LATER : UPLINK_REFUSAL_FINAL;
    }
}
