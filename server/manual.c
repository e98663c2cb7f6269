/* SPDX-License-Identifier: Apache-2.0 */
/* What the option tables say, in the forms of the shell's completion and of man. */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"

static const struct command *find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (str_is(str_of(name), c->name))
            return c;
    return NULL;
}

int completion_command(const struct options *o)
{
    const struct command *c = o->n_rest ? find(o->rest[0]) : NULL;
    if (o->n_rest == 0)
        for (c = commands; c->name; c++)
            printf("%s\n", c->name);
    else if (c) {
        for (const struct option_spec *s = c->options; s->name; s++)
            printf("--%s\n", s->name);
        printf("--help\n");
    }
    return EXIT_SUCCESS;
}

/* In roff a line must not begin with a dot or an apostrophe, and a hyphen is written \-. */
static void put(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '-')
            (void) fputs("\\-", stdout);
        else if (*p == '\\')
            (void) fputs("\\e", stdout);
        else
            (void) putchar(*p);
    }
}

static void put_option(const struct option_spec *s)
{
    printf(".TP\n.BI \\-\\-");
    put(s->name);
    if (s->type != OPTION_ACTION)
        printf(" \" %s\"", s->type == OPTION_INT ? "NUMBER" : "TEXT");
    printf("\n\\&");
    put(s->help);
    if (s->fallback && s->fallback[0]) {
        printf(" (default: ");
        put(s->fallback);
        printf(")");
    }
    printf("\n");
}

static void put_command(const struct command *c)
{
    printf(".SS \"seth ");
    put(c->name);
    printf("%s\"\n\\&", c->arguments);
    put(c->help);
    printf(".\n");
    for (const struct option_spec *s = c->options; s->name; s++)
        put_option(s);
}

int manual_command(const struct options *o)
{
    (void) o;
    printf(
        ".TH SETH 8 \"\" \"seth %s\" \"System Administration\"\n"
        ".SH NAME\nseth \\- the controller for fleets of EVE devices\n"
        ".SH SYNOPSIS\n.B seth\n.I COMMAND\n[options]\n"
        ".SH DESCRIPTION\nA server of the Kubernetes API over an embedded store, and the commands "
        "that look after it.\nEvery option may also be set in the environment, as\n"
        ".B SETH_NAME_OF_OPTION\n(upper case, underscores), or in the YAML file of\n"
        ".BR \\-\\-config .\nA flag beats the environment, which beats the file.\n"
        ".SH COMMANDS\n",
        SETH_VERSION);
    for (const struct command *c = commands; c->name; c++)
        put_command(c);
    printf(
        ".SH FILES\n.TP\n.I /var/lib/seth\nthe data directory: objects.db, pki/, "
        "admin.kubeconfig\n.TP\n.I /etc/seth/seth.yaml\noptions of the service\n"
        ".SH SIGNALS\n.TP\n.B SIGTERM\nends the server: it becomes unready, lets requests finish, "
        "ends watches.\n.TP\n.B SIGHUP\nreads certificates, tokens and policies again.\n");
    return EXIT_SUCCESS;
}
