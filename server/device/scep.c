/* SPDX-License-Identifier: Apache-2.0 */
/* POST proxy/scep: certificate enrolment through us, for devices that cannot reach the SCEP server
 * themselves. Where it is comes from the device's own configuration; what the messages say is
 * between the device and that server. */
#include <errno.h>

#include "base/base64.h"
#include "device/endpoint.h"
#include "eve/config.pb-c.h"
#include "eve/proxy.pb-c.h"
#include "fetch/fetch.h"
#include "protobuf/protojson.h"
#include "json/json.h"

#define MAX_ANSWER_BYTES ((size_t) 2 * 1024 * 1024)
#define MAX_QUERY_MESSAGE_BYTES ((size_t) 32 * 1024) /* that travels in a URL */
#define TIMEOUT_MS 30000
#define MAX_HEADERS 32
#define MAX_HEADER_BYTES 4096

/* ---- the profile ----------------------------------------------------------------------------- */

/* 0 and the profile or NULL, or a negative errno with st filled. */
static int find_profile(struct device_call *c, struct str name, Eve__Config__SCEPProfile **ret,
                        struct status *st)
{
    const struct device *d = c->device;
    const struct kube_request get = {.verb = VERB_GET,
                                     .group = STR("eve.lfedge.org"),
                                     .version = STR("v1beta1"),
                                     .resource = STR("deviceconfigs"),
                                     .namespace = d->namespace,
                                     .name = d->name};
    struct json *object = NULL;
    struct str error = STR_NONE;
    size_t n_ignored = 0;
    *ret = NULL;
    const int r = kube_request(c->api->client, c->arena, &get, &object, st);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const struct json *value = json_at(object, "spec", "config", NULL);
    if (!value)
        return 0;
    const Eve__Config__EdgeDevConfig *config =
        (void *) protojson_read(c->arena, &eve__config__edge_dev_config__descriptor, value,
                                PROTOJSON_IGNORE_UNKNOWN, &n_ignored, &error);
    for (size_t i = 0; config && i < config->n_scep_profiles; i++)
        if (str_eq(pb_text(config->scep_profiles[i]->profile_name), name))
            *ret = config->scep_profiles[i];
    return 0;
}

/* ---- the request ----------------------------------------------------------------------------- */

static const char *operation_name(Eve__Proxy__SCEPOperation o)
{
    static const char *const names[] = {
        [EVE__PROXY__SCEPOPERATION__SCEP_OPERATION_GET_CA_CAPS] = "GetCACaps",
        [EVE__PROXY__SCEPOPERATION__SCEP_OPERATION_GET_CA_CERT] = "GetCACert",
        [EVE__PROXY__SCEPOPERATION__SCEP_OPERATION_GET_NEXT_CA_CERT] = "GetNextCACert",
        [EVE__PROXY__SCEPOPERATION__SCEP_OPERATION_PKI_MESSAGE] = "PKIOperation",
    };
    return (size_t) o < N_ELEMENTS(names) ? names[o] : NULL;
}

static bool is_post(const Eve__Proxy__SCEPProxyRequest *q)
{
    if (q->http_method == EVE__PROXY__HTTPMETHOD__HTTP_METHOD_UNSPECIFIED)
        return q->operation == EVE__PROXY__SCEPOPERATION__SCEP_OPERATION_PKI_MESSAGE;
    return q->http_method == EVE__PROXY__HTTPMETHOD__HTTP_METHOD_POST;
}

static struct str url_of(struct device_call *c, const Eve__Config__SCEPProfile *p,
                         const Eve__Proxy__SCEPProxyRequest *q)
{
    const struct str base = pb_text(p->scep_url);
    const char *separator = str_find(base, '?') >= 0 ? "&" : "?";
    const struct str url = arena_printf(c->arena, "%.*s%soperation=%s", STR_ARG(base), separator,
                                        operation_name(q->operation));
    if (is_post(q) || !q->message.len)
        return url;
    /* With its padding, as decoders expect it, in a form that needs no other escapes. */
    static const char *const padding[] = {"", "%3D%3D", "%3D"};
    const struct str message = base64_encode(c->arena, pb_bytes(q->message), BASE64_URL);
    return arena_printf(c->arena, "%.*s&message=%.*s%s", STR_ARG(url), STR_ARG(message),
                        padding[q->message.len % 3]);
}

