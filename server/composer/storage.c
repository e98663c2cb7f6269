/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClass and Image -> datastore and content tree. */
#include <errno.h>

#include "base/base64.h"
#include "composer/composer_internal.h"

#define PROVISIONER "eve"
#define DOCKER_HUB "index.docker.io"
#define SHA256_HEX_BYTES 64

/* How credentials are put into dsAPIKey and dsPassword. */
enum credentials_form { CREDENTIALS_PLAIN, CREDENTIALS_HTTP };

static const struct store_type {
    const char *name; /* parameters.type */
    Eve__Config__DsType type;
    const char *scheme;     /* of fqdn; NULL: as it is given */
    const char *accepts[4]; /* schemes of parameters.URL */
    bool needs_url, is_container;
    enum credentials_form form;
} store_types[] = {
    {"container",
     EVE__CONFIG__DS_TYPE__DsContainerRegistry,
     "docker",
     {"docker", "oci", "https", "http"},
     true,
     true,
     CREDENTIALS_PLAIN},
    {"http", EVE__CONFIG__DS_TYPE__DsHttp, "http", {"http"}, true, false, CREDENTIALS_HTTP},
    {"https", EVE__CONFIG__DS_TYPE__DsHttps, "https", {"https"}, true, false, CREDENTIALS_HTTP},
    {"sftp", EVE__CONFIG__DS_TYPE__DsSFTP, "sftp", {"sftp"}, true, false, CREDENTIALS_PLAIN},
    {"ftp", EVE__CONFIG__DS_TYPE__DsSFTP, "sftp", {"sftp", "ftp"}, true, false, CREDENTIALS_PLAIN},
    {"s3", EVE__CONFIG__DS_TYPE__DsS3, NULL, {"https", "http"}, false, false, CREDENTIALS_PLAIN},
    {"azureblob",
     EVE__CONFIG__DS_TYPE__DsAzureBlob,
     "https",
     {"https"},
     true,
     false,
     CREDENTIALS_PLAIN},
    {"gcs",
     EVE__CONFIG__DS_TYPE__DsGoogleStorage,
     NULL,
     {"https"},
     false,
     false,
     CREDENTIALS_PLAIN},
};

static const struct {
    const char *name; /* Image's format, and the suffix of files */
    Eve__Config__Format format;
} formats[] = {
    {"container", EVE__CONFIG__FORMAT__CONTAINER},
    {"qcow2", EVE__CONFIG__FORMAT__QCOW2},
    {"qcow", EVE__CONFIG__FORMAT__QCOW},
    {"raw", EVE__CONFIG__FORMAT__RAW},
    {"img", EVE__CONFIG__FORMAT__RAW},
    {"vmdk", EVE__CONFIG__FORMAT__VMDK},
    {"vhd", EVE__CONFIG__FORMAT__VHD},
    {"vhdx", EVE__CONFIG__FORMAT__VHDX},
    {"ova", EVE__CONFIG__FORMAT__OVA},
    {"iso", EVE__CONFIG__FORMAT__ISO},
};

static int why(struct composition *c, struct str *ret_why, const char *format, ...)
    PRINTF_LIKE(3, 4);
static int why(struct composition *c, struct str *ret_why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *ret_why = arena_vprintf(c->arena, format, args);
    va_end(args);
    return -EINVAL;
}

static bool find_format(struct str name, Eve__Config__Format *ret)
{
    for (size_t i = 0; i < N_ELEMENTS(formats); i++)
        if (str_eq_nocase(name, str_of(formats[i].name))) {
            *ret = formats[i].format;
            return true;
        }
    return false;
}

/* ---- datastores ------------------------------------------------------------------------------ */

static const struct store_type *find_type(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(store_types); i++)
        if (str_is(name, store_types[i].name))
            return &store_types[i];
    return NULL;
}

