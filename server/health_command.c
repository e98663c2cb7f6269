/* SPDX-License-Identifier: Apache-2.0 */
/* `seth health`: is the server of this data directory ready? For containers and scripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "commands.h"
#include "fetch/fetch.h"
#include "kubeconfig.h"

#define HEALTH_TIMEOUT_MS 4000
#define HEALTH_MAX_BYTES ((size_t) 64 * 1024)

int health_command(const struct options *o)
{
    ARENA_AUTO a = arena_new();
    char *error = NULL;
    struct str root = STR_NONE, why = STR("it is not ready");
    const char *data_dir = option_text(o, "data-dir");
    struct fetch_answer answer = {0};
    struct fetch_client *client = fetch_client_new();
    int r = identity_root(a, data_dir, &root, &error);
    if (r == 0)
        r = fetch(client, a,
                  &(struct fetch_request){
                      .method = "GET",
                      .url = arena_printf(a, "%s/readyz?verbose", kubeconfig_server(a, data_dir)),
                      .ca_pem = root,
                      .timeout_ms = HEALTH_TIMEOUT_MS,
                      .max_bytes = HEALTH_MAX_BYTES},
                  &answer, &why);
    else
        why = error ? str_of(error) : str_of(strerror(-r));
    bool is_ready = r == 0 && answer.status == 200;
    if (is_ready)
        printf("ok\n");
    else
        fprintf(stderr, "seth: %.*s\n%.*s", STR_ARG(why), STR_ARG(answer.body));
    fetch_client_free(client);
    mem_free(error);
    return is_ready ? EXIT_SUCCESS : EXIT_FAILURE;
}
