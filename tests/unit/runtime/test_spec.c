/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include "runtime/spec.h"
#include "test.h"

#include "base/alloc.h"
#include "runtime/content.h"
#include "runtime/output.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const struct spec_machine full = {
    .is_root = true,
    .limits_memory = true,
    .limits_cpu = true,
    .limits_processes = true,
    .cgroup_path = {"/seth-agent/a", 13},
};

static const struct json *build(struct arena *a, const char *image_text,
                                const struct runtime_instance *instance,
                                const struct spec_machine *machine, int *ret_error)
{
    struct image_config image;
    char *error = NULL;
    struct json *config = NEW(struct json);
    arena_on_free(a, mem_free, config);
    const struct json *parsed = image_text ? json_parse_quick(a, str_of(image_text)) : NULL;
    *ret_error = image_read_config(a, parsed, &image, &error);
    if (*ret_error == 0) {
        const struct spec_mount mount = {STR("/v/data/root"), STR("/data"), true};
        const struct spec_input in = {
            .instance = instance,
            .image = &image,
            .user = {1000, 100},
            .root_path = STR("/v/root"),
            .mounts = &mount,
            .n_mounts = 1,
            .machine = *machine,
        };
        *ret_error = spec_build(a, &in, config, &error);
    }
    assert_true(!*ret_error == !error);
    mem_free(error);
    return config;
}

/* Whether the JSON text at the path is what is expected. */
static void check(struct arena *a, const struct json *v, const char *path, const char *expected)
{
    struct str rest = str_of(path), part;
    while (str_split(&rest, '.', &part))
        v = json_get(v, part);
    struct str text = v ? json_text(a, v) : STR("absent");
    if (!str_is(text, expected))
        fail_msg("%s: got %.*s, expected %s", path, STR_ARG(text), expected);
}

TEST(image_config_becomes_a_runtime_config)
{
    static const struct str args[] = {{"/bin/other", 10}, {"-x", 2}};
    static const struct str env[] = {{"B=3", 3}, {"C=4", 3}};
    const struct runtime_instance plain = {.id = STR("a")};
    const struct runtime_instance args_of_its_own = {.id = STR("a"), .args = args, .n_args = 2};
    const struct runtime_instance with_env = {.id = STR("a"), .env = env, .n_env = 2};
    const struct runtime_instance limited = {.id = STR("a"),
                                             .memory_max_bytes = 1 << 20,
                                             .cpu_millis = 250,
                                             .hostname = STR("h"),
                                             .is_root_read_only = true};
    const struct runtime_instance joined = {
        .id = STR("a"), .network = RUNTIME_NETWORK_JOIN, .network_path = STR("/run/netns/x")};
    const struct runtime_instance host = {.id = STR("a"), .network = RUNTIME_NETWORK_HOST};
    const struct {
        const char *image;
        const struct runtime_instance *instance;
        const char *path, *expected;
    } cases[] = {
        {"{\"config\":{\"Entrypoint\":[\"/e\"],\"Cmd\":[\"c\"]}}", &plain, "process.args",
         "[\"/e\",\"c\"]"},
        {"{\"config\":{\"Entrypoint\":null,\"Cmd\":[\"c\"]}}", &plain, "process.args", "[\"c\"]"},
        {"{\"config\":{\"Entrypoint\":[\"/e\"],\"Cmd\":[\"c\"]}}", &args_of_its_own, "process.args",
         "[\"/bin/other\",\"-x\"]"},
        {NULL, &args_of_its_own, "process.args", "[\"/bin/other\",\"-x\"]"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "process.env", "[\"" PATH "\"]"},
        {"{\"config\":{\"Cmd\":[\"c\"],\"Env\":[\"PATH=/p\",\"A=1\",\"B=2\"]}}", &with_env,
         "process.env", "[\"PATH=/p\",\"A=1\",\"B=3\",\"C=4\"]"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "process.cwd", "\"/\""},
        {"{\"config\":{\"Cmd\":[\"c\"],\"WorkingDir\":\"/w\"}}", &plain, "process.cwd", "\"/w\""},
        {"{\"config\":{\"Cmd\":[\"c\"],\"WorkingDir\":\"w\"}}", &plain, "process.cwd", "\"/w\""},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "process.user", "{\"uid\":1000,\"gid\":100}"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "process.capabilities.effective", "[]"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "process.noNewPrivileges", "true"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "hostname", "\"a\""},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &limited, "hostname", "\"h\""},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &limited, "root",
         "{\"path\":\"/v/root\",\"readonly\":true}"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &limited, "linux.resources.memory",
         "{\"limit\":1048576}"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &limited, "linux.resources.cpu",
         "{\"quota\":25000,\"period\":100000}"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "linux.resources.memory", "absent"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "linux.resources.pids", "{\"limit\":4096}"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "linux.cgroupsPath", "\"/seth-agent/a\""},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &plain, "linux.namespaces",
         "[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"},{\"type\":"
         "\"network\"}]"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &joined, "linux.namespaces",
         "[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"},{\"type\":"
         "\"network\",\"path\":\"/run/netns/x\"}]"},
        {"{\"config\":{\"Cmd\":[\"c\"]}}", &host, "linux.namespaces",
         "[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"}]"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        int e;
        const struct json *c = build(a, cases[i].image, cases[i].instance, &full, &e);
        assert_int_equal(e, 0);
        check(a, c, cases[i].path, cases[i].expected);
    }
}

