/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's HTTP answer, as it comes and byte by byte: both must be read alike, within limits.
 */
#include <stdlib.h>

#include "controllerconn/response.h"

#define MAX_BODY_BYTES ((size_t) 4096)

static int read_in_steps(struct uplink_response *a, struct str bytes, size_t step)
{
    int r = 0;
    uplink_response_init(a, MAX_BODY_BYTES);
    for (size_t at = 0; at < bytes.n && r == 0; at += step)
        r = uplink_response_feed(a, str_sub(bytes, at, at + step < bytes.n ? at + step : bytes.n));
    return r != 0 ? r : uplink_response_end(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str bytes = str_range((const char *) data, size);
    struct uplink_response whole, slow;
    const int r = read_in_steps(&whole, bytes, size + 1);
    const int again = read_in_steps(&slow, bytes, 1);
    if (whole.body.n > MAX_BODY_BYTES || (r == 1) != (again == 1))
        abort();
    if (r == 1 &&
        (whole.status != slow.status || !str_eq(buf_str(&whole.body), buf_str(&slow.body))))
        abort();
    uplink_response_done(&whole);
    uplink_response_done(&slow);
    return 0;
}
