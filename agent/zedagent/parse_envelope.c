/* SPDX-License-Identifier: Apache-2.0 */
/* Data for running applications: PatchEnvelopeInfoList, and the files it refers to. */
#include "zedagent/parse_internal.h"

#define MIN_SEALED_BYTES 16
#define MAX_FILE_NAME_BYTES 200
enum { STATE_ERROR = 0, STATE_READY = 4, STATE_ACTIVE = 5 };

/* A name of one file, so that nothing outside the cache can be meant. */
static bool is_file_name(struct str name)
{
    return name.n && name.n <= MAX_FILE_NAME_BYTES && str_find(name, '/') < 0 && name.p[0] != '.';
}

static struct str keep_file(struct parse *p, struct str name, struct str content)
{
    struct parse_file *f = ARENA_NEW(p->arena, struct parse_file);
    *f = (struct parse_file){.name = name, .content = content, .next = p->files};
    p->files = f;
    return arena_printf(p->arena, "%s/%.*s", p->cache_directory ? p->cache_directory : "",
                        STR_ARG(name));
}

static struct str artifact_metadata(const Eve__Config__EveBinaryArtifact *x)
{
    return x->_artifact_meta_data_case ==
                   EVE__CONFIG__EVE_BINARY_ARTIFACT___ARTIFACT_META_DATA_ARTIFACT_META_DATA
               ? pb_text(x->artifactmetadata)
               : STR("");
}

static struct json *sealed_metadata(struct parse *p, const Eve__Config__EveBinaryArtifact *x)
{
    const Eve__Common__CipherBlock *c = x->metadata_cipher_data;
    if (!c || c->cipherdata.len < MIN_SEALED_BYTES)
        return parse_cipher_value(p, c ? STR("None") : STR(""), NULL);
    return parse_cipher_value(
        p,
        arena_printf(p->arena, "artifactMeta-%.*s",
                     STR_ARG(pki_hex(p->arena, c->cipherdata.data, MIN_SEALED_BYTES))),
        c);
}

static struct str add_inline(struct parse *p, const Eve__Config__EveBinaryArtifact *x,
                             struct json *list)
{
    const Eve__Config__InlineOpaqueBase64Data *c = x->inline_;
    struct gotype g = gotype_new(p->arena);
    unsigned char hash[SHA256_BYTES];
    const struct str name = pb_text(c->filenametouse), data = pb_text(c->base64data);
    if (!is_file_name(name))
        return arena_printf(p->arena, "bad file name \"%.*s\"", STR_ARG(name));
    pki_sha256(data, hash);
    gotype_text(&g, "fileName", name);
    gotype_text(&g, "fileSha", pki_hex(p->arena, hash, sizeof(hash)));
    gotype_text(&g, "fileMetaData",
                c->_base64_meta_data_case ==
                        EVE__CONFIG__INLINE_OPAQUE_BASE64_DATA___BASE64_META_DATA_BASE64_META_DATA
                    ? pb_text(c->base64metadata)
                    : STR(""));
    gotype_text(&g, "artifactMetaData", artifact_metadata(x));
    gotype_value(&g, "encArtifactMeta", sealed_metadata(p, x));
    gotype_text(&g, "url", keep_file(p, name, data));
    gotype_int(&g, "size", (int64_t) data.n);
    json_push(p->arena, list, *g.object);
    return STR_NONE;
}

static struct str add_volume(struct parse *p, const Eve__Config__EveBinaryArtifact *x,
                             struct json *list)
{
    const Eve__Config__ExternalOpaqueBinaryBlob *c = x->volumeref;
    struct gotype g = gotype_new(p->arena);
    gotype_text(&g, "fileName",
                c->_file_name_to_use_case ==
                        EVE__CONFIG__EXTERNAL_OPAQUE_BINARY_BLOB___FILE_NAME_TO_USE_FILE_NAME_TO_USE
                    ? pb_text(c->filenametouse)
                    : STR(""));
    gotype_text(&g, "imageName", pb_text(c->imagename));
    gotype_text(&g, "imageId", pb_text(c->imageid));
    gotype_text(&g, "fileMetaData",
                c->_blob_meta_data_case ==
                        EVE__CONFIG__EXTERNAL_OPAQUE_BINARY_BLOB___BLOB_META_DATA_BLOB_META_DATA
                    ? pb_text(c->blobmetadata)
                    : STR(""));
    gotype_text(&g, "artifactMetaData", artifact_metadata(x));
    gotype_value(&g, "encArtifactMeta", sealed_metadata(p, x));
    json_push(p->arena, list, *g.object);
    return STR_NONE;
}

