/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/program.h"
#include "json/yaml.h"

#define OPTIONS_FILE_MAX_BYTES ((size_t) 1024 * 1024)

static size_t n_specs(const struct option_spec *specs)
{
    size_t n = 0;
    while (specs[n].name)
        n++;
    return n;
}

static ptrdiff_t find_spec(const struct option_spec *specs, struct str name)
{
    for (size_t i = 0; specs[i].name; i++)
        if (str_is(name, specs[i].name))
            return (ptrdiff_t) i;
    return -1;
}

/* SETH_<NAME> for seth, SETH_AGENT_<NAME> for seth-agent. */
static struct str variable(struct arena *a, const struct program *program, const char *name)
{
    char *text = arena_strz(a, arena_printf(a, "%s_%s", program->name, name));
    for (char *p = text; *p; p++)
        *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char) (*p - 'a' + 'A') : *p;
    return str_of(text);
}

static void print_help(struct arena *a, const struct program *program,
                       const struct option_spec *specs, const char *usage)
{
    printf("Usage: %s\n\nOptions (also as %s<NAME> in the environment", usage,
           variable(a, program, "").p);
    printf("%s):\n",
           find_spec(specs, STR("config")) < 0 ? "" : ", or in the YAML file of --config");
    for (const struct option_spec *s = specs; s->name; s++) {
        BUF_AUTO flag = {0};
        buf_printf(&flag, "%s", s->name);
        if (s->letter)
            buf_printf(&flag, ", -%c", s->letter);
        printf("  --%-24s %s", flag.p, s->help);
        if (s->fallback && s->fallback[0])
            printf(" (default: %s)", s->fallback);
        printf("\n");
    }
    printf("  --%-24s %s\n", "help", "this text");
}

static ptrdiff_t find_letter(const struct option_spec *specs, char letter)
{
    for (size_t i = 0; specs[i].name; i++)
        if (specs[i].letter == letter)
            return (ptrdiff_t) i;
    return -1;
}

static int complain(const struct options *o, const char *what, struct str name)
{
    fprintf(stderr, "%s: %s '%.*s'; --help lists the options\n", o->program->name, what,
            STR_ARG(name));
    return -EINVAL;
}

static int set_value(struct arena *a, struct options *o, size_t at, struct str value)
{
    const struct option_spec *s = &o->specs[at];
    int64_t number = 0;
    if (s->type == OPTION_INT &&
        (str_to_i64(value, &number) < 0 || number < s->min || (s->max && number > s->max))) {
        fprintf(stderr, "%s: --%s: '%.*s' is no number between %" PRId64 " and %" PRId64 "\n",
                o->program->name, s->name, STR_ARG(value), s->min, s->max);
        return -EINVAL;
    }
    /* What a flag says stands instead of the file's and the default; once more, beside it. */
    if (s->type == OPTION_LIST && o->is_given[at])
        value = arena_printf(a, "%s,%.*s", o->values[at], STR_ARG(value));
    o->values[at] = arena_strz(a, value);
    o->is_given[at] = true;
    return 0;
}

