/* SPDX-License-Identifier: Apache-2.0 */
/* The services of EVE that run to their end, with the arguments that EVE's scripts give them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "client/client.h"
#include "diag/diag.h"
#include "loop/loop.h"
#include "program/agent.h"

const struct option_spec client_options_table[] = {
    AGENT_OPTIONS,
    {"max-retries", OPTION_INT, "0", "attempts before it gives up with exit code 1; 0: none", 0,
     1000000, 'r'},
    {0},
};

const struct option_spec diag_options_table[] = {
    AGENT_OPTIONS,
    {"json", OPTION_ACTION, NULL, "print JSON", 0, 0, 0},
    {"forever", OPTION_ACTION, NULL, "print again whenever something changes", 0, 0, 'f'},
    {"output", OPTION_TEXT, NULL, "file or pipe instead of the terminal", 0, 0, 'o'},
    {"state-file", OPTION_TEXT, NULL, "keep a snapshot there", 0, 0, 's'},
    {"rows", OPTION_INT, "40", "of the console", 1, 1000, 'r'},
    {"columns", OPTION_INT, "80", "of the console", 20, 1000, 'c'},
    {"print-pac", OPTION_ACTION, NULL, "print the contents of PAC files", 0, 0, 'p'},
    {"fail-dns", OPTION_ACTION, NULL, "as if no name could be looked up", 0, 0, 'D'},
    {"fail-ping", OPTION_ACTION, NULL, "as if the controller did not answer", 0, 0, 'P'},
    {0},
};

static void on_done(void *arg, int exit_code)
{
    agent_end(arg, exit_code);
}

/* A node for one service: `start` makes it, `stop` frees it. */
static int run_single(const struct options *o,
                      int (*start)(struct agent *a, struct node *n, void **),
                      void (*stop)(void *service))
{
    struct agent a;
    struct node *n = NULL;
    void *service = NULL;
    char *error = NULL;
    if (agent_begin(&a, o, &(struct machine_linux_options){0}) < 0)
        return EXIT_FAILURE;
    const struct node_options options = agent_node_options(&a);
    int r = node_new(&options, &n, &error);
    if (r == 0)
        r = start(&a, n, &service);
    if (r < 0)
        a.exit_code = agent_complain(o, r, error);
    else
        agent_run(&a);
    stop(service);
    node_free(n);
    return agent_done(&a);
}

static int start_client(struct agent *a, struct node *n, void **ret)
{
    struct client_options client = {
        .max_attempts = (unsigned) option_int(a->options, "max-retries"),
        .on_done = on_done,
        .arg = a,
    };
    for (size_t i = 0; i < a->options->n_rest; i++) {
        client.registers = client.registers || str_is(str_of(a->options->rest[i]), "selfRegister");
        client.asks_uuid = client.asks_uuid || str_is(str_of(a->options->rest[i]), "getUuid");
    }
    return client_new(n, &client, (struct client **) ret);
}

static void stop_client(void *service)
{
    client_free(service);
}

int client_command(const struct options *o)
{
    for (size_t i = 0; i < o->n_rest; i++) {
        struct str word = str_of(o->rest[i]);
        if (str_is(word, "selfRegister") || str_is(word, "getUuid"))
            continue;
        fprintf(stderr, "%s: client: '%.*s' is neither selfRegister nor getUuid\n",
                o->program->name, STR_ARG(word));
        return EXIT_FAILURE;
    }
    if (o->n_rest == 0) {
        fprintf(stderr, "%s: client: say what it shall do: selfRegister, getUuid\n",
                o->program->name);
        return EXIT_FAILURE;
    }
    return run_single(o, start_client, stop_client);
}

static int start_diag(struct agent *a, struct node *n, void **ret)
{
    const struct options *o = a->options;
    const struct diag_options diag = {
        .is_json = option_is_given(o, "json"),
        .runs_forever = option_is_given(o, "forever"),
        .prints_pac = option_is_given(o, "print-pac"),
        .output = option_is_given(o, "output") ? option_text(o, "output") : NULL,
        .state_file = option_is_given(o, "state-file") ? option_text(o, "state-file") : NULL,
        .rows = (unsigned) option_int(o, "rows"),
        .columns = (unsigned) option_int(o, "columns"),
        .fails_dns = option_is_given(o, "fail-dns"),
        .fails_ping = option_is_given(o, "fail-ping"),
        .on_done = on_done,
        .arg = a,
    };
    return diag_new(n, &diag, (struct diag **) ret);
}

static void stop_diag(void *service)
{
    diag_free(service);
}

int diag_command(const struct options *o)
{
    return run_single(o, start_diag, stop_diag);
}
