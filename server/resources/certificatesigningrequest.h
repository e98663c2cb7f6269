/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of CertificateSigningRequest: what its status may become. */
#pragma once

#include "api/hooks.h"
#include "schema/causes.h"

/* A write to /status or /approval: the conditions it may not touch stay, times are filled in. */
void csr_prepare_status(struct hook_context *h, const struct json *old, struct json *object);
void csr_check_status(const struct json *object, struct causes *causes);
void csr_check_status_change(struct hook_context *h, const struct json *old,
                             const struct json *object, struct causes *causes);
