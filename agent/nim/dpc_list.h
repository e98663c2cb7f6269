/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations a device knows, the most wanted first, and which of them is in use: what is
 * kept over a restart and what there is to fall back to. */
#pragma once

#include "nim/dpc.h"

#define DPC_LIST_MAX 32 /* beyond it the last one goes that is neither in use nor first */

struct dpc_list {
    struct dpc **items;
    size_t n_items;
    int current; /* -1: none */
};

void dpc_list_init(struct dpc_list *l);
void dpc_list_done(struct dpc_list *l);
/* What an earlier life has left: without the errors of ports, without what leads nowhere; none is
 * in use. */
void dpc_list_read(struct dpc_list *l, const struct json *v);
struct json *dpc_list_write(struct arena *a, const struct dpc_list *l);

struct dpc *dpc_list_current(const struct dpc_list *l);
/* Takes it over. By its key and time it replaces what was there; the same content under another
 * time moves with its results. False: nothing is another than before. */
bool dpc_list_put(struct dpc_list *l, struct dpc *d);
/* What is equal by key and time, or in content. False: there is none. */
bool dpc_list_remove(struct dpc_list *l, const struct dpc *like);

/* The next to test from there on, around the end, never below one made by hand; -1: none. */
int dpc_list_next_testable(const struct dpc_list *l, size_t from, int64_t wall_us);
/* Where to stay while nothing works; -1: the list is empty. */
int dpc_list_parking(const struct dpc_list *l);
/* Forgets what nobody will fall back to. Not while the list is gone through. */
void dpc_list_compress(struct dpc_list *l, bool keeps_last_resort);
