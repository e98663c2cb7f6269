/* SPDX-License-Identifier: Apache-2.0 */
/* A port configuration of an installer's file, of a topic or of an earlier life: what is read can
 * be written, read again as the same, and shown as a status. */
#include <stdlib.h>

#include "nim/status.h"

#define MAX_BYTES ((size_t) 64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_written(struct arena *a, const struct dpc *d)
{
    const struct dpc_defaults none = {0};
    CLEANUP(dpc_freep) struct dpc *again = NULL;
    if (dpc_read(dpc_write(a, d), &none, &again) < 0)
        abort();
    if (!dpc_has_same_content(d, again) || d->priority_us != again->priority_us ||
        dpc_is_usable(d) != dpc_is_usable(again))
        abort();
}

static void check_status(struct arena *a, const struct dpc_list *l)
{
    struct uplink_ports *ports = NULL;
    const struct status_inputs in = {.list = l, .overlay = l->items[0]};
    if (uplink_ports_parse(status_write(a, &in), &ports) < 0)
        abort();
    uplink_ports_unref(ports);
    JSON_FOR_EACH_ITEM (dpc_config(a, l->items[0]), port)
        (void) status_machine_port(a, port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ARENA_AUTO a = arena_new();
    if (n > MAX_BYTES)
        return 0;
    const struct json *v = json_parse_quick(a, str_range((const char *) data, n));
    if (!v)
        return 0;
    struct dpc_list l;
    struct dpc *d = NULL;
    dpc_list_init(&l);
    const struct dpc_defaults o = {.key = STR("override"), .origin = DPC_ORIGIN_OVERRIDE};
    if (dpc_read(v, &o, &d) == 0) {
        check_written(a, d);
        (void) dpc_list_put(&l, d);
        l.current = 0;
        check_status(a, &l);
    }
    dpc_list_done(&l);
    dpc_list_read(&l, v);
    dpc_list_compress(&l, /* keeps_last_resort= */ false);
    dpc_list_done(&l);
    return 0;
}
