/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoNetworkInstance: how one device does with a DeviceNetwork. */
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

static bool is_deleted(const Eve__Info__ZInfoNetworkInstance *m)
{
    return m->state == EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_UNSPECIFIED &&
           !m->activated && !pb_text(m->displayname).n && !m->n_networkerr;
}

/* The state is ERROR whenever an error is on record, even a warning of a network that works: the
 * severity and `activated` decide. */
struct fact fact_of_network(struct arena *a, const Eve__Info__ZInfoNetworkInstance *m)
{
    if (is_deleted(m))
        return (struct fact){.state = FACT_GONE};
    const Eve__Info__ErrorInfo *e = words_worst(m->networkerr, m->n_networkerr);
    if (words_is_fatal(e))
        return (struct fact){.state = FACT_ERROR, .message = words_error(a, e)};
    if (m->activated)
        return (struct fact){.state = FACT_READY};
    if (m->state == EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_ERROR)
        return (struct fact){.state = FACT_ERROR,
                             .message = e ? words_error(a, e) : STR("not active")};
    return (struct fact){.state = FACT_PREPARING};
}
