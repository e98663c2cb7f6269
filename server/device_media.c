/* SPDX-License-Identifier: Apache-2.0 */
#include "device_media.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "device/bootstrap_config.h"
#include "pki/chain.h"
#include "pki/file.h"
#include "json/yaml_write.h"

#define ONBOARD_DAYS 3650
/* A host name, RFC 1035 2.3.4. */
#define MAX_HOST_BYTES 253

const struct option_spec device_media_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"server", OPTION_TEXT, "", "host:port where devices reach the device API", 0, 0},
    {"ip", OPTION_TEXT, "", "address of that host, for devices whose DNS does not know it", 0, 0},
    {"serial", OPTION_LIST, "", "serial numbers that may register so; none: any", 0, 0},
    {"name", OPTION_TEXT, "", "of the OnboardCertificate; default: after its fingerprint", 0, 0},
    {"namespace", OPTION_TEXT, "", "of the OnboardCertificate and so of its Devices", 0, 0},
    {"onboard-cert", OPTION_TEXT, "", "onboarding certificate to use instead of a new one (PEM)", 0,
     0},
    {"onboard-key", OPTION_TEXT, "", "its key (PEM)", 0, 0},
    {"force", OPTION_ACTION, NULL, "overwrite an onboarding key that is there", 0, 0},
    {"bootstrap", OPTION_ACTION, NULL, "also write bootstrap-config.pb, with this port:", 0, 0},
    {"port", OPTION_TEXT, "eth0", "interface that reaches the server", 0, 0},
    {"address", OPTION_TEXT, "", "its static address, as in 192.0.2.7/24; default: DHCP", 0, 0},
    {"gateway", OPTION_TEXT, "", "with --address", 0, 0},
    {"dns", OPTION_LIST, "", "with --address: servers of names", 0, 0},
    {"ntp", OPTION_TEXT, "", "server of time", 0, 0},
    {"domain", OPTION_TEXT, "", "where names are looked up", 0, 0},
    {"device-signing-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"device-signing-key-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"device-ecdh-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"device-ecdh-key-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"device-cert-lifetime-seconds", OPTION_INT, "63072000", "as the server is given it", 60,
     (int64_t) 1 << 31},
    {"tls-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {0},
};

struct media {
    struct arena *arena;
    const struct options *options;
    const char *dir;
    struct str host, server; /* of the server: its name, and with the port */
    struct str roots;
    struct pki_key *key;
    struct pki_cert *cert;
    struct str key_pem;
    struct str bootstrap; /* n == 0: none */
    char *error;
};

static void media_done(struct media *m)
{
    pki_key_free(m->key);
    pki_cert_free(m->cert);
    mem_free(m->error);
    arena_free(m->arena);
}

static struct str text(const struct media *m, const char *option)
{
    return str_of(option_text(m->options, option));
}

/* ---- where the server is -------------------------------------------------------------------- */

static bool is_address(struct arena *a, struct str host)
{
    unsigned char address[16];
    const char *z = arena_strz(a, host);
    return inet_pton(AF_INET, z, address) == 1 || inet_pton(AF_INET6, z, address) == 1;
}

static bool is_host(struct str host)
{
    for (size_t i = 0; i < host.n; i++)
        if (!(host.p[i] == '.' || host.p[i] == '-' || (host.p[i] >= '0' && host.p[i] <= '9') ||
              (host.p[i] >= 'a' && host.p[i] <= 'z') || (host.p[i] >= 'A' && host.p[i] <= 'Z')))
            return false;
    return host.n > 0 && host.n <= MAX_HOST_BYTES && host.p[0] != '.' && host.p[0] != '-';
}

static int read_server(struct media *m)
{
    struct str server = str_trim(text(m, "server"));
    ptrdiff_t colon = str_find_last(server, ':');
    int64_t port = 0;
    struct str host = colon < 0 ? STR("") : str_sub(server, 0, (size_t) colon);
    bool is_ok = colon > 0 && str_to_i64(str_from(server, (size_t) colon + 1), &port) == 0 &&
                 port > 0 && port <= 65535;
    if (str_starts_with(host, STR("[")) && str_ends_with(host, STR("]")))
        host = str_sub(host, 1, host.n - 1);
    else
        is_ok = is_ok && is_host(host);
    if (!is_ok || !(is_host(host) || is_address(m->arena, host)))
        return error_set(&m->error, -EINVAL,
                         "--server: '%.*s' is not where devices reach the server, as in "
                         "ctl.example.org:8443",
                         STR_ARG(server));
    struct str ip = text(m, "ip");
    if (ip.n && (!is_address(m->arena, ip) || is_address(m->arena, host)))
        return error_set(&m->error, -EINVAL,
                         "--ip: '%.*s' must be an address, and --server then a name", STR_ARG(ip));
    m->host = host;
    m->server = server;
    return 0;
}