/* The block goes to a file, not to the topic, which it would not fit. */
static struct str add_sealed(struct parse *p, const Eve__Config__EveBinaryArtifact *x,
                             const Eve__Common__CipherBlock *c, bool is_inline, struct json *list)
{
    struct gotype g = gotype_new(p->arena), content = gotype_new(p->arena);
    BUF_AUTO text = {0};
    struct str name;
    if (!c || c->cipherdata.len < MIN_SEALED_BYTES)
        return STR("encrypted artifact has incorrect cipher data");
    name = arena_printf(p->arena, "%s-%.*s", is_inline ? "encInline" : "encVolume",
                        STR_ARG(pki_hex(p->arena, c->cipherdata.data, MIN_SEALED_BYTES)));
    json_write(&text, parse_cipher_value(p, name, c));
    gotype_int(&g, "encType", is_inline ? 1 : 2);
    gotype_text(&g, "artifactMetaData", artifact_metadata(x));
    gotype_value(&g, "encArtifactMeta", sealed_metadata(p, x));
    gotype_text(&g, "encURL", keep_file(p, name, arena_str(p->arena, buf_str(&text))));
    gotype_text(&g, "encFileName", name);
    /* Who serves it learns its real name when it opens the block. */
    gotype_text(&content, "fileName", name);
    gotype_value(&g, "inline", is_inline ? content.object : NULL);
    json_push(p->arena, list, *g.object);
    return STR_NONE;
}

struct artifacts {
    struct json binaries, volumes, sealed;
};

static struct str add_artifact(struct parse *p, const Eve__Config__EveBinaryArtifact *x,
                               struct artifacts *to)
{
    switch (x->binary_blob_case) {
    case EVE__CONFIG__EVE_BINARY_ARTIFACT__BINARY_BLOB_INLINE:
        return add_inline(p, x, &to->binaries);
    case EVE__CONFIG__EVE_BINARY_ARTIFACT__BINARY_BLOB_VOLUME_REF:
        return add_volume(p, x, &to->volumes);
    case EVE__CONFIG__EVE_BINARY_ARTIFACT__BINARY_BLOB_ENCRYPTED_INLINE:
        return add_sealed(p, x, x->encrypted_inline->cipher_data, true, &to->sealed);
    case EVE__CONFIG__EVE_BINARY_ARTIFACT__BINARY_BLOB_ENCRYPTED_VOLUMEREF:
        return add_sealed(p, x, x->encrypted_volumeref->cipher_data, false, &to->sealed);
    default:
        return STR("Unknown EveBinaryArtifact format");
    }
}

static int state_of(int action)
{
    if (action == EVE__CONFIG__EVE__PATCH__ENVELOPE__ACTION__STORE)
        return STATE_READY;
    return action == EVE__CONFIG__EVE__PATCH__ENVELOPE__ACTION__ACTIVATE ? STATE_ACTIVE
                                                                         : STATE_ERROR;
}

static struct json *or_null(struct json *list)
{
    return list->n ? list : NULL;
}

static struct json *envelope_value(struct parse *p, const Eve__Config__EvePatchEnvelope *e)
{
    struct gotype g = gotype_new(p->arena);
    struct artifacts all = {json_array(), json_array(), json_array()};
    struct json errors = json_array();
    for (size_t i = 0; i < e->n_artifacts; i++) {
        const struct str error = add_artifact(p, e->artifacts[i], &all);
        if (error.n)
            json_push(p->arena, &errors,
                      gotype_string(p->arena,
                                    arena_printf(p->arena,
                                                 "Failed to compose binary blob for patch envelope "
                                                 "%.*s",
                                                 STR_ARG(error))));
    }
    gotype_text(&g, "Name", pb_text(e->displayname));
    gotype_text(&g, "Version",
                e->_version_case == EVE__CONFIG__EVE_PATCH_ENVELOPE___VERSION_VERSION
                    ? pb_text(e->version)
                    : STR(""));
    gotype_texts(&g, "AllowedApps", e->appinstidsallowed, e->n_appinstidsallowed);
    gotype_text(&g, "PatchID", pb_text(e->uuid));
    gotype_value(&g, "Errors", or_null(&errors));
    gotype_int(&g, "State", errors.n ? STATE_ERROR : state_of(e->action));
    gotype_value(&g, "BinaryBlobs", or_null(&all.binaries));
    gotype_value(&g, "VolumeRefs", or_null(&all.volumes));
    gotype_value(&g, "CipherBlobs", or_null(&all.sealed));
    return g.object;
}

struct json *parse_patch_envelopes(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    struct json list = json_array();
    struct gotype g = gotype_new(p->arena);
    for (size_t i = 0; i < p->config->n_patchenvelopes; i++)
        json_push(p->arena, &list, *envelope_value(p, p->config->patchenvelopes[i]));
    gotype_value(&g, "Envelopes", or_null(&list));
    json_append_member(p->arena, all, STR("global"), *g.object);
    return all;
}
