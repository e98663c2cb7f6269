/* SPDX-License-Identifier: Apache-2.0 */
/* What the view is made of. Everything here is under its lock, and within one namespace. */
#pragma once

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "scheduling/demand.h"
#include "scheduling/pointers.h"
#include "scheduling/view.h"

#define UNKNOWN_AMOUNT ((int64_t) -1)

/* Why a Device is not for an Application. In this order: the later, the closer. */
enum refusal {
    REFUSAL_SELECTOR,
    REFUSAL_LEAVING,
    REFUSAL_INACTIVE,
    REFUSAL_NETWORK,
    REFUSAL_VOLUME,
    REFUSAL_MEMORY,
    REFUSAL_CPU,
    REFUSALS,
    REFUSAL_NONE = REFUSALS,
};

struct device {
    /* What a pass over all devices looks at comes first, and together. */
    bool exists; /* otherwise only somebody's status or spec names it */
    bool is_active, is_leaving, is_touched;
    uint32_t n_applications;
    uint32_t n_refs;               /* Applications and Volumes that name it */
    uint32_t seen_in;              /* the last count it was part of */
    int64_t memory_kib, cpu_milli; /* allocatable; UNKNOWN_AMOUNT: not reported */
    int64_t used_memory_kib, used_cpu_milli;
    struct str name;
    struct json *labels; /* one block; NULL: none */
    struct tenant *tenant;
    struct pointers groups;   /* that it is in */
    struct pointers volumes;  /* on it */
    struct list applications; /* that count here */
    struct list touched;      /* in tenant->touched */
};

/* Devices with one label, or of one name, and those who wait for such. */
struct group {
    struct str key; /* "<label>=<value>" */
    struct pointers devices, waiting /* wishes */;
};

struct network {
    struct str name;
    bool exists;
    struct str selection; /* as demand_selection() */
    struct pointers wishes;
};

struct claim {
    struct str name;
    struct pointers volumes, wishes;
};

struct volume {
    struct str name;
    struct claim *claim;
    struct device *device;
};

/* What Applications ask for: one for all that ask for the same. */
struct wish {
    struct str key; /* owned; holds the strings of the demand */
    struct demand demand;
    struct tenant *tenant;
    struct pointers networks, claims;
    struct list applications; /* all of them */
    struct list waiting;      /* those that fit nowhere */
    struct pointers waits_in; /* groups; none while some wait: any device may do */
    struct list anywhere;     /* in tenant->anywhere then */
    struct list touched;      /* in tenant->touched_wishes */
    uint32_t n_waiting;
    bool is_touched;
    bool is_retelling;   /* those that wait were woken to see what they are told */
    uint64_t counted_at; /* the tenant's version that refused is of; 0: none */
    uint32_t refused[REFUSALS];
};

struct application {
    struct str name;
    struct tenant *tenant;
    struct wish *wish;
    struct device *device; /* where it counts; NULL: nowhere */
    struct device *seen;   /* what its status says */
    struct list in_wish, waiting, on_device;
    int64_t revision; /* of what is known */
    uint64_t uid;     /* a hash of it */
    uint64_t told;    /* a hash of what its status says, see view_outcome_hash() */
    const char *fault;
    bool is_assumed; /* device is being written */
    bool is_waiting, is_deleting;
};

/* A namespace. */
struct tenant {
    struct str name;
    struct view *view;
    struct map devices, groups, networks, claims, volumes, wishes, applications;
    struct pointers present; /* Devices that exist */
    struct list anywhere, touched, touched_wishes;
    size_t n_waiting;
    uint64_t version; /* changes with everything that a choice depends on */
    uint32_t n_counts;
};

struct view {
    pthread_mutex_t lock;
    struct map tenants;
    struct arena *scratch; /* of one choice or event */
    view_wake *wake;
    void *wake_ctx;
};

struct str view_text_keep(struct str s);
void view_text_drop(struct str *s);

