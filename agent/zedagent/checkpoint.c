/* SPDX-License-Identifier: Apache-2.0 */
/* The last configuration, kept as it was received for the day nobody answers, and the one before it
 * that has proved good. */
#include <errno.h>

#include "base/log.h"
#include "eve/envelope.h"
#include "protobuf/message.h"
#include "zedagent/zedagent_internal.h"

#define LAST STR("checkpoint/lastconfig")
#define BACKUP STR("checkpoint/lastconfig.bak")
/* In force so long without a change, a configuration is good. */
#define PROVEN_MS (600 * 1000)

static bool exists(const struct zedagent *z, struct str name)
{
    BUF_AUTO content = {0};
    return node_file_read(z->node, NODE_PERSIST, name, &content) == 0;
}

bool checkpoint_exists(const struct zedagent *z)
{
    return exists(z, LAST) || exists(z, BACKUP);
}

static void write_file(struct zedagent *z, struct str name, struct str content)
{
    const int r = node_file_write(z->node, NODE_PERSIST, name, content);
    if (r < 0)
        log_error("the configuration is not kept", LOG_STR("file", name), LOG_ERRNO(r));
}

void checkpoint_save(struct zedagent *z, struct str envelope)
{
    write_file(z, LAST, envelope);
    if (!exists(z, BACKUP))
        write_file(z, BACKUP, envelope);
    z->checkpoint = (struct checkpoint){.changed_ms = loop_now_ms(z->node->loop)};
}

void checkpoint_prove(struct zedagent *z)
{
    struct checkpoint *c = &z->checkpoint;
    BUF_AUTO content = {0};
    if (!c->changed_ms || c->is_proven || loop_now_ms(z->node->loop) - c->changed_ms <= PROVEN_MS)
        return;
    c->is_proven = true;
    if (node_file_read(z->node, NODE_PERSIST, LAST, &content) == 0)
        write_file(z, BACKUP, buf_str(&content));
}

const Eve__Config__ConfigResponse *checkpoint_open(struct zedagent *z, struct arena *a,
                                                   struct str envelope, int *ret_error,
                                                   enum uplink_status *ret_status)
{
    BUF_AUTO payload = {0};
    const Eve__Config__ConfigResponse *response;
    *ret_error = node_open_envelope(z->node, envelope, &payload, ret_status);
    if (*ret_error < 0)
        return NULL;
    response = PB_UNPACK(a, eve__config__config_response, buf_str(&payload));
    if (!response || !response->config) {
        *ret_error = -EBADMSG;
        return NULL;
    }
    return response;
}

static const Eve__Config__EdgeDevConfig *read_file(struct zedagent *z, struct arena *a,
                                                   struct str name, struct buf *bytes,
                                                   int *ret_error)
{
    const Eve__Config__ConfigResponse *response;
    enum uplink_status status = UPLINK_NONE;
    *ret_error = node_file_read(z->node, NODE_PERSIST, name, bytes);
    if (*ret_error < 0)
        return NULL;
    response = checkpoint_open(z, a, buf_str(bytes), ret_error, &status);
    if (response)
        return response->config;
    log_warning("a saved configuration is not usable", LOG_STR("file", name),
                LOG_TEXT("status", uplink_status_name(status)), LOG_ERRNO(*ret_error));
    return NULL;
}

/* A device that crashed may have crashed because of its newest configuration. */
static bool trusts_backup(int boot_reason)
{
    enum {
        NONE = 0,
        FIRST = 1,
        FALLBACK = 4,
        FATAL = 6,
        OUT_OF_MEMORY = 7,
        WATCHDOG_HUNG = 8,
        WATCHDOG_PID = 9,
        VAULT_FAILURE = 13,
        WATCHDOG_HARDWARE = 16
    };
    switch (boot_reason) {
    case NONE:
    case FIRST:
    case FALLBACK:
    case FATAL:
    case OUT_OF_MEMORY:
    case WATCHDOG_HUNG:
    case WATCHDOG_PID:
    case VAULT_FAILURE:
    case WATCHDOG_HARDWARE:
        return true;
    default:
        return false;
    }
}

const Eve__Config__EdgeDevConfig *checkpoint_read(struct zedagent *z, struct arena *a)
{
    BUF_AUTO last = {0};
    BUF_AUTO backup = {0};
    const Eve__Config__EdgeDevConfig *config = NULL;
    int error = 0, ignored;
    const bool backup_first =
        z->neighbours.has_nodeagent && trusts_backup(z->neighbours.boot_reason);
    if (backup_first)
        config = read_file(z, a, BACKUP, &backup, &ignored);
    if (!config)
        config = read_file(z, a, LAST, &last, &error);
    if (!config && !backup_first)
        config = read_file(z, a, BACKUP, &backup, &ignored);
    if (!config)
        return NULL;
    /* Half of a file, or none: the other one takes its place. */
    if (backup.n && (error == -EBADMSG || error == -ENOENT))
        write_file(z, LAST, buf_str(&backup));
    z->checkpoint.changed_ms = MAX(loop_now_ms(z->node->loop), 1);
    return config;
}
