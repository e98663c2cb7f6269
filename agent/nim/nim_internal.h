/* SPDX-License-Identifier: Apache-2.0 */
/* Between nim's files: nim.c decides and publishes, sources.c brings configurations, last_resort.c
 * makes the one of the machine itself, test.c asks the controller, geo.c asks where we are. */
#pragma once

#include "controllerconn/verify.h"
#include "controllerconn/wpad.h"
#include "loop/loop.h"
#include "nim/nim.h"
#include "nim/status.h"
#include "nim/verifier.h"
#include "node/link.h"

#define NIM_MAX_PAC_BYTES ((size_t) 32 * 1024) /* the status must fit a packet of its topic */

enum nim_topic {
    NIM_OF_ZEDAGENT,  /* DevicePortConfig of controller and bootstrap */
    NIM_OF_MONITOR,   /* made by hand */
    NIM_OF_FILES,     /* the global topic */
    NIM_AGENT_STATUS, /* radio silence, air gap */
    NIM_LOC,
    NIM_ADAPTERS,
    NIM_MODEMS,
    NIM_TOPICS
};

/* The test of connectivity under way. */
struct nim_test {
    bool is_under_way;
    bool is_stale;    /* the network has changed since it began */
    unsigned n_again; /* it was begun anew for that reason */
    bool is_local;    /* the local operator console is asked first */
    struct uplink_ports *ports;
    size_t port_at; /* whose script is looked for */
    struct uplink_wpad *wpad;
    struct uplink_verify *verify;
    struct uplink_trace *trace; /* of it; NULL: none is kept */
    struct loop_deferred next;
};

/* Lookups of where addresses are. */
struct nim_geo {
    struct node_link *link; /* NULL: nobody is asked */
    struct status_place *places;
    size_t n_places;
    struct uplink_call *call;
    char *port, *address; /* that are asked about */
    int64_t due_us;       /* of the next; 0: none */
};

struct nim {
    struct node *node;
    struct nim_options o;
    struct node_watch watch;
    struct node_link *link;
    struct publication *status, *list_topic;
    struct subscription *topics[NIM_TOPICS];
    struct dpc_list list;
    struct dpc *overlay; /* of a local profile server; NULL: none */
    struct verifier verifier;
    struct nim_test test;
    struct nim_geo geo;
    struct status_script *scripts;
    size_t n_scripts;
    uint64_t iteration;
    struct loop_timer *timer;
    struct loop_deferred act; /* after whatever has changed in this turn */
    bool needs_status, needs_list;
    bool shows_testing;
    unsigned char shown[SHA256_BYTES]; /* of the status last published, without what is no news */
    const struct dpc *applied;         /* identity alone: what the machine was last told */
    char *network;                     /* of the ports' interfaces, as they last were */
    int64_t last_resort_us;            /* when it is made for want of another; 0: not at all */
};

/* Publishes, starts a test that is wanted, sets the timer: at the end of this turn. */
void nim_act(struct nim *m);
/* Takes it over: a new or changed configuration. */
void nim_put(struct nim *m, struct dpc *d);
void nim_remove(struct nim *m, const struct dpc *like);
/* Takes it over: what a local profile server wants; NULL: nothing. */
void nim_lay_over(struct nim *m, struct dpc *d);
/* Of the configuration in use, as it is in force: where results belong. NULL: there is none. */
struct dpc_port *nim_find_port(const struct nim *m, struct str name);
/* On this machine itself: no port leads to it. */
bool nim_controller_is_here(const struct nim *m);
/* The status as of now. */
struct json *nim_status(struct nim *m, struct arena *a);
void nim_publish_status(struct nim *m);

/* ---- sources.c ----------------------------------------------------------------------------- */

int nim_sources_new(struct nim *m);
void nim_sources_free(struct nim *m);
/* NULL: there is none. */
struct json *nim_radio_silence(const struct nim *m, struct arena *a);
struct json *nim_modems(const struct nim *m, struct arena *a);
struct str nim_loc_url(const struct nim *m, struct arena *a);
struct nim_held {
    bool is_assigned, is_held;
    struct str words;
};
/* Whether a port of it is passed through to an application. */
struct nim_held nim_held(const struct nim *m, struct arena *a, const struct dpc *d);

/* ---- last_resort.c ------------------------------------------------------------------------- */

/* Makes it, or makes it anew when interfaces have come. */
void nim_last_resort(struct nim *m);
bool nim_has_last_resort(const struct nim *m);

/* ---- geo.c --------------------------------------------------------------------------------- */

int nim_geo_new(struct nim *m);
void nim_geo_free(struct nim *m);
/* Asks what is due, and says when the next is. */
void nim_geo_act(struct nim *m);

/* ---- test.c -------------------------------------------------------------------------------- */

void nim_test_start(struct nim *m);
void nim_test_cancel(struct nim *m);
