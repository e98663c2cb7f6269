/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* Signs approved requests for kubernetes.io/kube-apiserver-client; other signers' are left to them.
 */
extern const struct controller certificates_controller;
/* Deletes requests, anybody's, that nobody looks at any more. */
extern const struct controller certificate_cleanup_controller;
