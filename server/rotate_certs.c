/* SPDX-License-Identifier: Apache-2.0 */
#include "rotate_certs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "device/controller_certs.h"
#include "identity.h"

const struct option_spec rotate_certs_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0},
    {"data-dir", OPTION_TEXT, "/var/lib/seth", "where the server keeps everything", 0, 0},
    {"signing", OPTION_ACTION, NULL, "the certificate that signs answers to devices", 0, 0},
    {"ecdh", OPTION_ACTION, NULL, "the one that secrets for devices are encrypted with", 0, 0},
    {"server", OPTION_ACTION, NULL, "the one of the server's TLS; its names stay", 0, 0},
    {"device-cert-lifetime-seconds", OPTION_INT, "63072000",
     "life of the new signing and ECDH certificates", 60, (int64_t) 1 << 31},
    {"tls-cert-lifetime-seconds", OPTION_INT, "31536000", "life of the new one of TLS", 3,
     (int64_t) 1 << 31},
    {"device-signing-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"device-ecdh-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {"tls-cert-file", OPTION_TEXT, "", "as the server is given it", 0, 0},
    {0},
};

/* Making our own would change nothing while the server uses an operator's. */
static int refuse_given(const struct options *o, const char *action, const char *option,
                        char **ret_error)
{
    struct buf b = {0};
    if (!option_text(o, option)[0])
        return 0;
    buf_printf(&b, "--%s: the server uses --%s %s: replace that file, it is read again by itself",
               action, option, option_text(o, option));
    *ret_error = buf_take(&b);
    return -EINVAL;
}

static int rotate(const struct options *o, unsigned which, bool has_server, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    const char *data_dir = option_text(o, "data-dir");
    int r = 0;
    if (which & CONTROLLER_SIGNING)
        r = refuse_given(o, "signing", "device-signing-cert-file", ret_error);
    if (r == 0 && (which & CONTROLLER_ECDH))
        r = refuse_given(o, "ecdh", "device-ecdh-cert-file", ret_error);
    if (r == 0 && has_server)
        r = refuse_given(o, "server", "tls-cert-file", ret_error);
    if (r == 0 && which)
        r = controller_certs_rotate(data_dir, which, option_int(o, "device-cert-lifetime-seconds"),
                                    ret_error);
    if (r == 0 && has_server)
        r = identity_rotate(a, data_dir, option_int(o, "tls-cert-lifetime-seconds"), ret_error);
    return r;
}

int rotate_certs_command(const struct options *o)
{
    bool has_signing = option_is_given(o, "signing"), has_ecdh = option_is_given(o, "ecdh"),
         has_server = option_is_given(o, "server");
    if (!has_signing && !has_ecdh && !has_server)
        has_signing = has_ecdh = true;
    char *error = NULL;
    int r = rotate(o, (has_signing ? CONTROLLER_SIGNING : 0U) | (has_ecdh ? CONTROLLER_ECDH : 0U),
                   has_server, &error);
    if (r < 0)
        fprintf(stderr, "seth: %s\n", error ? error : strerror(-r));
    else
        printf("new:%s%s%s\n", has_signing ? " signing" : "", has_ecdh ? " ecdh" : "",
               has_server ? " server" : "");
    mem_free(error);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