static bool accepts(const struct store_type *type, struct str scheme)
{
    for (size_t i = 0; i < N_ELEMENTS(type->accepts) && type->accepts[i]; i++)
        if (str_is(scheme, type->accepts[i]))
            return true;
    return false;
}

static struct str trim_slashes(struct str s)
{
    while (s.n && s.p[0] == '/')
        s = str_from(s, 1);
    while (s.n && s.p[s.n - 1] == '/')
        s = str_sub(s, 0, s.n - 1);
    return s;
}

/* Both parts of a path with a slash between them, if there are both. */
static char *join_path(struct arena *a, struct str left, struct str right)
{
    const struct str l = trim_slashes(left), r = trim_slashes(right);
    const struct str parts[] = {l, l.n && r.n ? STR("/") : STR(""), r};
    return arena_strz(a, arena_join(a, parts, N_ELEMENTS(parts)));
}

static bool is_docker_hub(struct str host)
{
    return str_is(host, "docker.io") || str_is(host, DOCKER_HUB) ||
           str_is(host, "hub.docker.com") || str_is(host, "registry-1.docker.io");
}

/* parameters.URL -> fqdn and the path behind it. */
static int set_url(struct composition *c, const struct store_type *type, struct str url,
                   struct str path, Eve__Config__DatastoreConfig *m, struct str *ret_why)
{
    const ptrdiff_t colon = str_find_str(url, STR("://"));
    const struct str scheme = colon < 0 ? STR_NONE : str_sub(url, 0, (size_t) colon);
    struct str host = colon < 0 ? url : str_from(url, (size_t) colon + 3);
    if (scheme.n && !accepts(type, scheme))
        return why(c, ret_why, "parameters.URL: %s stores are not at %.*s://", type->name,
                   STR_ARG(scheme));
    const ptrdiff_t slash = str_find(host, '/');
    const struct str rest = slash < 0 ? STR("") : str_from(host, (size_t) slash);
    host = slash < 0 ? host : str_sub(host, 0, (size_t) slash);
    if (type->needs_url && host.n == 0)
        return why(c, ret_why, "parameters.URL: a store of type %s needs one", type->name);
    if (type->is_container && is_docker_hub(host))
        host = STR(DOCKER_HUB);
    const bool is_oci = type->is_container && str_is(scheme, "oci");
    const struct str out = is_oci         ? scheme
                           : type->scheme ? str_of(type->scheme)
                                          : (scheme.n ? scheme : STR("https"));
    const struct str parts[] = {out, STR("://"), host};
    if (host.n)
        m->fqdn = arena_strz(c->arena, arena_join(c->arena, parts, N_ELEMENTS(parts)));
    m->dpath = join_path(c->arena, rest, path);
    return 0;
}

static int seal_credentials(struct composition *c, const struct store_type *type,
                            const struct credentials *credentials, struct tree *t,
                            struct str *ret_why)
{
    Eve__Common__EncryptionBlock *block = MESSAGE_NEW(c->arena, eve__common__encryption_block);
    if (type->form == CREDENTIALS_PLAIN) {
        if (credentials->username)
            block->dsapikey = credentials->username;
        if (credentials->password)
            block->dspassword = credentials->password;
    } else if (credentials->token) {
        block->dsapikey = arena_strz(c->arena, STR("Bearer"));
        block->dspassword = credentials->token;
    } else {
        const struct str both =
            arena_printf(c->arena, "%s:%s", credentials->username ? credentials->username : "",
                         credentials->password ? credentials->password : "");
        block->dsapikey = arena_strz(c->arena, STR("Basic"));
        block->dspassword = arena_strz(c->arena, base64_encode(c->arena, both, BASE64_STANDARD));
    }
    struct str reason;
    if (cipher_part(c, "datastore", str_of(t->datastore->id), block, &t->sealed, &reason) < 0)
        return why(c, ret_why, "the credentials of Secret '%.*s': %.*s",
                   STR_ARG(object_name(credentials->secret)), STR_ARG(reason));
    t->datastore->cipherdata = (Eve__Common__CipherBlock *) (uintptr_t) t->sealed.block;
    return 0;
}

