/* SPDX-License-Identifier: Apache-2.0 */
/* Which Kubernetes release the server behaves as, and the /version document that says so. */
#pragma once

#include "api/document.h"
#include "api/status.h"

#define RELEASE_MAJOR "1"
#define RELEASE_MINOR "36"
/* Our own version is the build suffix, so that clients compare the Kubernetes part. */
#define RELEASE_VERSION "v" RELEASE_MAJOR "." RELEASE_MINOR ".0+seth-" SETH_VERSION
/* A build that can be repeated has no date of its own. */
#define RELEASE_BUILD_DATE "1970-01-01T00:00:00Z"

#if defined(__clang__)
#define RELEASE_COMPILER "clang"
#else
#define RELEASE_COMPILER "gcc"
#endif

#if defined(__x86_64__)
#define RELEASE_PLATFORM "linux/amd64"
#elif defined(__aarch64__)
#define RELEASE_PLATFORM "linux/arm64"
#elif defined(__riscv)
#define RELEASE_PLATFORM "linux/riscv64"
#else
#define RELEASE_PLATFORM "linux/unknown"
#endif

/* Answers "/version" and "/version/" (the caller has matched the path). 405 and 406 are in st. */
int release_get(const struct document_request *q, struct document_reply *ret_reply,
                struct status *st);
