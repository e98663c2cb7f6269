/* SPDX-License-Identifier: Apache-2.0 */
/* A device of a test: directories in a temporary place with what an installer puts there, a
 * controller with a chain of certificates, a machine that is asked for nothing but its serial
 * number, and a loop that runs until something is so. */
#pragma once

#include "loop/loop.h"
#include "machine/machine.h"
#include "node/node.h"

struct authority {
    struct pki_key *key;
    struct pki_cert *cert;
};

struct device {
    char root[64];
    struct arena *arena;
    struct loop *loop;
    struct loop_timer *timer;
    struct clock_virtual clock;
    struct machine machine;
    struct uplink_wire *wire; /* of the test; NULL: nothing is sent */
    struct node *node;
    struct authority authority, between, signing, exchange; /* of the controller */
    bool (*is_so)(void *arg);
    void *arg;
    int n_turns;
};

/* Makes the files, not the node. */
void device_init(struct device *d);
void device_done(struct device *d);
/* A life of the node; fails the test when it cannot be. */
void device_start(struct device *d, bool is_simulated);
void device_stop(struct device *d);
void device_run_until(struct device *d, bool (*is_so)(void *arg), void *arg);
void device_run_turns(struct device *d, int n);

const char *device_path(struct device *d, const char *below);
void device_write(struct device *d, const char *below, struct str content);
/* Absent: no such file. */
struct str device_read(struct device *d, const char *below);

struct authority authority_new(const char *name, bool is_ca, const struct authority *by);
void authority_done(struct authority *a);

/* A ZControllerCert of these: type and certificate each. */
struct device_cert {
    int type;
    const struct authority *of;
};
struct str device_certs(struct device *d, const struct device_cert *certs, size_t n);
/* What a good controller answers. */
struct str device_good_certs(struct device *d);
/* An answer signed by the one named. */
struct str device_seal(struct device *d, const struct authority *by, struct str payload);
