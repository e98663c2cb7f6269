/* SPDX-License-Identifier: Apache-2.0 */
/* A world for the controllers that make Applications: the garbage collector, and devices that take
 * an Application, report it ready a while later, and can be out of touch. */
#pragma once

#include "world.h"

#define APPS "applications.eve.lfedge.org"
#define VERSION "eve.lfedge.org/v1beta1/"
#define SECOND_MS ((int64_t) 1000)

struct scene {
    struct world w;
    struct arena *arena;
    /* Looked at after every write; may be NULL. */
    void (*check)(struct scene *s);
    int64_t max_live; /* what check saw at the most, and at the least */
    int64_t min_available;
    bool is_watching;
};

void scene_init(struct scene *s, uint64_t seed);
void scene_done(struct scene *s);
#define SCENE(seed) \
    CLEANUP(scene_done) struct scene s; \
    scene_init(&s, seed)

/* In touch, or not. */
void scene_device(struct scene *s, const char *name, const char *labels);
void scene_touch(struct scene *s, const char *name, bool is_in_touch);
/* A Deployment, DaemonSet or StatefulSet named "web": spec is the rest of it, with ' for ". image
 * is what its template boots: with "bad" nothing gets ready. */
void scene_create(struct scene *s, const char *plural, const char *spec, const char *image);
void scene_set_image(struct scene *s, const char *plural, const char *image);
void scene_patch(struct scene *s, const char *plural, const char *text);

/* Runs with one write for each life of the controllers, for so long. */
void scene_crash_often(struct scene *s, int64_t ms);

/* ---- looking ------------------------------------------------------------------------------- */

struct scene_app {
    struct str name, image, device, revision;
    bool is_ready, is_deleting;
    const struct json *object;
};
/* Applications by name, in the scene's arena. */
size_t scene_apps(struct scene *s, struct scene_app **ret);
/* Not on their way out; with the image, or with any when NULL. */
int64_t scene_live(struct scene *s, const char *image);
int64_t scene_ready(struct scene *s, const char *image);
int64_t scene_status(struct scene *s, const char *plural, const char *key);
struct str scene_condition(struct scene *s, const char *plural, const char *type, const char *key);
size_t scene_revisions(struct scene *s);
