/* SPDX-License-Identifier: Apache-2.0 */
/* What the option tables say, in the forms of the shell's completion and of man. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/program.h"

static const struct command *find(const struct program *p, const char *name)
{
    for (const struct command *c = p->commands; c->name; c++)
        if (str_is(str_of(name), c->name))
            return c;
    return NULL;
}

int completion_command(const struct options *o)
{
    const struct command *c = o->n_rest ? find(o->program, o->rest[0]) : NULL;
    if (o->n_rest == 0)
        for (c = o->program->commands; c->name; c++)
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

static void put_command(const struct program *p, const struct command *c)
{
    printf(".SS \"");
    put(p->name);
    printf(" ");
    put(c->name);
    printf("%s\"\n\\&", c->arguments);
    put(c->help);
    printf(".\n");
    for (const struct option_spec *s = c->options; s->name; s++)
        put_option(s);
}

static void put_head(const struct program *p)
{
    printf(".TH ");
    for (const char *c = p->name; *c; c++)
        (void) putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf(" 8 \"\" \"%s %s\" \"System Administration\"\n.SH NAME\n", p->name, SETH_VERSION);
    put(p->name);
    printf(" \\- %s\n.SH SYNOPSIS\n.B ", p->title);
    put(p->name);
    printf("\n.I COMMAND\n[options]\n.SH DESCRIPTION\n%s", p->description);
}

int manual_command(const struct options *o)
{
    const struct program *p = o->program;
    put_head(p);
    printf(".SH COMMANDS\n");
    for (const struct command *c = p->commands; c->name; c++)
        put_command(p, c);
    printf(".SH FILES\n%s.SH SIGNALS\n%s", p->files, p->signals);
    return EXIT_SUCCESS;
}
