/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a command: one table with default and help; a flag beats the environment
 * (SETH_<NAME>, by the name of the program), which beats the file given by --config (YAML, names as
 * keys), which beats the default. */
#pragma once

#include "base/arena.h"

enum option_type {
    OPTION_TEXT,
    OPTION_INT,
    OPTION_LIST,  /* comma-separated, may be repeated */
    OPTION_ACTION /* has no value: what is to be done this once, so only a flag can say it */
};

struct option_spec {
    const char *name; /* "bind-address" */
    enum option_type type;
    const char *fallback; /* the default, as text; NULL: none */
    const char *help;
    int64_t min, max; /* of OPTION_INT */
    char letter;      /* -f as well; 0: none */
};

struct program;

struct options {
    const struct program *program;
    char **argv;                     /* of the whole program */
    const struct option_spec *specs; /* ends with an entry without a name */
    const char **values;             /* one per spec, in the arena; NULL: not set and no default */
    bool *is_given;                  /* by the layer that is being read */
    const char *const *rest;         /* arguments that are no options */
    size_t n_rest;
};

/* Prints what is wrong to stderr and returns -EINVAL; --help prints the help to stdout and
 * returns 1. One file serves all commands of the program: names in it that another knows are
 * skipped. */
int options_parse(struct arena *a, const struct program *program, const struct option_spec *specs,
                  const char *usage, int argc, char **argv, struct options *ret);
const char *option_text(const struct options *o, const char *name);
int64_t option_int(const struct options *o, const char *name);
bool option_is_given(const struct options *o, const char *action);
