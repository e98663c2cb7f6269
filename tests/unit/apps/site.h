/* SPDX-License-Identifier: Apache-2.0 */
/* A device with applications on the simulated runtime and a virtual clock. Topics are written as
 * zedagent does, what comes back is told as a story of states. An agent may die at any moment: what
 * a machine would keep (content, volumes, instances) is there for the next one. */
#pragma once

#include "apps/apps_internal.h"
#include "device.h"
#include "runtime/sim.h"

#define WEB "11111111-1111-4111-8111-111111111111"
#define DB "22222222-2222-4222-8222-222222222222"
#define NETWORK "aaaaaaaa-0000-4000-8000-000000000001"
#define STORE "dddddddd-0000-4000-8000-000000000001"
#define CONTENT "cccccccc-0000-4000-8000-000000000001"
#define VOLUME "eeeeeeee-0000-4000-8000-000000000001"
#define DISK "eeeeeeee-0000-4000-8000-000000000002"

/* What the configuration says; change it and site_configure(). */
struct site_config {
    bool has_no_config; /* zedagent has got none yet */
    bool has_app, has_volume, has_content, has_store, has_network;
    bool is_active, is_second; /* is_second: DB runs, too, of the same volume's content */
    int restart, purge, generation;
    const char *store_type; /* NULL: DsContainerRegistry */
    int format;             /* 0: CONTAINER */
    const char *user_data;  /* text */
    const char *version;
    int memory;           /* KB */
    const char *profiles; /* JSON */
};

struct site {
    struct device device;
    struct machine *machine;
    struct node *node;
    struct apps *apps;
    struct runtime *runtime;
    struct runtime_sim_options sim;
    struct site_config config;
    struct publication *in[N_IN];
    struct subscription *told;
    struct buf story; /* "115 118 119": states of WEB as they change */
    int64_t last_state;
    int errors; /* different errors of WEB that were told */
    struct found {
        enum runtime_kind kind;
        char id[80];
        enum runtime_state state;
    } found[64];
    size_t n_found;
};

void site_init(struct site *s);
void site_done(struct site *s);
/* The agent begins on what the last one has left. */
void site_start(struct site *s);
/* It dies. */
void site_kill(struct site *s);
/* Publishes what the configuration is now. */
void site_configure(struct site *s);
void site_run(struct site *s, int64_t seconds);
/* One thing that is due, or nothing: false. */
bool site_step(struct site *s);
/* What is published, NULL: nothing. Lives until the site goes. */
const struct json *site_told(struct site *s, enum apps_out which, const char *key);
int64_t site_state(struct site *s, const char *app);
size_t site_count(struct site *s, enum apps_out which);
/* Objects of the runtime. */
size_t site_objects(struct site *s);
enum runtime_state site_runtime_state(struct site *s, enum runtime_kind kind, const char *id);
/* Everything that matters in the end, as text; is_exact: with what follows from the way there
 * (numbers, addresses). */
struct str site_end_state(struct site *s, bool is_exact);
