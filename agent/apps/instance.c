/* SPDX-License-Identifier: Apache-2.0 */
/* From an AppInstanceConfig to what the runtime is asked to run. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "attest/attest.h"
#include "base/base64.h"
#include "base/log.h"
#include "eve/common.pb-c.h"
#include "protobuf/message.h"

int instance_open_secrets(struct arena *arena, const struct apps *a, const struct json *config,
                          Eve__Common__EncryptionBlock **ret)
{
    const struct json *block = json_get(config, STR("CipherBlockStatus"));
    struct str plain;
    *ret = NULL;
    if (!json_is(block, JSON_OBJECT))
        block = config;
    if (!json_get_bool(block, STR("IsCipher"), false))
        return 0;
    int r = a->options.keys ? node_keys_open(a->options.keys, arena, block, &plain) : -ENOENT;
    if (r < 0)
        return r;
    *ret = PB_UNPACK(arena, eve__common__encryption_block, plain);
    return *ret ? 0 : -EBADMSG;
}

/* Base64; absent: none. */
static int find_user_data(struct arena *arena, const struct apps *a, const struct json *config,
                          struct str *ret, struct str *ret_error)
{
    Eve__Common__EncryptionBlock *block = NULL;
    int r = instance_open_secrets(arena, a, config, &block);
    struct str plain = json_get_str(config, STR("pubsub-large-CloudInitUserData"));
    *ret = block ? str_of(block->protecteduserdata) : plain;
    if (r >= 0 || plain.n) /* falls back to clear text, as EVE does */
        return 0;
    *ret_error = STR("its user data cannot be decrypted");
    return r;
}

/* Absent: none. */
static int read_user_data(struct arena *arena, const struct application *p,
                          const struct json *config, struct str *ret, struct str *ret_error)
{
    struct str coded = STR_NONE;
    int r = find_user_data(arena, p->apps, config, &coded, ret_error);
    *ret = STR_NONE;
    if (r < 0 || !coded.n)
        return r;
    if (base64_decode(arena, coded, BASE64_STANDARD, ret, NULL) < 0) {
        *ret_error = STR("its user data is no base64");
        return -EINVAL;
    }
    return 0;
}

/* To a container user data is its environment. */
static int set_words(struct arena *arena, struct str user_data, struct runtime_instance *ret,
                     struct str *ret_error)
{
    struct instance_words words = {0};
    int r = user_data.p ? instance_read_user_data(arena, user_data, &words, ret_error) : 0;
    ret->env = words.env;
    ret->n_env = words.n_env;
    ret->args = words.args;
    ret->n_args = words.n_args;
    return r;
}

/* To a virtual machine it is what cloud-init finds on a drive. */
static void set_drive(struct arena *arena, const struct application *p, const struct json *config,
                      struct str user_data, struct runtime_instance *ret)
{
    int64_t type = json_get_int(config, STR("MetaDataType"), METADATA_DRIVE);
    if (!user_data.p || (type != METADATA_DRIVE && type != METADATA_DRIVE_MULTIPART))
        return;
    ret->user_data = user_data;
    ret->meta_data =
        arena_printf(arena, "instance-id: %s/%lld\nlocal-hostname: %s\n", p->id,
                     (long long) json_get_int(config, STR("CloudInitVersion"), 0), p->id);
}

static bool is_read_only(struct arena *arena, const struct apps *a, const char *key)
{
    const struct json *config = topics_get(arena, a, IN_VOLUME, str_of(key));
    return json_get_bool(config, STR("ReadOnly"), false);
}

static void add_mount(struct arena *arena, const struct application *p, size_t i,
                      struct runtime_mount *mounts, struct runtime_instance *ret)
{
    const struct volume_ref *ref = &p->volumes[i];
    const struct volume *v = volume_find(p->apps, str_of(ref->key));
    if (v->target == TARGET_APP_CUSTOM) /* offered by the metadata server */
        return;
    if (ref->mount[0] != '/' && !application_is_machine(p)) {
        log_warning("a volume without a directory to be mounted at is left out",
                    LOG_TEXT("app", p->id), LOG_TEXT("volume", ref->key));
        return;
    }
    mounts[ret->n_mounts++] = (struct runtime_mount){
        .volume = str_of(v->id),
        .target = ref->mount[0] == '/' ? str_of(ref->mount) : STR_NONE,
        .is_read_only = is_read_only(arena, p->apps, ref->key),
    };
}

