/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/files.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/settings.h"
#include "pki/file.h"

#define MAX_OPEN_DIRECTORIES 16

/* As a device's config directory has them. */
static const char *const shared_names[] = {"server", "root-certificate.pem", "onboard.cert.pem",
                                           "onboard.key.pem"};

static int make_directory(const char *path)
{
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static const char *join(struct arena *a, const char *directory, const char *name)
{
    return arena_printf(a, "%s/%s", directory, name).p;
}

static int copy(const char *from, const char *to)
{
    BUF_AUTO content = {0};
    int r = pki_file_read(from, &content);
    if (r == 0)
        r = pki_file_write(to, buf_str(&content), 0600);
    if (r < 0)
        fprintf(stderr, "seth-fleet: %s: %s\n", from, strerror(-r));
    return r;
}

int fleet_files_prepare(struct arena *a, const struct fleet_settings *s, const char *root)
{
    const char *shared = join(a, root, ".shared");
    int r = make_directory(root);
    if (r == 0)
        r = make_directory(shared);
    if (r == 0)
        r = pki_file_write(join(a, shared, "server"), s->server, 0600);
    if (r < 0) {
        fprintf(stderr, "seth-fleet: --state-dir: %s: %s\n", root, strerror(-r));
        return r;
    }
    const char *const from[] = {s->root_certificate, s->onboarding_certificate, s->onboarding_key};
    for (size_t i = 0; i < N_ELEMENTS(from) && r == 0; i++)
        r = copy(from[i], join(a, shared, shared_names[i + 1]));
    return r;
}

int fleet_files_of_device(struct arena *a, const char *root, struct str serial)
{
    static const char *const parts[] = {"config", "persist", "run"};
    const char *device = arena_printf(a, "%s/%.*s", root, STR_ARG(serial)).p;
    const char *shared = join(a, root, ".shared");
    int r = make_directory(device);
    for (size_t i = 0; i < N_ELEMENTS(parts) && r == 0; i++)
        r = make_directory(join(a, device, parts[i]));
    for (size_t i = 0; i < N_ELEMENTS(shared_names) && r == 0; i++) {
        const char *to = arena_printf(a, "%s/config/%s", device, shared_names[i]).p;
        (void) unlink(to); /* of an earlier fleet */
        r = link(join(a, shared, shared_names[i]), to) < 0 ? -errno : 0;
    }
    return r;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void) s;
    (void) type;
    (void) where;
    return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

int fleet_files_remove(const char *path)
{
    const int r = nftw(path, remove_one, MAX_OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
    return r == -1 && errno != ENOENT ? -errno : r < -1 ? r : 0;
}