TEST(bad_image_configs_are_refused)
{
    static const struct {
        const char *image;
        int error;
    } cases[] = {
        {NULL, -EINVAL},
        {"{\"config\":{}}", -EINVAL},
        {"{\"config\":{\"Cmd\":\"sh\"}}", -EINVAL},
        {"{\"config\":{\"Cmd\":[1]}}", -EINVAL},
        {"{\"config\":{\"Cmd\":[\"a\\u0000b\"]}}", -EINVAL},
        {"{\"config\":{\"Cmd\":[\"c\"],\"StopSignal\":\"SIGNAL\"}}", -EINVAL},
    };
    const struct runtime_instance plain = {.id = STR("a")};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        int e;
        (void) build(a, cases[i].image, &plain, &full, &e);
        assert_int_equal(e, cases[i].error);
    }
}

TEST(without_root_there_is_a_user_namespace_and_no_limit)
{
    ARENA_AUTO a = arena_new();
    int e;
    const struct spec_machine bare = {.is_root = false, .uid = 1001, .gid = 1002};
    const struct runtime_instance i = {.id = STR("a"), .memory_max_bytes = 1, .cpu_millis = 1};
    const struct json *c = build(a, "{\"config\":{\"Cmd\":[\"c\"]}}", &i, &bare, &e);
    check(a, c, "linux.resources", "{}");
    check(a, c, "linux.cgroupsPath", "absent");
    check(a, c, "process.user", "{\"uid\":0,\"gid\":0}");
    check(a, c, "linux.uidMappings", "[{\"containerID\":0,\"hostID\":1001,\"size\":1}]");
    check(a, c, "linux.gidMappings", "[{\"containerID\":0,\"hostID\":1002,\"size\":1}]");
}

TEST(the_stop_signal_is_read_back)
{
    static const struct {
        const char *image;
        int signal;
    } cases[] = {
        {"{\"config\":{\"Cmd\":[\"c\"]}}", SIGTERM},
        {"{\"config\":{\"Cmd\":[\"c\"],\"StopSignal\":\"SIGQUIT\"}}", SIGQUIT},
        {"{\"config\":{\"Cmd\":[\"c\"],\"StopSignal\":\"USR1\"}}", SIGUSR1},
        {"{\"config\":{\"Cmd\":[\"c\"],\"StopSignal\":\"2\"}}", SIGINT},
    };
    const struct runtime_instance plain = {.id = STR("a")};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        int e;
        assert_int_equal(spec_stop_signal(build(a, cases[i].image, &plain, &full, &e)),
                         cases[i].signal);
    }
    assert_int_equal(spec_stop_signal(NULL), SIGTERM);
}

TEST(users_are_found_in_the_image)
{
    static const char passwd[] = "root:x:0:0:r:/:/bin/sh\nsam:x:1234:77::/:/bin/sh\nbad:x:y:z\n";
    static const char group[] = "root:x:0:\nstaff:x:50:\n";
    static const struct {
        const char *user;
        int error;
        unsigned uid, gid;
    } cases[] = {
        {"", 0, 0, 0},
        {"0", 0, 0, 0},
        {"sam", 0, 1234, 77},
        {"1234", 0, 1234, 77},
        {"999", 0, 999, 0},
        {"999:5", 0, 999, 5},
        {"sam:staff", 0, 1234, 50},
        {"sam:none", -ENOENT, 0, 0},
        {"none", -ENOENT, 0, 0},
        {"bad", -ENOENT, 0, 0},
        {"-1", -ENOENT, 0, 0},
        {"4294967295", -ENOENT, 0, 0},
        {":staff", 0, 0, 50},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct image_user u = {7, 7};
        int e = image_find_user(str_of(cases[i].user), str_of(passwd), str_of(group), &u);
        if (e != cases[i].error || (!e && (u.uid != cases[i].uid || u.gid != cases[i].gid)))
            fail_msg("%s: %d %u %u", cases[i].user, e, u.uid, u.gid);
    }
}

