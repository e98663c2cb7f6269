/* SPDX-License-Identifier: Apache-2.0 */
#include "msrv/envelopes.h"

#define STATE_ACTIVE 5

static struct msrv_patch_file read_common(const struct json *blob)
{
    return (struct msrv_patch_file){
        .name = json_get_str(blob, STR("fileName")),
        .metadata = json_get_str(blob, STR("fileMetaData")),
        .artifact_metadata = json_get_str(blob, STR("artifactMetaData")),
    };
}

static struct msrv_patch_file read_binary(struct arena *a, const struct json *blob)
{
    struct msrv_patch_file f = read_common(blob);
    struct str path = json_get_str(blob, STR("url"));
    f.kind = MSRV_PATCH_BINARY;
    f.sha = json_get_str(blob, STR("fileSha"));
    f.size = json_get_int(blob, STR("size"), 0);
    f.path = path.n ? arena_strz(a, path) : NULL;
    return f;
}

static struct msrv_patch_file read_volume(const struct json *blob)
{
    struct msrv_patch_file f = read_common(blob);
    f.kind = MSRV_PATCH_VOLUME;
    f.image_name = json_get_str(blob, STR("imageName"));
    f.image_id = json_get_str(blob, STR("imageId"));
    return f;
}

static const struct json *get_object(const struct json *blob, struct str key, struct str other_key)
{
    const struct json *v = json_get(blob, key);
    v = v ? v : json_get(blob, other_key);
    return json_is(v, JSON_OBJECT) ? v : NULL;
}

/* Inline ones look like binaries to the application, the others like volumes. */
static bool read_cipher(struct arena *a, const struct json *blob, struct msrv_patch_file *ret)
{
    const struct json *in_line = get_object(blob, STR("inline"), STR("Inline"));
    const struct json *volume = get_object(blob, STR("volume"), STR("Volume"));
    if (!in_line && !volume)
        return false;
    *ret = in_line ? read_binary(a, in_line) : read_volume(volume);
    if (in_line)
        ret->kind = MSRV_PATCH_ENCRYPTED_INLINE;
    ret->secret = blob;
    return true;
}

static bool is_for(const struct json *envelope, struct str app_uuid)
{
    if (json_get_int(envelope, STR("State"), 0) != STATE_ACTIVE)
        return false;
    JSON_FOR_EACH_ITEM (json_get(envelope, STR("AllowedApps")), allowed) {
        if (str_eq(json_str(allowed), app_uuid))
            return true;
    }
    return false;
}

static void read_envelope(struct arena *a, const struct json *envelope, struct msrv_envelope *ret)
{
    const struct json *binaries = json_get(envelope, STR("BinaryBlobs"));
    const struct json *volumes = json_get(envelope, STR("VolumeRefs"));
    const struct json *ciphers = json_get(envelope, STR("CipherBlobs"));
    struct msrv_patch_file *files =
        ARENA_ARRAY(a, struct msrv_patch_file,
                    json_count(binaries) + json_count(volumes) + json_count(ciphers) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (binaries, blob) {
        files[n++] = read_binary(a, blob);
    }
    JSON_FOR_EACH_ITEM (volumes, blob) {
        files[n++] = read_volume(blob);
    }
    JSON_FOR_EACH_ITEM (ciphers, blob) {
        n += read_cipher(a, blob, &files[n]);
    }
    *ret = (struct msrv_envelope){
        .id = json_get_str(envelope, STR("PatchID")),
        .version = json_get_str(envelope, STR("Version")),
        .files = files,
        .n_files = n,
    };
}

size_t envelopes_read(struct arena *a, const struct json *list, struct str app_uuid,
                      struct msrv_envelope **ret)
{
    const struct json *all = json_get(list, STR("Envelopes"));
    struct msrv_envelope *found = ARENA_ARRAY(a, struct msrv_envelope, json_count(all) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (all, envelope) {
        if (is_for(envelope, app_uuid) && json_get_str(envelope, STR("PatchID")).n)
            read_envelope(a, envelope, &found[n++]);
    }
    *ret = found;
    return n;
}
