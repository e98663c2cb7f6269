/* SPDX-License-Identifier: Apache-2.0 */
/* Proxy auto-configuration: FindProxyForURL of a script from the network. Evaluated by duktape,
 * which has no way to stop a script that does not end, so the wire does it in a process of its own
 * with little time and memory. The only module that knows duktape. */
#pragma once

#include "base/buf.h"
#include "controllerconn/wire_internal.h"

#define UPLINK_PAC_MAX_ANSWER_BYTES ((size_t) 2048)
#define UPLINK_PAC_MAX_NAMES 16 /* that one evaluation may look up */
#define UPLINK_PAC_MAX_MEMORY_BYTES ((size_t) 16 * 1024 * 1024)

/* What the script may know. A name that it asks for and that is not here ends the evaluation. */
struct uplink_pac_world {
    struct str my_address;
    int64_t wall_us;
    struct {
        struct str name, address; /* empty: it has none */
    } names[UPLINK_PAC_MAX_NAMES];
    size_t n_names;
};

enum uplink_pac_result {
    UPLINK_PAC_FAILED,
    UPLINK_PAC_ANSWERED, /* the text is the script's answer */
    UPLINK_PAC_ASKS,     /* the text is a name to look up; evaluate again with its address */
};

/* Takes as long as the script likes. */
enum uplink_pac_result uplink_pac_evaluate(struct str script, struct str url,
                                           const struct uplink_pac_world *w, struct buf *ret_text);

/* Of struct uplink_wire_ops. */
struct uplink_script *uplink_pac_ask(struct uplink_wire *wire, const struct uplink_port *port,
                                     struct str source, struct str url,
                                     void (*on_answer)(void *arg, struct str answer), void *arg);
void uplink_pac_cancel(struct uplink_script *s);