/* Devices refuse a server whose certificate has another name, and nothing here would say why. */
static void warn_of_names(const struct media *m)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    struct str given = text(m, "tls-cert-file");
    const char *path =
        given.n
            ? given.p
            : arena_printf(m->arena, "%s/pki/server.pem", option_text(m->options, "data-dir")).p;
    if (pki_cert_load(path, &cert) == 0 && !pki_cert_has_name(cert, m->host))
        fprintf(stderr,
                "seth: warning: devices will refuse the server: its certificate does not have the "
                "name %.*s; start it with --tls-san %.*s\n",
                STR_ARG(m->host), STR_ARG(m->host));
}

/* ---- the onboarding certificate ------------------------------------------------------------- */

static int make_onboard(struct media *m)
{
    char name[UUID_TEXT_BYTES];
    random_uuid(name);
    m->key = pki_key_new();
    m->cert = pki_cert_new(&(struct pki_cert_options){.common_name = str_of(name),
                                                      .for_client = true,
                                                      .valid_days = ONBOARD_DAYS},
                           m->key, NULL, NULL);
    m->key_pem = pki_key_pem(m->arena, m->key);
    return m->cert ? 0 : -EIO;
}

static int read_onboard(struct media *m)
{
    const char *cert = option_text(m->options, "onboard-cert"),
               *key = option_text(m->options, "onboard-key");
    if (!cert[0] && !key[0])
        return make_onboard(m);
    if (!cert[0] || !key[0])
        return error_set(&m->error, -EINVAL, "--onboard-cert and --onboard-key go together");
    int r = pki_cert_load(cert, &m->cert);
    if (r < 0)
        return error_set(&m->error, r, "--onboard-cert: %s: %s", cert, log_errno_text(r));
    r = pki_key_load(key, &m->key);
    if (r < 0)
        return error_set(&m->error, r, "--onboard-key: %s: %s", key, log_errno_text(r));
    if (!pki_key_is_p256(m->key))
        return error_set(&m->error, -EINVAL,
                         "--onboard-key: %s: devices can only use a key on P-256", key);
    if (!pki_key_fits(m->key, m->cert))
        return error_set(&m->error, -EINVAL, "--onboard-key: %s is not the key of %s", key, cert);
    m->key_pem = pki_key_pem(m->arena, m->key);
    return 0;
}

static const char *file_in(struct media *m, const char *name)
{
    return arena_printf(m->arena, "%s/%s", m->dir, name).p;
}

/* The key of devices that are already out there may be there, and nowhere else. */
static int check_overwrite(struct media *m)
{
    const char *path = file_in(m, "onboard.key.pem");
    CLEANUP(pki_key_freep) struct pki_key *there = NULL;
    if (option_is_given(m->options, "force") || access(path, F_OK) < 0)
        return 0;
    if (pki_key_load(path, &there) == 0 && pki_key_fits(there, m->cert))
        return 0;
    return error_set(
        &m->error, -EEXIST,
        "%s is there already; use it (--onboard-cert, --onboard-key), or overwrite it with "
        "--force",
        path);
}

/* ---- the first configuration ---------------------------------------------------------------- */

