/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine.h"

void machine_free(struct machine *m)
{
    if (m)
        m->functions->free(m);
}
