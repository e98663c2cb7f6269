/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/libcurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define LIBCURL_NAME "libcurl.so.4"

struct libcurl libcurl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *why; /* NULL: it is there */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define LIBCURL_ENTRY(name) {"curl_" #name, offsetof(struct libcurl, name)},
    LIBCURL_FUNCTIONS(LIBCURL_ENTRY)
#undef LIBCURL_ENTRY
};

static void load(void)
{
    void *library = dlopen(LIBCURL_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        why = LIBCURL_NAME " cannot be loaded; install the package libcurl4";
        return;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            why = LIBCURL_NAME " is too old";
            return;
        }
        memcpy((char *) &libcurl + functions[i].offset, &function, sizeof(function));
    }
    if (libcurl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        why = LIBCURL_NAME " cannot be initialized";
}

bool libcurl_load(const char **ret_why)
{
    (void) pthread_once(&once, load);
    *ret_why = why;
    return !why;
}
