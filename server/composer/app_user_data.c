/* SPDX-License-Identifier: Apache-2.0 */
/* What an application is told when it starts: its user data, or its environment. Always
 * encrypted, because nobody can say what is in it. */
#include <errno.h>

#include "base/base64.h"
#include "composer/composer_internal.h"

#define USER_DATA_KEY "userData"
#define USER_DATA_MAX ((size_t) 700 * 1024) /* so that its base64 is below 1 MB */

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '=' || s.p[i] == '\n' || s.p[i] == '\r' || s.p[i] == 0)
            return false;
    return s.n > 0;
}

static int problem(struct composition *c, const struct app *app, struct str field, struct str why)
{
    problem_add(c, app->object, field, "%.*s", STR_ARG(why));
    return -EINVAL;
}

/* The value of a variable, from where it comes. */
static int find_value(struct composition *c, struct app *app, const struct json *variable,
                      struct str *ret)
{
    const struct json *from = json_get(variable, STR("valueFrom"));
    const struct json *ref = json_get(from, STR("secretKeyRef"));
    const bool is_secret = json_is(ref, JSON_OBJECT);
    if (!is_secret)
        ref = json_get(from, STR("configMapKeyRef"));
    if (!json_is(ref, JSON_OBJECT)) {
        *ret = json_get_str(variable, STR("value"));
        return 0;
    }
    const struct str name = json_get_str(ref, STR("name"));
    const struct json *object = set_find(is_secret ? &c->in->secrets : &c->in->config_maps, name);
    if (!object || !object_data(c->arena, object, json_get_str(ref, STR("key")), ret))
        return problem(c, app, STR("spec.containers"),
                       arena_printf(c->arena, "env: %s '%.*s' has no key '%.*s'",
                                    is_secret ? "Secret" : "ConfigMap", STR_ARG(name),
                                    STR_ARG(json_get_str(ref, STR("key")))));
    if (is_secret) {
        app->user_data_source = object;
        app->user_data_field = STR("data");
    }
    return 0;
}

static int add_variable(struct composition *c, struct app *app, const struct json *variable,
                        struct buf *to)
{
    const struct str name = json_get_str(variable, STR("name"));
    struct str value;
    if (find_value(c, app, variable, &value) < 0)
        return -EINVAL;
    if (!is_name(name) || str_find(value, '\n') >= 0 || !str_is_utf8(value))
        return problem(
            c, app, STR("spec.containers"),
            arena_printf(c->arena, "env: '%.*s' does not fit one line of text", STR_ARG(name)));
    buf_append_str(to, name);
    buf_append_char(to, '=');
    buf_append_str(to, value);
    buf_append_char(to, '\n');
    return 0;
}

static int environment(struct composition *c, struct app *app, struct str *ret)
{
    BUF_AUTO lines = {0};
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), container)
        JSON_FOR_EACH_ITEM (json_get(container, STR("env")), variable)
            if (add_variable(c, app, variable, &lines) < 0)
                return -EINVAL;
    if (lines.n && app->tree.message->iformat != EVE__CONFIG__FORMAT__CONTAINER)
        return problem(c, app, STR("spec.containers"),
                       STR("env: only containers have an environment; use userData"));
    *ret = arena_str(c->arena, buf_str(&lines));
    return 0;
}

static int find_text(struct composition *c, struct app *app, struct str *ret)
{
    const struct str name = json_get_str(app->spec, STR("userDataSecret"));
    app->user_data_source = app->object;
    app->user_data_field = STR("spec.userData");
    *ret = json_get_str(app->spec, STR("userData"));
    if (name.n == 0 && ret->n == 0)
        app->user_data_field = STR("spec.containers");
    if (name.n == 0)
        return 0;
    if (ret->n)
        return problem(c, app, STR("spec.userDataSecret"), STR("userData is given, too"));
    app->user_data_source = set_find(&c->in->secrets, name);
    app->user_data_field = STR("data[" USER_DATA_KEY "]");
    if (!app->user_data_source ||
        !object_data(c->arena, app->user_data_source, STR(USER_DATA_KEY), ret))
        return problem(
            c, app, STR("spec.userDataSecret"),
            arena_printf(c->arena, "Secret '%.*s' has no key " USER_DATA_KEY, STR_ARG(name)));
    return 0;
}

static int seal(struct composition *c, struct app *app)
{
    Eve__Common__EncryptionBlock *block = MESSAGE_NEW(c->arena, eve__common__encryption_block);
    struct str why;
    block->protecteduserdata =
        arena_strz(c->arena, base64_encode(c->arena, app->user_data, BASE64_STANDARD));
    if (cipher_part(c, "application", app->uuid, block, &app->sealed, &why) < 0)
        return problem(c, app, STR("spec.userData"),
                       arena_printf(c->arena, "user data: %.*s", STR_ARG(why)));
    app->message->cipherdata = (Eve__Common__CipherBlock *) (uintptr_t) app->sealed.block;
    return 0;
}

int app_user_data(struct composition *c, struct app *app)
{
    struct str text, variables;
    if (find_text(c, app, &text) < 0 || environment(c, app, &variables) < 0)
        return -EINVAL;
    if (text.n && variables.n)
        return problem(c, app, STR("spec.containers"),
                       STR("env: it cannot be given beside userData"));
    app->user_data = text.n ? text : variables;
    if (app->user_data.n > USER_DATA_MAX)
        return problem(c, app, STR("spec.userData"),
                       arena_printf(c->arena, "at most %zu bytes", USER_DATA_MAX));
    return app->user_data.n ? seal(c, app) : 0;
}
