/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceNetworkStatus: the configuration in use together with what the machine's interfaces have
 * become, as every other service reads it. */
#pragma once

#include "machine/machine.h"
#include "nim/dpc_list.h"

/* A port whose name is among them was found to have a proxy script. */
struct status_script {
    char *port;
    char *pac, *url; /* base64; where it came from. NULL: there was none */
};

/* Where an address of a port was found to be. */
struct status_place {
    char *port, *address;
    char *geo;        /* JSON; NULL: not known */
    int64_t found_us; /* wall time */
    int64_t due_us;   /* monotonic: when it is asked for again */
};

struct status_inputs {
    const struct dpc_list *list;
    const struct dpc *overlay; /* NULL: none */
    bool is_testing;
    const struct machine_interface *interfaces;
    size_t n_interfaces;
    const struct status_script *scripts;
    size_t n_scripts;
    const struct status_place *places;
    size_t n_places;
    const struct json *radio_silence; /* of ZedAgentStatus; NULL: none */
    const struct json *modems;        /* WwanStatus; NULL: none */
    /* No rule routes by source address, so traffic must be bound to the interface, too: our own
     * member BindsDevice of a port, which EVE's services do not know. */
    bool binds_device;
};
/* Of no configuration: an empty one. */
struct json *status_write(struct arena *a, const struct status_inputs *in);

const struct machine_interface *status_find_interface(const struct machine_interface *list,
                                                      size_t n, struct str name);
/* `address/bits`; false: it is none. */
bool status_parse_subnet(struct str text, struct machine_address *ret);
/* What the machine is to do for a port of the configuration. Lists are in the arena. */
struct machine_port status_machine_port(struct arena *a, const struct json *port);
