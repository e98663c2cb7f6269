/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as bytes in, answers as bytes out, without a socket: what conn.c does, in one go. */
#pragma once

#include "device.h"
#include "loop/loop.h"

struct desk {
    struct device device;
    struct loop *loop;
    struct msrv *msrv;
    struct buf out;
};

void desk_init(struct desk *d);
void desk_done(struct desk *d);
/* Fed in pieces of so many bytes; 0: at once. The answer, head and body, until the next; "" when
 * the request is not whole, "(proxied)" when the exporter would answer. */
struct str desk_ask(struct desk *d, const char *address, struct str request, size_t n_piece);
int desk_status(const struct desk *d);
struct str desk_body(const struct desk *d);
/* A header of the answer, in the case in which it is sent. */
struct str desk_header(const struct desk *d, const char *name);
