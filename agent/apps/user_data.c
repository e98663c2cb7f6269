/* SPDX-License-Identifier: Apache-2.0 */
/* User data of a container: the variables of its environment, and with EVE_ECO_CMD the command that
 * is run instead of the image's. Either lines NAME=value, or a #cloud-config whose runcmd sets
 * them. Pure functions. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "json/yaml.h"

#define COMMAND "EVE_ECO_CMD"

static int fail(struct arena *a, struct str *ret_error, const char *why, struct str line)
{
    *ret_error = arena_printf(a, "user data: %s: '%.*s'", why, (int) MIN(line.n, 80), line.p);
    return -EINVAL;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i > 0 && ((c >= '0' && c <= '9') || c == '.' || c == '-')))
            return false;
    }
    return s.n > 0;
}

/* ---- the command --------------------------------------------------------------------------- */

/* Words as a shell would see them: blanks part, quotes and backslashes keep together. */
static int split_words(struct arena *a, struct str s, struct instance_words *ret,
                       struct str *ret_error)
{
    char *to = arena_alloc(a, s.n + 1);
    char quote = 0;
    bool is_open = false;
    ret->args = ARENA_ARRAY(a, struct str, APPS_MAX_ARGS);
    ret->n_args = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!quote && (c == ' ' || c == '\t')) {
            is_open = false;
            continue;
        }
        if (!is_open && ret->n_args == APPS_MAX_ARGS)
            return fail(a, ret_error, "too many words", s);
        if (!is_open)
            ret->args[ret->n_args++] = str_range(to, 0);
        is_open = true;
        if (!quote && (c == '\'' || c == '"')) {
            quote = c;
            continue;
        }
        if (quote && c == quote) {
            quote = 0;
            continue;
        }
        if (c == '\\' && quote != '\'' && i + 1 < s.n)
            c = s.p[++i];
        *to++ = c;
        ret->args[ret->n_args - 1].n++;
    }
    return quote ? fail(a, ret_error, "a quote has no end", s) : 0;
}

/* ---- variables ----------------------------------------------------------------------------- */

static int add_variable(struct arena *a, struct str line, struct instance_words *ret,
                        struct str *ret_error)
{
    ptrdiff_t at = str_find(line, '=');
    if (at < 0 || !is_name(str_sub(line, 0, (size_t) at)))
        return fail(a, ret_error, "not NAME=value", line);
    if (str_is(str_sub(line, 0, (size_t) at), COMMAND))
        return split_words(a, str_from(line, (size_t) at + 1), ret, ret_error);
    if (ret->n_env == APPS_MAX_ENV)
        return fail(a, ret_error, "too many variables", line);
    if (!ret->env)
        ret->env = ARENA_ARRAY(a, struct str, APPS_MAX_ENV);
    ret->env[ret->n_env++] = line;
    return 0;
}

static int read_lines(struct arena *a, struct str text, struct instance_words *ret,
                      struct str *ret_error)
{
    struct str line;
    while (str_split(&text, '\n', &line)) {
        if (str_ends_with(line, STR("\r")))
            line = str_sub(line, 0, line.n - 1);
        if (!str_trim(line).n || line.p[0] == '#')
            continue;
        int r = add_variable(a, line, ret, ret_error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Of its commands those that set a variable; others have no shell here to run them. */
static int read_cloud_config(struct arena *a, struct str text, struct instance_words *ret,
                             struct str *ret_error)
{
    struct json_parse_result parsed;
    if (yaml_parse(a, text, &parsed) < 0)
        return fail(a, ret_error, "no YAML", parsed.error);
    JSON_FOR_EACH_ITEM (json_get(parsed.value, STR("runcmd")), item) {
        struct str line = str_trim(json_str(item));
        if (str_starts_with(line, STR("export ")))
            line = str_trim(str_from(line, strlen("export ")));
        ptrdiff_t at = str_find(line, '=');
        if (at <= 0 || !is_name(str_sub(line, 0, (size_t) at)))
            continue;
        int r = add_variable(a, line, ret, ret_error);
        if (r < 0)
            return r;
    }
    return 0;
}

int instance_read_user_data(struct arena *arena, struct str text, struct instance_words *ret,
                            struct str *ret_error)
{
    *ret = (struct instance_words){0};
    if (str_starts_with(text, STR("#cloud-config")))
        return read_cloud_config(arena, text, ret, ret_error);
    return read_lines(arena, text, ret, ret_error);
}
