/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "device.h"
#include "eve/auth.pb-c.h"
#include "eve/certs.pb-c.h"
#include "protobuf/message.h"
#include "zedagent/bootstrap.h"

#define SIGNING EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING
#define INTERMEDIATE EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE

static struct str make(struct device *d, const struct device_cert *certs, size_t n,
                       const struct authority *by, struct str payload)
{
    Eve__Config__BootstrapConfig b = EVE__CONFIG__BOOTSTRAP_CONFIG__INIT;
    const Eve__Certs__ZControllerCert *list =
        PB_UNPACK(d->arena, eve__certs__zcontroller_cert, device_certs(d, certs, n));
    b.signed_config = PB_UNPACK(d->arena, eve__auth__auth_container, device_seal(d, by, payload));
    b.controller_certs = list->certs;
    b.n_controller_certs = list->n_certs;
    return pb_pack(d->arena, &b.base);
}

static struct str config_bytes(struct device *d)
{
    Eve__Config__EdgeDevConfig c = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    c.device_name = arena_strz(d->arena, STR("edge-1"));
    return pb_pack(d->arena, &c.message);
}

static int open_it(struct device *d, struct str file, int64_t days, const char **ret_reason)
{
    const Eve__Config__EdgeDevConfig *config = NULL;
    const int r = bootstrap_open(d->arena, file, device_read(d, "config/root-certificate.pem"),
                                 clock_system.wall_us(&clock_system) / 1000000 + days * 86400,
                                 &config, ret_reason);
    if (r == 0)
        assert_string_equal(config->device_name, "edge-1");
    return r;
}

TEST(a_good_one_is_believed_and_no_other)
{
    struct device d;
    const char *reason = "";
    device_init(&d);
    struct authority stranger = authority_new("stranger", /* is_ca= */ false, NULL);
    const struct device_cert good[] = {{SIGNING, &d.signing}, {INTERMEDIATE, &d.between}};
    const struct device_cert twice[] = {
        {SIGNING, &d.signing}, {SIGNING, &d.exchange}, {INTERMEDIATE, &d.between}};
    const struct device_cert strange[] = {{SIGNING, &stranger}};
    const struct str bytes = config_bytes(&d);
    assert_int_equal(open_it(&d, make(&d, good, 2, &d.signing, bytes), 0, &reason), 0);
    /* Certificates expire. */
    assert_int_equal(open_it(&d, make(&d, good, 2, &d.signing, bytes), 200, &reason),
                     -EKEYREJECTED);
    /* What is between is missing. */
    assert_int_equal(open_it(&d, make(&d, good, 1, &d.signing, bytes), 0, &reason), -EKEYREJECTED);
    assert_int_equal(open_it(&d, make(&d, good + 1, 1, &d.signing, bytes), 0, &reason),
                     -EKEYREJECTED);
    assert_int_equal(open_it(&d, make(&d, twice, 3, &d.signing, bytes), 0, &reason), -EKEYREJECTED);
    assert_int_equal(open_it(&d, make(&d, strange, 1, &stranger, bytes), 0, &reason),
                     -EKEYREJECTED);
    /* Signed by another than the one beside it. */
    assert_int_equal(open_it(&d, make(&d, good, 2, &stranger, bytes), 0, &reason), -EKEYREJECTED);
    assert_int_equal(open_it(&d, make(&d, good, 2, &d.signing, STR("\xFF")), 0, &reason), -EBADMSG);
    assert_int_equal(open_it(&d, STR("\xFF"), 0, &reason), -EBADMSG);
    assert_int_equal(open_it(&d, STR(""), 0, &reason), -EBADMSG);
    authority_done(&stranger);
    device_done(&d);
}

TEST(no_bit_of_it_can_be_changed_unnoticed)
{
    struct device d;
    const char *reason = "";
    device_init(&d);
    const struct device_cert good[] = {{SIGNING, &d.signing}, {INTERMEDIATE, &d.between}};
    const struct str file = make(&d, good, 2, &d.signing, config_bytes(&d));
    size_t n_believed = 0;
    for (size_t i = 0; i < file.n; i += 7) {
        char *copy = arena_strz(d.arena, file);
        const Eve__Config__EdgeDevConfig *config = NULL;
        copy[i] = (char) (copy[i] ^ 1);
        if (bootstrap_open(d.arena, str_range(copy, file.n),
                           device_read(&d, "config/root-certificate.pem"),
                           clock_system.wall_us(&clock_system) / 1000000, &config, &reason) < 0)
            continue;
        /* Beside what is signed there are hashes of certificates, which nobody reads here. */
        n_believed++;
        assert_string_equal(config->device_name, "edge-1");
    }
    assert_true(n_believed < file.n / 7 / 2);
    device_done(&d);
}