/* One for each namespace that uses the class, because the Secret is the namespace's. */
static struct str datastore_uuid(struct composition *c, const struct json *class)
{
    const struct str uid = json_str(json_at(class, "metadata", "uid", NULL));
    const struct str parts[] = {STR("datastore/"), c->namespace};
    return uuid_of_names(c->arena, arena_join(c->arena, parts, N_ELEMENTS(parts)),
                         uid.n ? uid : object_name(class));
}

static int make_datastore(struct composition *c, const struct store_type *type, struct tree *t,
                          struct str *ret_why)
{
    const struct json *parameters = json_get(t->class, STR("parameters"));
    const struct str secret = json_get_str(parameters, STR("credentialsSecret"));
    Eve__Config__DatastoreConfig *m = t->datastore =
        MESSAGE_NEW(c->arena, eve__config__datastore_config);
    m->id = arena_strz(c->arena, datastore_uuid(c, t->class));
    m->dtype = type->type;
    if (json_get_str(parameters, STR("certificate")).n)
        REPEATED_ADD(c->arena, m->dscertpem, m->n_dscertpem,
                     pb_data(json_get_str(parameters, STR("certificate"))));
    if (json_get_str(parameters, STR("region")).n)
        m->region = arena_strz(c->arena, json_get_str(parameters, STR("region")));
    if (set_url(c, type, json_get_str(parameters, STR("URL")),
                json_get_str(parameters, STR("path")), m, ret_why) < 0)
        return -EINVAL;
    if (secret.n == 0)
        return 0;
    struct credentials credentials;
    if (credentials_find(c, secret, &credentials, ret_why) < 0)
        return -EINVAL;
    t->secret = credentials.secret;
    return seal_credentials(c, type, &credentials, t, ret_why);
}

/* ---- content trees --------------------------------------------------------------------------- */

static int choose_format(struct composition *c, const struct store_type *type, const struct tree *t,
                         struct str *ret_why)
{
    const struct str ref = json_str(json_at(t->image, "spec", "ref", NULL));
    struct str given = json_str(json_at(t->image, "spec", "format", NULL));
    if (!given.n)
        given = json_str(json_at(t->class, "parameters", "format", NULL));
    if (!given.n && type->is_container)
        given = STR("container");
    const ptrdiff_t dot = str_find_last(ref, '.');
    if (!given.n && dot >= 0)
        given = str_from(ref, (size_t) dot + 1);
    Eve__Config__Format format;
    if (!find_format(given, &format))
        return why(c, ret_why, "spec.format: neither it nor its name says which");
    if ((format == EVE__CONFIG__FORMAT__CONTAINER) != type->is_container && !type->is_container)
        return why(c, ret_why, "spec.format: containers come from stores of type container");
    t->message->iformat = format;
    return 0;
}

static int set_checksum(struct composition *c, const struct store_type *type, struct tree *t,
                        struct str *ret_why)
{
    const struct str given = json_str(json_at(t->image, "spec", "sha256", NULL));
    if (given.n == 0 && type->is_container)
        return 0;
    if (given.n != SHA256_HEX_BYTES)
        return why(c, ret_why, "spec.sha256: a device takes no %s image without it", type->name);
    t->message->sha256 = arena_strz(c->arena, given);
    for (char *p = t->message->sha256; *p; p++)
        if (*p >= 'A' && *p <= 'F')
            *p = (char) (*p - 'A' + 'a');
    return 0;
}

/* Docker's own images are below library/ there, which nobody writes. */
static char *url_of(struct composition *c, const struct store_type *type, const struct tree *t)
{
    struct str ref = trim_slashes(json_str(json_at(t->image, "spec", "ref", NULL)));
    const bool is_short = type->is_container && str_find(ref, '/') < 0 && !*t->datastore->dpath &&
                          str_is(pb_text(t->datastore->fqdn), "docker://" DOCKER_HUB);
    const struct str parts[] = {is_short ? STR("library/") : STR(""), ref};
    return arena_strz(c->arena, arena_join(c->arena, parts, N_ELEMENTS(parts)));
}

