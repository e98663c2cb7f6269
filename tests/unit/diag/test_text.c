/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "diag/diag_internal.h"
#include "test.h"

#define PORT \
    "{\"name\":\"eth0\",\"isManagement\":true,\"cost\":5,\"addresses\":[\"10.0.0.2\"]," \
    "\"dnsServers\":[\"10.0.0.1\",\"10.0.0.3\"],\"addressing\":\"dhcp\"," \
    "\"proxy\":{\"list\":[{\"type\":\"http\",\"server\":\"p:80\"}],\"exceptions\":\"*.local\"}," \
    "\"lastWarning\":\"slow\",\"result\":\"fail\",\"checks\":[" \
    "{\"check\":\"lookup\",\"result\":\"pass\",\"target\":\"c.example\",\"words\":\"10.9.9.9\"}," \
    "{\"check\":\"ping\",\"result\":\"fail\",\"target\":\"https://c/ping\",\"tries\":5," \
    "\"words\":\"refused\"}," \
    "{\"check\":\"probe-http\",\"result\":\"pass\",\"target\":\"http://g\"}," \
    "{\"check\":\"probe-https\",\"result\":\"fail\",\"target\":\"https://g\"}]}"
#define REPORT \
    "{\"time\":\"2026-01-02T03:04:05Z\",\"server\":\"c.example\",\"device\":\"d-1\"," \
    "\"hardwareModel\":\"M\",\"identity\":\"device\",\"maintenanceMode\":true," \
    "\"summary\":{\"level\":\"warning\",\"words\":\"Connected\"}," \
    "\"portConfig\":{\"state\":\"REMOTE_WAIT\",\"testing\":true,\"current\":1,\"list\":[" \
    "{\"key\":\"a\",\"lastError\":\"no way\"},{\"key\":\"b\"},{\"key\":\"c\"}]}," \
    "\"vaults\":[{\"name\":\"V\",\"status\":\"error\",\"error\":\"no key\"}]," \
    "\"apps\":{\"running\":2,\"list\":[{\"name\":\"web\",\"error\":\"died\"}]}," \
    "\"downloads\":[{\"name\":\"i\",\"error\":\"404\"}]," \
    "\"ports\":[" PORT ",{\"name\":\"app0\"}],\"managementPorts\":1,\"passedPorts\":0}"

static char *text_of(const char *report, unsigned rows, unsigned columns)
{
    ARENA_AUTO a = arena_new();
    struct buf b = {0};
    diag_text(&b, json_parse_quick(a, str_of(report)), rows, columns);
    return buf_take(&b);
}

TEST(the_text_says_what_the_json_has)
{
    char *text = text_of(REPORT, 0, 0);
    assert_string_equal(
        text,
        "\nINFO: updated diag information at 2026-01-02T03:04:05Z\n"
        "WARNING: Summary: Connected\n"
        "INFO: EV Controller c.example\n"
        "INFO: Device d-1, model M\n"
        "WARNING: maintenance mode\n"
        "WARNING: Not testing priority 0 DevicePortConfig key a due to no way\n"
        "INFO: Testing priority 1 DevicePortConfig key b\n"
        "INFO: Have 1 backup DevicePortConfig\n"
        "WARNING: The configuration below is under test hence might report failures\n"
        "WARNING: state REMOTE_WAIT not SUCCESS\n"
        "ERROR: vault V error no key\n"
        "INFO: applications: 0 starting, 2 running, 0 stopping, 0 in error\n"
        "ERROR: application web: died\n"
        "ERROR: download of i: 404\n"
        "INFO: Have 2 total ports. 1 ports should be connected to EV controller\n"
        "INFO: Port eth0: for EV Controller (cost 5)\n"
        "INFO: eth0: IP address 10.0.0.2\n"
        "INFO: eth0: DNS servers: 10.0.0.1, 10.0.0.3\n"
        "INFO: eth0: proxy exceptions *.local\n"
        "INFO: eth0: http proxy p:80\n"
        "WARNING: eth0: slow\n"
        "INFO: eth0: lookup of c.example: 10.9.9.9\n"
        "ERROR: eth0: ping https://c/ping failed after 5 tries: refused\n"
        "WARNING: eth0: Can reach http://g but not the EV controller\n"
        "ERROR: eth0: Can't reach https://g; likely lack of Internet connectivity\n"
        "FAIL: port eth0 not connected to EV controller c.example\n"
        "INFO: Port app0: for application use\n"
        "INFO: app0: No IP address\n"
        "INFO: app0: DNS servers: \n"
        "INFO: app0: no http(s) proxy\n"
        "INFO: app0: not intended for EV controller; skipping those tests\n"
        "WARNING: 0 out of 1 ports specified to have EV controller connectivity passed test\n");
    mem_free(text);
}

static void assert_fits(unsigned rows, unsigned columns)
{
    char *text = text_of(REPORT, rows, columns);
    struct str rest = str_of(text), line;
    size_t n_lines = 0;
    while (str_split(&rest, '\n', &line)) {
        assert_true(line.n <= MAX(columns, 16));
        n_lines++;
    }
    /* The result comes last, whatever else is left out; folded it may have some lines. */
    assert_true(n_lines <= rows + 100 / MAX(columns, 16) + 8);
    assert_true(str_ends_with(str_trim(line), STR("test")));
    mem_free(text);
}

TEST(a_console_gets_what_fits)
{
    static const unsigned sizes[] = {1, 3, 16, 17, 40, 80, 200};
    for (size_t i = 0; i < N_ELEMENTS(sizes); i++)
        for (size_t k = 0; k < N_ELEMENTS(sizes); k++)
            assert_fits(sizes[i], sizes[k]);
}

TEST(characters_are_not_cut)
{
    char *text = text_of("{\"server\":\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"}",
                         0, 16);
    struct str rest = str_of(text), line;
    while (str_split(&rest, '\n', &line))
        assert_true(str_is_utf8(line));
    mem_free(text);
}

TEST(nothing_known_is_a_report_too)
{
    char *text = text_of("{}", 0, 0);
    assert_non_null(strstr(text, "ERROR: No ports specified"));
    mem_free(text);
}
