/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `seth` as data: what runs, what --help, the completion and the manual say. */
#pragma once

#include "options.h"

struct command {
    const char *name, *arguments, *help;
    const struct option_spec *options;
    int (*run)(const struct options *o);
};
/* Ends with an entry without a name. */
extern const struct command commands[];

/* Options of commands that only need to know where the data is. */
extern const struct option_spec data_options[];

int health_command(const struct options *o);
/* The words that can follow: commands, or the options of a command. For the shell's completion. */
int completion_command(const struct options *o);
/* The manual page, for man -l or to be installed. */
int manual_command(const struct options *o);