static int make_tree(struct composition *c, const struct store_type *type, struct tree *t,
                     struct str *ret_why)
{
    int64_t size;
    Eve__Config__ContentTree *m = t->message = MESSAGE_NEW(c->arena, eve__config__content_tree);
    m->uuid = arena_strz(c->arena, object_uuid(t->image));
    m->displayname = arena_strz(c->arena, object_name(t->image));
    m->url = url_of(c, type, t);
    REPEATED_ADD(c->arena, m->ds_ids_list, m->n_ds_ids_list, t->datastore->id);
    if (!*m->uuid)
        return why(c, ret_why, "it has no UUID yet");
    if (!*m->url)
        return why(c, ret_why, "spec.ref: it needs one");
    if (object_amount(json_at(t->image, "spec", "size", NULL), 1, &size) < 0)
        return why(c, ret_why, "spec.size: no amount");
    m->maxsizebytes = (uint64_t) size;
    return choose_format(c, type, t, ret_why) < 0 ? -EINVAL : set_checksum(c, type, t, ret_why);
}

int tree_make_of(struct composition *c, const struct json *image, struct tree *ret,
                 struct str *ret_why)
{
    const struct str class = json_str(json_at(image, "spec", "storageClass", NULL));
    struct str reason;
    *ret = (struct tree){.image = image, .class = set_find(&c->in->storage_classes, class)};
    const struct str name = object_name(image);
    if (!ret->class)
        return why(c, ret_why, "Image '%.*s': StorageClass '%.*s' not found", STR_ARG(name),
                   STR_ARG(class));
    const struct store_type *type =
        find_type(json_str(json_at(ret->class, "parameters", "type", NULL)));
    if (!type || !str_is(json_get_str(ret->class, STR("provisioner")), PROVISIONER))
        return why(c, ret_why, "Image '%.*s': StorageClass '%.*s' is no store of images",
                   STR_ARG(name), STR_ARG(class));
    if (make_datastore(c, type, ret, &reason) < 0)
        return why(c, ret_why, "Image '%.*s': StorageClass '%.*s': %.*s", STR_ARG(name),
                   STR_ARG(class), STR_ARG(reason));
    if (make_tree(c, type, ret, &reason) < 0)
        return why(c, ret_why, "Image '%.*s': %.*s", STR_ARG(name), STR_ARG(reason));
    return 0;
}

int tree_make(struct composition *c, struct str image_name, struct tree *ret, struct str *ret_why)
{
    const struct json *image = set_find(&c->in->images, image_name);
    if (!image)
        return why(c, ret_why, "Image '%.*s' not found", STR_ARG(image_name));
    return tree_make_of(c, image, ret, ret_why);
}

void tree_use(struct composition *c, const struct tree *t)
{
    const struct str id = str_of(t->message->uuid), store = str_of(t->datastore->id);
    if (!part_find(c, SECTION_TREES, id)) {
        struct part *p = part_add(c, SECTION_TREES, id, &t->message->base);
        part_source(c, p, "", t->image, STR("spec"));
    }
    if (part_find(c, SECTION_DATASTORES, store))
        return;
    struct part *p = part_add(c, SECTION_DATASTORES, store, &t->datastore->base);
    part_source(c, p, "", t->class, STR("parameters"));
    if (t->secret)
        part_source(c, p, "cipherData", t->secret, STR("data"));
    cipher_use(c, &t->sealed);
}

struct str tree_content(struct arena *a, const struct tree *t)
{
    const Eve__Config__ContentTree *m = t->message;
    return arena_printf(a, "%s %s %d %s", m->uuid, m->url, (int) m->iformat, m->sha256);
}
