/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when somebody is first asked: with what it brings along it is a third of an idle
 * server's memory, and most servers ask nobody. */
#pragma once

#include <stdbool.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* The functions that are used, by their names without curl_. */
#define LIBCURL_FUNCTIONS(X) \
    X(global_init) \
    X(easy_init) \
    X(easy_reset) \
    X(easy_setopt) \
    X(easy_getinfo) \
    X(easy_perform) \
    X(easy_strerror) \
    X(easy_cleanup) \
    X(slist_append) \
    X(slist_free_all) \
    X(url) \
    X(url_get) \
    X(url_set) \
    X(url_strerror) \
    X(url_cleanup) \
    X(free)

#define LIBCURL_MEMBER(name) __typeof__(&curl_##name) name;
extern struct libcurl {
    LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
} libcurl;
#undef LIBCURL_MEMBER

/* Before any of them is called. From any thread; false: it cannot be loaded, and *ret_why says
 * why. */
bool libcurl_load(const char **ret_why);
