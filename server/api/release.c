/* SPDX-License-Identifier: Apache-2.0 */
#include "api/release.h"

#include "api/media.h"

/* Clients want every member to be there and a string. */
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
                               "  \"buildDate\": \"" RELEASE_BUILD_DATE "\",\n"
                               "  \"goVersion\": \"\",\n"
                               "  \"compiler\": \"" RELEASE_COMPILER "\",\n"
                               "  \"platform\": \"" RELEASE_PLATFORM "\"\n"
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