/* ---- tenants --------------------------------------------------------------------------------- */
/* NULL when there is none and it is not to be made. */
struct tenant *view_tenant_find(struct view *v, struct str namespace, bool is_made);
void view_tenant_wake(struct tenant *t, struct str name, int64_t delay_ms);

/* ---- groups ---------------------------------------------------------------------------------- */
struct group *view_group_find(struct tenant *t, struct str label, struct str value, bool is_made);
void view_group_drop_if_unused(struct tenant *t, struct group *g);
/* The groups of which every Device that matches is in one, as few Devices as can be. False: it may
 * be any. Those that do not exist are left out unless is_made. In the scratch arena. */
bool view_groups_of(struct tenant *t, const struct json *selection, bool is_made,
                    struct group ***ret, size_t *ret_n);
/* The groups of which every Device is in one for which a preference holds; else as before. */
bool view_groups_preferred(struct tenant *t, const struct json *selection, struct group ***ret,
                           size_t *ret_n);

/* ---- devices --------------------------------------------------------------------------------- */
struct device *view_device_find(struct tenant *t, struct str name, bool is_made);
void view_device_ref(struct device *d);
void view_device_unref(struct device *d);
void view_device_on_event(struct tenant *t, const struct kube_event *e);
/* There may be more room on it, or it may match more. */
void view_device_touch(struct device *d);
void view_device_free(struct device *d);

/* ---- networks and volumes -------------------------------------------------------------------- */
struct network *view_network_find(struct tenant *t, struct str name, bool is_made);
void view_network_on_event(struct tenant *t, const struct kube_event *e);
struct claim *view_claim_find(struct tenant *t, struct str name, bool is_made);
void view_network_drop_if_unused(struct tenant *t, struct network *n);
void view_claim_touch(struct tenant *t, const struct claim *c);
void view_claim_drop_if_unused(struct tenant *t, struct claim *c);
void view_volume_on_event(struct tenant *t, const struct kube_event *e);
void view_volume_free(struct tenant *t, struct volume *v);
void view_network_free(struct tenant *t, struct network *n);
/* Whether what the claim holds is on the device, or nowhere yet. */
bool view_claim_allows(const struct claim *c, const struct device *d);

/* ---- wishes ---------------------------------------------------------------------------------- */
struct wish *view_wish_of(struct tenant *t, const struct demand *d);
void view_wish_drop_if_unused(struct wish *w);
/* Unless they do already; unless they do not. */
void view_wish_wait(struct application *app);
void view_wish_stop_waiting(struct application *app);
/* Something it depends on changed: all that have it are looked at, or only those that wait. */
void view_wish_touch(struct wish *w);
void view_wish_touch_waiting(struct wish *w);

/* ---- applications ---------------------------------------------------------------------------- */
void view_application_on_event(struct tenant *t, const struct kube_event *e);
/* Takes over what the object says, unless something newer is known. True: a choice may depend on
 * what is new. */
bool view_application_saw(struct application *app, const struct json *object);
/* Counts it there; NULL: nowhere. */
void view_application_place(struct application *app, struct device *d);
void view_application_wake(struct application *app, int64_t delay_ms);
void view_application_free(struct application *app);

/* ---- choices --------------------------------------------------------------------------------- */
/* Whether it may stay where it is: what is chosen sticks, whatever room there is. */
bool view_choice_holds(struct wish *w, struct device *d);
/* The best Device with room for one more; NULL: none, and w->refused says why. */
struct device *view_choice_make(struct wish *w);
/* Whether that one has room for one more and matches. */
bool view_choice_fits(struct wish *w, struct device *d);
/* What is to be said of it. */
struct view_outcome view_choice_outcome(struct arena *a, const struct application *app);
uint64_t view_outcome_hash(const struct view_outcome *o);
/* The same, as the status of the object says it. */
uint64_t view_outcome_hash_of(const struct json *object);
