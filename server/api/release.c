/* SPDX-License-Identifier: Apache-2.0 */
#include "api/release.h"

#include "api/media.h"

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#elif defined(__riscv)
#define ARCHITECTURE "riscv64"
#else
#define ARCHITECTURE "unknown"
#endif

#if defined(__clang__)
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

/* Clients want every member to be there and a string; a build that can be repeated has no date of
 * its own. */
static const char document[] = "{\n"
                               "  \"major\": \"" RELEASE_MAJOR "\",\n"
                               "  \"minor\": \"" RELEASE_MINOR "\",\n"
                               "  \"emulationMajor\": \"" RELEASE_MAJOR "\",\n"
                               "  \"emulationMinor\": \"" RELEASE_MINOR "\",\n"
                               "  \"minCompatibilityMajor\": \"" RELEASE_MAJOR "\",\n"
                               "  \"minCompatibilityMinor\": \"35\",\n"
                               "  \"gitVersion\": \"" RELEASE_VERSION "\",\n"
                               "  \"gitCommit\": \"\",\n"
                               "  \"gitTreeState\": \"\",\n"
                               "  \"buildDate\": \"1970-01-01T00:00:00Z\",\n"
                               "  \"goVersion\": \"\",\n"
                               "  \"compiler\": \"" COMPILER "\",\n"
                               "  \"platform\": \"linux/" ARCHITECTURE "\"\n"
                               "}";

int release_get(const struct document_request *q, struct document_reply *ret_reply,
                struct status *st)
{
    if (q->method != HTTP_GET)
        return status_no_method(st);
    const int r = media_choose_json(q->accept, st);
    if (r < 0)
        return r;
    *ret_reply = (struct document_reply){
        .status = 200,
        .content_type = STR("application/json"),
        .body = slice_static(str_range(document, sizeof(document) - 1)),
    };
    return 0;
}
