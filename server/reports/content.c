/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoContentTree: how far one device is with an Image. */
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

struct fact fact_of_content(struct arena *a, const Eve__Info__ZInfoContentTree *m)
{
    if (m->state == EVE__INFO__ZSW_STATE__INVALID && !pb_text(m->displayname).n)
        return (struct fact){.state = FACT_GONE};
    if (words_is_fatal(m->err))
        return (struct fact){.state = FACT_ERROR, .message = words_error(a, m->err)};
    /* Devices end with DELIVERED; LOADED is what the protocol's description promises. */
    bool is_ready =
        m->state == EVE__INFO__ZSW_STATE__DELIVERED || m->state == EVE__INFO__ZSW_STATE__LOADED;
    return (struct fact){.state = is_ready ? FACT_READY : FACT_PREPARING};
}
