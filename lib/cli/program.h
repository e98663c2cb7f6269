/* SPDX-License-Identifier: Apache-2.0 */
/* A program as data: its commands, what runs, what --help, the completion and the manual say. */
#pragma once

#include "cli/options.h"

struct command {
    const char *name, *arguments, *help;
    const struct option_spec *options;
    int (*run)(const struct options *o);
};

struct program {
    const char *name;                          /* "seth" */
    const char *title;                         /* "the controller for fleets of EVE devices" */
    const char *description, *files, *signals; /* of the manual, in roff */
    const struct command *commands;            /* ends with an entry without a name */
};

/* Runs the command that the arguments name; the exit code. */
int program_main(const struct program *p, int argc, char **argv);
/* Whether some command has this option. */
bool program_knows(const struct program *p, struct str option);

/* Commands for every program's table. */
/* The words that can follow: commands, or the options of a command. For the shell's completion. */
int completion_command(const struct options *o);
/* The manual page, for man -l or to be installed. */
int manual_command(const struct options *o);
int version_command(const struct options *o);
