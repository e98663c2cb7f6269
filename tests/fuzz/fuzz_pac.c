/* SPDX-License-Identifier: Apache-2.0 */
/* What reads proxies' names and scripts' answers, and the functions scripts call, with arguments of
 * the network. The script is ours: one of the network's need not end. */
#include <stdlib.h>

#include "controllerconn/pac.h"
#include "controllerconn/pac_functions.h"
#include "controllerconn/proxy.h"
#include "controllerconn/url.h"

#define MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void call_functions(struct str one, struct str two)
{
    static const char script[] =
        "function FindProxyForURL(url, host) { var a = host, p = url.split('/');"
        "return [isPlainHostName(a), dnsDomainIs(a, p[3]), localHostOrDomainIs(a, p[3]),"
        " shExpMatch(url, p[3]), isInNet(p[3], a, a), dnsDomainLevels(url), convert_addr(p[3]),"
        " weekdayRange(p[3], a), dateRange(p[3], +p[3], a, 'GMT'), timeRange(+p[3], +a)].join(); }";
    ARENA_AUTO a = arena_new();
    struct uplink_pac_world w = {.my_address = one, .n_names = 1};
    BUF_AUTO text = {0};
    const struct str url = arena_printf(a, "https://%.*s/%.*s", STR_ARG(one), STR_ARG(two));
    w.names[0].name = two;
    w.names[0].address = one;
    (void) uplink_pac_evaluate(str_of(script), url, &w, &text);
}

/* Two parts, with a line end between. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ARENA_AUTO a = arena_new();
    if (n > MAX_BYTES)
        return 0;
    struct str rest = arena_str(a, str_range((const char *) data, n)), one = STR("");
    (void) str_split(&rest, '\n', &one);
    struct uplink_url u;
    const struct str proxy = uplink_proxy_of_answer(a, one);
    if (proxy.p && uplink_url_parse(proxy, &u) < 0)
        abort(); /* what is given on as a proxy can be used as one */
    (void) uplink_proxy_is_excepted(one, rest, 443);
    if (!uplink_proxy_is_excepted(STR("*"), rest, 443))
        abort();
    if (!uplink_pac_glob(one, STR("*")) || (str_find(one, '*') < 0 && str_find(one, '?') < 0 &&
                                            uplink_pac_glob(rest, one) != str_eq(rest, one)))
        abort();
    call_functions(one, rest);
    return 0;
}
