/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "msrv/msrv_internal.h"

void answer_header(struct request *r, struct str name, struct str value)
{
    struct answer *a = &r->answer;
    assert(a->n_headers < ANSWER_MAX_HEADERS);
    a->headers[a->n_headers++] = (struct http_header){.name = name, .value = value};
}

void answer_parts(struct request *r, struct part *parts, size_t n_parts)
{
    r->answer.parts = parts;
    r->answer.n_parts = n_parts;
}

void answer_bytes(struct request *r, struct str bytes)
{
    struct part *p = ARENA_NEW(r->arena, struct part);
    *p = (struct part){.bytes = bytes, .length = bytes.n};
    answer_parts(r, p, 1);
}

void answer_text(struct request *r, int status, const char *content_type, struct str body)
{
    r->answer.status = status;
    answer_header(r, STR("Content-Type"), str_of(content_type));
    answer_bytes(r, body);
}

void answer_json(struct request *r, int status, const struct json *value)
{
    answer_text(r, status, "application/json", json_text(r->arena, value));
}

void answer_error(struct request *r, int status, struct str message)
{
    answer_text(r, status, "text/plain; charset=utf-8",
                arena_printf(r->arena, "%.*s\n", STR_ARG(message)));
    answer_header(r, STR("X-Content-Type-Options"), STR("nosniff"));
}

void answer_message(struct request *r, int status, struct str message)
{
    answer_text(r, status, "text/plain",
                arena_printf(r->arena, "{\"message\": \"%.*s\"}", STR_ARG(message)));
}

uint64_t answer_length(const struct answer *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n_parts; i++)
        n += a->parts[i].length;
    return n;
}

void http_date(int64_t wall_us, char out[HTTP_DATE_BYTES])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t) (wall_us / 1000000);
    struct tm t;
    out[0] = '\0';
    if (!gmtime_r(&seconds, &t) || t.tm_year < -1900 || t.tm_year > 8099)
        return;
    (void) snprintf(out, HTTP_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT",
                    days[(unsigned) t.tm_wday % 7], (unsigned) t.tm_mday % 100,
                    months[(unsigned) t.tm_mon % 12], (unsigned) (t.tm_year + 1900) % 10000,
                    (unsigned) t.tm_hour % 100, (unsigned) t.tm_min % 100,
                    (unsigned) t.tm_sec % 100);
}

void answer_write_head(struct buf *out, const struct answer *a, int64_t wall_us)
{
    char date[HTTP_DATE_BYTES];
    http_date(wall_us, date);
    bool has_body = a->status != 204 && a->status != 304;
    h1_write_head(out, &(struct h1_answer){
                           .status = a->status,
                           .headers = a->headers,
                           .n_headers = a->n_headers,
                           .framing = has_body ? H1_LENGTH : H1_NO_BODY,
                           .length = answer_length(a),
                           .date = str_of(date),
                           .closes = true,
                       });
}
