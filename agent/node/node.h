/* SPDX-License-Identifier: Apache-2.0 */
/* One device as its services see it: its loop and clock, its directories, who it is, whom it
 * believes, and what every service must know: the global configuration, the network, the UUID. A
 * process of a real device has one; a fleet in a box has thousands. Services share nothing else but
 * topics. Everything belongs to the loop's thread; there is no global state. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/uuid.h"
#include "controllerconn/uplink.h"
#include "node/items.h"
#include "pki/pki.h"
#include "pubsub/publication.h"
#include "pubsub/subscription.h"
#include "json/json.h"

struct loop;
struct machine;

enum node_directory { NODE_CONFIG, NODE_PERSIST, NODE_RUN, NODE_DIRECTORIES };

struct node_options {
    struct loop *loop;
    const struct clock *clock;
    struct uplink_wire *wire; /* one for all nodes of the loop */
    struct machine *machine;  /* outlives the node */
    const char *directories[NODE_DIRECTORIES];
    struct uplink_trust *trust; /* NULL: root-certificate.pem and the machine's own */
    struct str user_agent;      /* absent: seth-agent's */
    /* One of many in a process: nobody outside takes part in its topics, and its files need not
     * survive a power cut of the machine that simulates it. */
    bool is_simulated;
};

/* Bits of what services wait for. */
enum node_change {
    NODE_ITEMS = 1,      /* the global configuration: n->items */
    NODE_NETWORK = 2,    /* DeviceNetworkStatus: n->ports, n->network_state */
    NODE_ONBOARDED = 4,  /* OnboardingStatus: n->device */
    NODE_CONTROLLER = 8, /* certificates of the controller were replaced */
    NODE_SERVER = 16,    /* the file `server` says something else */
};

/* Embedded by whoever wants to know; called at the end of the turn in which it changed, also for
 * what was there before node_watch(). */
struct node_watch {
    void (*on_change)(struct node_watch *w, unsigned changes);
    struct list link;
    bool is_new;
};

/* DeviceNetworkStatus.State, as EVE numbers it. */
enum node_network_state {
    NODE_NETWORK_NONE = 0,
    NODE_NETWORK_FAIL = 1,
    NODE_NETWORK_FAIL_WITH_IP_AND_DNS = 2,
    NODE_NETWORK_SUCCESS = 3,
    NODE_NETWORK_IPDNS_WAIT = 4,
    NODE_NETWORK_PCI_WAIT = 5,
    NODE_NETWORK_INTERFACE_WAIT = 6,
    NODE_NETWORK_REMOTE_WAIT = 7,
    NODE_NETWORK_ASYNC_WAIT = 8,
    NODE_NETWORK_WWAN_WAIT = 9,
};

enum node_led {
    NODE_LED_WAITING_FOR_ADDRESS = 1,
    NODE_LED_CONNECTING = 2,
    NODE_LED_CONNECTED = 3,
    NODE_LED_ONBOARDED = 4,
    NODE_LED_RADIO_SILENCE = 5,
    NODE_LED_ONBOARDING_FAILURE = 10,
    NODE_LED_NO_TLS = 12,
    NODE_LED_NO_OCSP = 13,
    NODE_LED_BAD_CONTROLLER_CERT = 14,
    NODE_LED_BAD_ENVELOPE = 15,
    NODE_LED_BAD_BOOTSTRAP = 16,
    NODE_LED_ONBOARDING_CONFLICT = 17,
    NODE_LED_NOT_FOUND = 18,
};

/* An identity of the config directory. */
struct node_identity {
    struct str cert_pem;
    struct pki_key *key; /* NULL: not here */
    struct pki_cert *cert;
    unsigned char cert_hash[SHA256_BYTES]; /* of its DER, as the device's envelopes name it */
    struct uplink_tls *tls;
};

/* Read it, do not write it. */
struct node {
    struct loop *loop;
    const struct clock *clock;
    struct uplink_wire *wire;
    struct machine *machine;
    struct pubsub *pubsub;
    struct uplink_trust *trust;
    bool is_simulated;
    struct str server;      /* `host[:port]` of the file, without newline */
    struct str serial;      /* the machine's; may be empty */
    struct str soft_serial; /* of the file; may be empty */
    struct str user_agent;
    struct node_identity identity;   /* of the device: made at its first start when absent */
    struct node_identity onboarding; /* cert NULL: there is none */
    struct items *items;             /* defaults until a configuration came */
    bool has_items;                  /* ConfigItemValueMap has been heard of */
    struct uplink_ports *ports;      /* NULL until nim has spoken */
    enum node_network_state network_state;
    struct uuid device; /* nil until onboarded */
    struct str hardware_model;
    struct list watches;
    struct node_internal *internal;
};

