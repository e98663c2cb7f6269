/* SPDX-License-Identifier: Apache-2.0 */
/* Every controller of the server, one line each; the runner starts them all. */
#include "controllers/crd.h"

const struct controller *const controllers[] = {
    &crd_controller,
    NULL,
};