static int set_environment(struct arena *a, struct options *o)
{
    for (size_t i = 0; o->specs[i].name; i++) {
        if (o->specs[i].type == OPTION_ACTION)
            continue;
        const char *value = getenv(variable(a, o->program, o->specs[i].name).p);
        o->is_given[i] = false;
        int r = value ? set_value(a, o, i, str_of(value)) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static struct str scalar_text(struct arena *a, const struct json *v)
{
    if (json_is(v, JSON_STRING))
        return json_str(v);
    if (!json_is(v, JSON_ARRAY))
        return json_text(a, v);
    BUF_AUTO b = {0};
    JSON_FOR_EACH_ITEM (v, item) {
        buf_append_str(&b, b.n ? STR(",") : STR(""));
        buf_append_str(&b, scalar_text(a, item));
    }
    return arena_str(a, buf_str(&b));
}

static int set_file(struct arena *a, struct options *o, const char *path)
{
    BUF_AUTO text = {0};
    struct json_parse_result parsed = {0};
    int r = file_read(path, OPTIONS_FILE_MAX_BYTES - 1, &text);
    if (r < 0) {
        fprintf(stderr, "%s: --config: cannot read %s: %s\n", o->program->name, path, strerror(-r));
        return r;
    }
    if (yaml_parse(a, buf_str(&text), &parsed) < 0 || !json_is(parsed.value, JSON_OBJECT)) {
        fprintf(stderr, "%s: --config: %s is no YAML map of options: %.*s\n", o->program->name,
                path, STR_ARG(parsed.error));
        return -EINVAL;
    }
    JSON_FOR_EACH_MEMBER (parsed.value, m) {
        ptrdiff_t at = find_spec(o->specs, json_str(&m->key));
        if ((at < 0 && program_knows(o->program, json_str(&m->key))) ||
            (at >= 0 && o->specs[at].type == OPTION_ACTION))
            continue; /* another command's */
        if (at < 0)
            return complain(o, "the configuration file has an unknown option", json_str(&m->key));
        r = set_value(a, o, (size_t) at, scalar_text(a, &m->value));
        if (r < 0)
            return r;
    }
    return 0;
}

/* What an argument says: --name, --name=value or -n. */
struct flag {
    ptrdiff_t at; /* -1: no such option */
    struct str value;
    bool has_value;
};

static struct flag read_flag(const struct options *o, struct str arg)
{
    if (!str_starts_with(arg, STR("--")))
        return (struct flag){.at = arg.n == 2 ? find_letter(o->specs, arg.p[1]) : -1};
    arg = str_from(arg, 2);
    ptrdiff_t equals = str_find(arg, '=');
    if (equals < 0)
        return (struct flag){.at = find_spec(o->specs, arg)};
    return (struct flag){.at = find_spec(o->specs, str_sub(arg, 0, (size_t) equals)),
                         .value = str_from(arg, (size_t) equals + 1),
                         .has_value = true};
}

/* Walks the flags; only_config takes --config and nothing else. */
static int walk_flags(struct arena *a, struct options *o, int argc, char **argv, bool only_config)
{
    const char **rest = ARENA_ARRAY(a, const char *, argc + 1);
    o->n_rest = 0;
    for (int i = 0; i < argc; i++) {
        struct str arg = str_of(argv[i]);
        if (arg.n < 2 || arg.p[0] != '-') {
            rest[o->n_rest++] = argv[i];
            continue;
        }
        struct flag f = read_flag(o, arg);
        if (f.at < 0)
            return complain(o, "unknown option", arg);
        bool is_action = o->specs[f.at].type == OPTION_ACTION;
        if (is_action && f.has_value)
            return complain(o, "there is no value for", str_of(o->specs[f.at].name));
        if (!is_action && !f.has_value && i + 1 >= argc)
            return complain(o, "a value is missing behind", arg);
        if (is_action || !f.has_value)
            f.value = is_action ? STR("true") : str_of(argv[++i]);
        if (only_config != str_is(str_of(o->specs[f.at].name), "config"))
            continue;
        int r = set_value(a, o, (size_t) f.at, f.value);
        if (r < 0)
            return r;
    }
    o->rest = rest;
    return 0;
}

int options_parse(struct arena *a, const struct program *program, const struct option_spec *specs,
                  const char *usage, int argc, char **argv, struct options *ret)
{
    for (int i = 0; i < argc; i++) {
        if (str_is(str_of(argv[i]), "--help") || str_is(str_of(argv[i]), "-h")) {
            print_help(a, program, specs, usage);
            return 1;
        }
    }
    struct options o = {.program = program, .specs = specs};
    size_t n = n_specs(specs);
    o.values = ARENA_ARRAY(a, const char *, n + 1);
    o.is_given = ARENA_ARRAY(a, bool, n + 1);
    for (size_t i = 0; i < n; i++)
        o.values[i] = specs[i].fallback;
    ptrdiff_t config = find_spec(specs, STR("config"));
    int r = walk_flags(a, &o, argc, argv, true);
    const char *from_environment = getenv(variable(a, program, "config").p);
    const char *path = config >= 0 && o.values[config] ? o.values[config] : from_environment;
    if (r == 0 && config >= 0 && path && path[0])
        r = set_file(a, &o, path);
    if (r == 0)
        r = set_environment(a, &o);
    if (r < 0)
        return r;
    memset(o.is_given, 0, n * sizeof(*o.is_given));
    r = walk_flags(a, &o, argc, argv, false);
    *ret = o;
    return r;
}

const char *option_text(const struct options *o, const char *name)
{
    ptrdiff_t at = find_spec(o->specs, str_of(name));
    return at < 0 || !o->values[at] ? "" : o->values[at];
}

int64_t option_int(const struct options *o, const char *name)
{
    int64_t value = 0;
    (void) str_to_i64(str_of(option_text(o, name)), &value);
    return value;
}

bool option_is_given(const struct options *o, const char *action)
{
    return option_text(o, action)[0] != '\0';
}