/* The first is the root, the others go where they say. */
static int place_volumes(struct arena *arena, const struct application *p,
                         struct runtime_instance *ret, struct str *ret_error)
{
    struct runtime_mount *mounts = ARENA_ARRAY(arena, struct runtime_mount, p->n_volumes + 1);
    const struct volume *root =
        p->n_volumes ? volume_find(p->apps, str_of(p->volumes[0].key)) : NULL;
    if (!root || !root->content) {
        *ret_error = STR("its first volume must hold an image, and it has none");
        return -EINVAL;
    }
    ret->root_volume = str_of(root->id);
    ret->mounts = mounts;
    for (size_t i = 1; i < p->n_volumes; i++)
        add_mount(arena, p, i, mounts, ret);
    return 0;
}

/* Of its first network instance, or of the ports that lead out of it. */
static struct str write_resolvers(struct arena *arena, const struct application *p)
{
    BUF_AUTO text = {0};
    struct str id = str_of(p->adapters[0].network);
    const struct json *network = topics_get(arena, p->apps, IN_NETWORK, id);
    struct str domain = json_get_str(network, STR("DomainName"));
    struct json servers = network_resolvers(arena, p->apps, id);
    JSON_FOR_EACH_ITEM (&servers, item)
        buf_printf(&text, "nameserver %.*s\n", STR_ARG(json_str(item)));
    if (text.n && domain.n && str_find(domain, '\n') < 0)
        buf_printf(&text, "search %.*s\n", STR_ARG(domain));
    return text.n ? arena_str(arena, buf_str(&text)) : STR_NONE;
}

static void set_network(struct arena *arena, const struct application *p,
                        struct runtime_instance *ret)
{
    struct apps_network *w = p->apps->options.network;
    if (!w || !p->n_adapters)
        return;
    ret->network = RUNTIME_NETWORK_JOIN;
    ret->network_path = w->functions->namespace_path(w, arena, str_of(p->id));
    if (!p->is_machine) {
        ret->resolv_conf = write_resolvers(arena, p);
        return;
    }
    struct runtime_interface *interfaces =
        ARENA_ARRAY(arena, struct runtime_interface, p->n_adapters);
    for (size_t i = 0; i < p->n_adapters; i++) {
        const unsigned char *m = p->adapters[i].mac;
        interfaces[i].tap = adapter_vif(arena, p, i);
        interfaces[i].mac = arena_printf(arena, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
                                         m[3], m[4], m[5]);
    }
    ret->interfaces = interfaces;
    ret->n_interfaces = p->n_adapters;
}

static void say_unsupported(const struct application *p, const struct json *resources)
{
    if (json_get_bool(resources, STR("EnableVnc"), false))
        log_warning("virtual machines have no screen here, ignoring VNC", LOG_TEXT("app", p->id));
}

int instance_build(struct arena *arena, const struct application *p, struct runtime_instance *ret,
                   struct str *ret_error)
{
    const struct json *config = topics_get(arena, p->apps, IN_APP, str_of(p->id));
    const struct json *resources = json_get(config, STR("FixedResources"));
    struct str user_data = STR_NONE;
    *ret = (struct runtime_instance){
        .id = str_of(p->id),
        .memory_max_bytes = json_get_int(resources, STR("Memory"), 0) * 1024,
        .cpu_millis = json_get_int(resources, STR("VCpus"), 0) * 1000,
    };
    int r = place_volumes(arena, p, ret, ret_error);
    if (r >= 0)
        r = read_user_data(arena, p, config, &user_data, ret_error);
    if (r >= 0 && application_is_machine(p)) {
        say_unsupported(p, resources);
        set_drive(arena, p, config, user_data, ret);
    } else if (r >= 0) {
        r = set_words(arena, user_data, ret, ret_error);
    }
    if (r < 0)
        return r;
    set_network(arena, p, ret);
    return 0;
}