static int make_bootstrap(struct media *m)
{
    const struct options *o = m->options;
    struct controller_certs *certs = NULL;
    struct bootstrap_port port = {.port = text(m, "port"),
                                  .address = text(m, "address"),
                                  .gateway = text(m, "gateway"),
                                  .dns = text(m, "dns"),
                                  .ntp = text(m, "ntp"),
                                  .domain = text(m, "domain")};
    if (!option_is_given(o, "bootstrap"))
        return port.address.n
                   ? error_set(&m->error, -EINVAL,
                               "--address is for the first configuration: add --bootstrap")
                   : 0;
    struct controller_certs_options options = {
        .data_dir = option_text(o, "data-dir"),
        .clock = &clock_system,
        .signing_cert_file = option_text(o, "device-signing-cert-file"),
        .signing_key_file = option_text(o, "device-signing-key-file"),
        .ecdh_cert_file = option_text(o, "device-ecdh-cert-file"),
        .ecdh_key_file = option_text(o, "device-ecdh-key-file"),
        .lifetime_s = option_int(o, "device-cert-lifetime-seconds")};
    int r = controller_certs_open(&options, &certs, &m->error);
    if (r < 0)
        return r;
    struct controller_set *set = controller_certs_get(certs);
    int64_t now_s = clock_system.wall_us(&clock_system) / 1000000;
    r = bootstrap_config(m->arena, &port, set, now_s, &m->bootstrap, &m->error);
    bytes_unref(&set->bytes);
    controller_certs_free(certs);
    return r;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* root-certificate.pem vouches for what is signed; older releases of EVE look for the root of the
 * TLS connection in v2tlsbaseroot-certificates.pem alone. The key is first: without it the rest is
 * of no use, and a device is told of the server last. */
static int write_files(struct media *m)
{
    struct str ip = text(m, "ip"), none = STR_NONE;
    const struct file {
        const char *name;
        struct str content; /* NULL p: not wanted */
        unsigned mode;
    } files[] = {
        {"onboard.key.pem", m->key_pem, 0600},
        {"onboard.cert.pem", pki_cert_pem(m->arena, m->cert), 0644},
        {"root-certificate.pem", m->roots, 0644},
        {"v2tlsbaseroot-certificates.pem", m->roots, 0644},
        {"hosts",
         ip.n ? arena_printf(m->arena, "%.*s %.*s\n", STR_ARG(ip), STR_ARG(m->host)) : none, 0644},
        {"bootstrap-config.pb", m->bootstrap.n ? m->bootstrap : none, 0644},
        {"server", arena_printf(m->arena, "%.*s\n", STR_ARG(m->server)), 0644},
    };
    for (size_t i = 0; i < N_ELEMENTS(files); i++) {
        int r = files[i].content.p
                    ? pki_file_write(file_in(m, files[i].name), files[i].content, files[i].mode)
                    : 0;
        if (r < 0)
            return error_set(&m->error, r, "cannot write %s: %s", file_in(m, files[i].name),
                             log_errno_text(r));
    }
    return 0;
}

static int make_directory(struct media *m)
{
    if (mkdir(m->dir, 0700) < 0 && errno != EEXIST)
        return error_set(&m->error, -errno, "cannot make the directory %s: %s", m->dir,
                         log_errno_text(-errno));
    return 0;
}

static void set(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_set(a, object, str_of(key), json_string(value));
}

static void print_manifest(struct media *m)
{
    struct arena *a = m->arena;
    struct json object = json_object(), metadata = json_object(), spec = json_object(),
                serials = json_array();
    struct str name = text(m, "name"), rest = text(m, "serial"), one = STR_NONE;
    unsigned char fingerprint[SHA256_BYTES];
    BUF_AUTO b = {0};
    pki_cert_fingerprint(m->cert, fingerprint);
    set(a, &metadata, "name",
        name.n ? name : arena_printf(a, "onboard-%s", pki_hex(a, fingerprint, 4).p));
    if (text(m, "namespace").n)
        set(a, &metadata, "namespace", text(m, "namespace"));
    set(a, &spec, "certificate", pki_cert_pem(a, m->cert));
    while (str_split(&rest, ',', &one))
        if (str_trim(one).n)
            (void) json_push(a, &serials, json_string(str_trim(one)));
    if (json_count(&serials))
        (void) json_set(a, &spec, STR("serials"), serials);
    set(a, &object, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    set(a, &object, "kind", STR("OnboardCertificate"));
    (void) json_set(a, &object, STR("metadata"), metadata);
    (void) json_set(a, &object, STR("spec"), spec);
    yaml_write(&b, &object);
    printf("%.*s", STR_ARG(buf_str(&b)));
}

/* Nothing is written before everything is known to be right. */
static int make_media(struct media *m)
{
    int r = read_server(m);
    if (r == 0)
        r = controller_roots_pem(m->arena, option_text(m->options, "data-dir"), &m->roots,
                                 &m->error);
    if (r == 0)
        r = read_onboard(m);
    if (r == 0)
        r = make_bootstrap(m);
    if (r == 0)
        r = check_overwrite(m);
    if (r == 0)
        r = make_directory(m);
    return r < 0 ? r : write_files(m);
}

int device_media_command(const struct options *o)
{
    CLEANUP(media_done) struct media m = {.arena = arena_new(), .options = o};
    if (o->n_rest != 1) {
        fprintf(stderr, "seth: name the directory to write: seth device-media DIR\n");
        return EXIT_FAILURE;
    }
    m.dir = o->rest[0];
    int r = make_media(&m);
    if (r < 0) {
        fprintf(stderr, "seth: %s\n", m.error ? m.error : log_errno_text(r));
        return EXIT_FAILURE;
    }
    warn_of_names(&m);
    fprintf(stderr,
            "seth: %s is ready: copy its files into EVE's CONFIG partition, and apply the manifest "
            "on standard output\n",
            m.dir);
    print_manifest(&m);
    return EXIT_SUCCESS;
}