TEST(the_manifest_for_this_machine_is_chosen)
{
    static const struct {
        const char *index;
        int error;
    } cases[] = {
        {"{\"manifests\":[{\"digest\":\"sha256:" HEX "\",\"size\":1}]}", 0},
        {"{\"manifests\":[{\"digest\":\"sha256:" HEX
         "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}}]}",
         -ENOEXEC},
        {"{\"manifests\":[{\"digest\":\"x\",\"size\":1},{\"digest\":\"sha256:" HEX
         "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
         0},
        {"{\"manifests\":[{\"digest\":\"sha256:" HEX
         "\",\"size\":1,\"platform\":{\"os\":\"windows\",\"architecture\":\"amd64\"}}]}",
         -ENOEXEC},
        {"{\"manifests\":[{\"digest\":\"sha512:" HEX "\",\"size\":1}]}", -EINVAL},
        {"{\"manifests\":[{\"digest\":\"sha256:../../x\",\"size\":1}]}", -EINVAL},
        {"{\"manifests\":[{\"digest\":\"sha256:" HEX "\",\"size\":-1}]}", -EINVAL},
        {"{\"manifests\":[]}", -ENOEXEC},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct image_blob b;
        const struct json *index = json_parse_quick(a, str_of(cases[i].index));
        assert_int_equal(image_choose(index, STR("amd64"), &b), cases[i].error);
        if (!cases[i].error)
            assert_str(b.hex, HEX);
    }
}

TEST(references_of_registries_are_taken_apart)
{
    static const struct {
        const char *url, *host, *repository, *tag, *hex;
    } cases[] = {
        {"docker://r.example:5000/team/app:1.2", "r.example:5000", "team/app", "1.2", NULL},
        {"docker://r.example/app", "r.example", "app", "latest", NULL},
        {"docker://docker.io/nginx", "registry-1.docker.io", "library/nginx", "latest", NULL},
        {"docker://docker.io/a/b@sha256:" HEX, "registry-1.docker.io", "a/b", "latest", HEX},
        {"docker://r.example/app:x@sha256:" HEX, "r.example", "app", "x", HEX},
        {"docker://r.example/app@sha256:00", NULL, NULL, NULL, NULL},
        {"docker://r.example", NULL, NULL, NULL, NULL},
        {"docker:///app", NULL, NULL, NULL, NULL},
        {"docker://u@r.example/app", NULL, NULL, NULL, NULL},
        {"docker://r.example/../app", NULL, NULL, NULL, NULL},
        {"docker://r.example/app:a b", NULL, NULL, NULL, NULL},
        {"docker://r.example/app?x", NULL, NULL, NULL, NULL},
        {"docker://r.example/App", NULL, NULL, NULL, NULL},
        {"https://r.example/app", NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct registry_reference r;
        int e = registry_parse(a, str_of(cases[i].url), &r);
        if (e != (cases[i].host ? 0 : -EINVAL))
            fail_msg("%s: %d", cases[i].url, e);
        if (e < 0)
            continue;
        assert_str(r.host, cases[i].host);
        assert_str(r.repository, cases[i].repository);
        assert_str(r.tag, cases[i].tag);
        assert_true(cases[i].hex ? str_is(r.hex, cases[i].hex) : !r.hex.p);
    }
}

TEST(challenges_are_read)
{
    const struct str h =
        STR("Bearer xrealm=\"no\",realm=\"https://a/t\",service=\"s\",scope=\"x\"");
    assert_str(registry_challenge(h, "realm"), "https://a/t");
    assert_str(registry_challenge(h, "service"), "s");
    assert_null(registry_challenge(h, "error").p);
    assert_null(registry_challenge(STR("Bearer realm=\"open"), "realm").p);
    assert_null(registry_challenge(STR("Bearer realm"), "realm").p);
}

/* ---- lines --------------------------------------------------------------------------------- */

static void on_line(void *arg, enum runtime_stream stream, struct str line)
{
    (void) stream;
    struct buf *told = arg;
    buf_printf(told, "[%.*s]", STR_ARG(line));
}

TEST(lines_come_whole_however_they_arrive)
{
    static const char text[] = "one\ntwo\r\n\nthree";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        BUF_AUTO told = {0};
        struct output o = {.fd = -1, .on_line = on_line, .arg = &told};
        for (size_t at = 0; at < sizeof(text) - 1; at += piece)
            output_take(&o, str_range(text + at, MIN(piece, sizeof(text) - 1 - at)));
        assert_str(buf_str(&told), "[one][two][]");
        output_drain(&o);
        assert_str(buf_str(&told), "[one][two][][three]");
        output_close(&o);
    }
}