/* Reads the config directory, makes what is missing of the others. Negative errno and *ret_error
 * (heap, for people): no server, no root certificate, damaged keys. */
int node_new(const struct node_options *o, struct node **ret, char **ret_error);
/* After everything that uses it; then the loop must settle. NULL allowed. */
void node_free(struct node *n);

void node_watch(struct node *n, struct node_watch *w);
/* Also of one that was never watched, if zeroed. */
void node_unwatch(struct node_watch *w);
/* Reads the file `server` again. Negative errno: it cannot be read, the old one stays. */
int node_reread_server(struct node *n);

/* ---- files ------------------------------------------------------------------------------------
 */

#define NODE_MAX_FILE_BYTES ((size_t) 64 * 1024 * 1024)
/* `<directory>/<name>`, NUL-terminated, in the arena. */
const char *node_path(struct arena *a, const struct node *n, enum node_directory d,
                      struct str name);
/* -ENOENT: absent or empty. */
int node_file_read(const struct node *n, enum node_directory d, struct str name, struct buf *to);
/* Whole or not at all, with its directories; on disk before it returns (but for a simulated
 * node). */
int node_file_write(struct node *n, enum node_directory d, struct str name, struct str content);
/* The same, and what was there before becomes `<name>.bak`: one of the two is whole at any time. */
int node_file_replace(struct node *n, enum node_directory d, struct str name, struct str content);
/* 0 also when it was not there. */
int node_file_remove(struct node *n, enum node_directory d, struct str name);

/* ---- the controller's certificates ------------------------------------------------------------
 */

/* The payload of GET certs (ZControllerCert) or of the checkpoint: its chain must lead to
 * root-certificate.pem now. -EBADMSG: no such message; -EKEYREJECTED with *ret_reason (static)
 * otherwise. Replaces the set in memory, and the checkpoint `controllercerts` (the old one becomes
 * .bak) when the set of hashes differs. */
int node_take_controller_certs(struct node *n, struct str message, bool needs_ecdh,
                               const char **ret_reason);
/* From the checkpoint, or its .bak. -ENOENT; errors as above. Called by node_new(), which does not
 * mind. */
int node_load_controller_certs(struct node *n);
bool node_has_controller_certs(const struct node *n);
/* One of the set. Strings live until the set is replaced. */
struct node_controller_cert {
    int hash_algo, type; /* ZCert's enums */
    struct str pem, hash;
};
const struct node_controller_cert *node_controller_certs(const struct node *n, size_t *ret_n);

/* What of an AuthContainer a device believes: by the controller's signing certificate. Appends the
 * payload. -EBADMSG, -EKEYREJECTED with the status that says why (CERT_MISS: signed by another
 * certificate than known). */
int node_open_envelope(struct node *n, struct str body, struct buf *to, enum uplink_status *ret);
/* By the device's own key, or the onboarding one. */
int node_seal_envelope(struct node *n, bool is_registration, struct str payload, struct buf *to);

/* Those of proxies that look into TLS, as the ports of a DeviceNetworkStatus have them, become
 * anchors of n->identity.tls. The node does so with what nim publishes, nim before it tests that.
 */
void node_take_proxy_certs(struct node *n, const struct json *status);

/* ---- the rest ---------------------------------------------------------------------------------
 */

/* The global topic LedBlinkCounter, for ledmanager and diag. */
void node_set_led(struct node *n, enum node_led led);
enum node_led node_led(const struct node *n);
/* Uniform between 0.3 and 1.0 of so many seconds, in milliseconds: what EVE does to its timers. */
int64_t node_jitter_ms(const struct node *n, int64_t interval_s);
/* Uniform within +-percent of it. */
int64_t node_spread_ms(const struct node *n, int64_t interval_ms, int percent);
/* RFC 3339 with nanoseconds as Go writes it; 0 becomes Go's zero time, 0001-01-01T00:00:00Z. */
struct json *node_json_time(struct arena *a, int64_t wall_us);
/* 0: absent, unreadable or Go's zero time. */
int64_t node_json_time_us(const struct json *value);
