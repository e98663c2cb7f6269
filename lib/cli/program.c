/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>

bool program_knows(const struct program *p, struct str option)
{
    for (const struct command *c = p->commands; c->name; c++)
        for (const struct option_spec *o = c->options; o->name; o++)
            if (str_is(option, o->name))
                return true;
    return false;
}

static int help(const struct program *p, FILE *to)
{
    fprintf(to, "%s, %s.\n\nUsage: %s COMMAND [options]\n\nCommands:\n", p->name, p->title,
            p->name);
    for (const struct command *c = p->commands; c->name; c++)
        fprintf(to, "  %-13s %s\n", c->name, c->help);
    fprintf(to, "\n`%s COMMAND --help` lists its options.\n", p->name);
    return to == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

int version_command(const struct options *o)
{
    printf("%s %s\n", o->program->name, SETH_VERSION);
    return EXIT_SUCCESS;
}

int program_main(const struct program *p, int argc, char **argv)
{
    if (argc < 2)
        return help(p, stderr);
    struct str name = str_of(argv[1]);
    if (str_is(name, "--help") || str_is(name, "-h") || str_is(name, "help"))
        return help(p, stdout);
    for (const struct command *c = p->commands; c->name; c++) {
        if (!str_is(name, c->name))
            continue;
        ARENA_AUTO a = arena_new();
        struct options options = {0};
        struct str usage =
            arena_printf(a, "%s %s [options]%s\n\n%s", p->name, c->name, c->arguments, c->help);
        int r = options_parse(a, p, c->options, usage.p, argc - 2, argv + 2, &options);
        options.argv = argv;
        return r != 0 ? (r < 0 ? EXIT_FAILURE : EXIT_SUCCESS) : c->run(&options);
    }
    fprintf(stderr, "%s: unknown command '%s'\n\n", p->name, argv[1]);
    return help(p, stderr);
}