static bool is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              char_is_in(c, marks)))
            return false;
    }
    return s.n > 0;
}

static bool is_field_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char) s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return true;
}

/* What belongs to the connection, or would speak in our name, is not the device's to say. */
static bool may_forward(struct str name, struct str value)
{
    static const char *const ours[] = {
        "connection",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "authorization",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-type",
    };
    if (!is_token(name) || !is_field_value(value) || name.n + value.n > MAX_HEADER_BYTES)
        return false;
    for (size_t i = 0; i < N_ELEMENTS(ours); i++)
        if (str_eq_nocase(name, str_of(ours[i])))
            return false;
    return true;
}

static struct fetch_request request_of(struct device_call *c, const Eve__Config__SCEPProfile *p,
                                       const Eve__Proxy__SCEPProxyRequest *q)
{
    struct str *headers = ARENA_ARRAY(c->arena, struct str, MAX_HEADERS + 1);
    size_t n = 0;
    if (is_post(q))
        headers[n++] = STR("Content-Type: application/x-pki-message");
    for (size_t i = 0; i < q->n_http_header_fields && n < MAX_HEADERS; i++) {
        const struct str name = pb_text(q->http_header_fields[i]->name);
        const struct str value = pb_text(q->http_header_fields[i]->value);
        if (may_forward(name, value))
            headers[n++] = arena_printf(c->arena, "%.*s: %.*s", STR_ARG(name), STR_ARG(value));
    }
    return (struct fetch_request){.method = is_post(q) ? "POST" : "GET",
                                  .url = url_of(c, p, q),
                                  .allows_http = true,
                                  .headers = headers,
                                  .n_headers = n,
                                  .body = is_post(q) ? pb_bytes(q->message) : STR_NONE,
                                  .timeout_ms = TIMEOUT_MS,
                                  .max_bytes = MAX_ANSWER_BYTES};
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int answer(struct device_call *c, const Eve__Proxy__SCEPProxyRequest *q,
                  const struct fetch_answer *a)
{
    Eve__Proxy__HTTPHeaderField type = EVE__PROXY__HTTPHEADER_FIELD__INIT;
    Eve__Proxy__HTTPHeaderField *fields[] = {&type};
    Eve__Proxy__SCEPProxyResponse response = EVE__PROXY__SCEPPROXY_RESPONSE__INIT;
    type.name = (char *) "Content-Type";
    type.value = arena_strz(c->arena, a->content_type);
    response.scep_profile_name = q->scep_profile_name;
    response.operation = q->operation;
    response.http_status_code = (uint32_t) a->status;
    if (a->content_type.n) {
        response.http_header_fields = fields;
        response.n_http_header_fields = 1;
    }
    if (a->status >= 400)
        response.error_body = pb_data(a->body);
    else
        response.message = pb_data(a->body);
    return device_answer(c, 200, &response.base);
}

int device_scep(struct device_call *c)
{
    struct status st;
    struct str error = STR_NONE;
    struct fetch_answer got = {0};
    Eve__Config__SCEPProfile *profile = NULL;
    status_init(&st, c->arena);
    const Eve__Proxy__SCEPProxyRequest *q =
        PB_UNPACK(c->arena, eve__proxy__scepproxy_request, c->payload);
    if (!q)
        return device_refuse(c, 422, "the payload is no SCEPProxyRequest");
    if (!operation_name(q->operation))
        return device_refuse(c, 422, "no such operation: %d", (int) q->operation);
    if (!is_post(q) && q->message.len > MAX_QUERY_MESSAGE_BYTES)
        return device_refuse(c, 422, "the message is too large for a URL");
    if (find_profile(c, pb_text(q->scep_profile_name), &profile, &st) < 0)
        return device_refuse(c, 503, "the DeviceConfig cannot be read: %.*s", STR_ARG(st.message));
    if (!profile || !profile->use_controller_proxy)
        return device_refuse(c, 403,
                             "the device's configuration has no such SCEP profile that uses the "
                             "controller as proxy");
    const struct fetch_request request = request_of(c, profile, q);
    if (fetch(c->api->fetch_client, c->arena, &request, &got, &error) < 0)
        return device_refuse(c, 502, "the SCEP server does not answer: %.*s", STR_ARG(error));
    return answer(c, q, &got);
}
