/* SPDX-License-Identifier: Apache-2.0 */
/* Structured log lines to stderr: one event, one line, one write(2), `key=value` with quoted
 * values.
 *
 *     log_info("listening", LOG_STR("address", address), LOG_INT("port", port));
 */
#pragma once

#include "base/str.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT } type;
    struct str s;
    int64_t i;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .s = (v)})
#define LOG_TEXT(k, z) LOG_STR(k, str_of(z))
#define LOG_INT(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_INT, .i = (v)})
/* A negative errno, in words. */
#define LOG_ERRNO(r) LOG_STR("error", str_of(log_errno_text(r)))

/* Lines above this level are not written; the program sets it once at start (default info). */
void log_set_level(enum log_level level);
/* "error", "warning", "info" or "debug"; -EINVAL otherwise. */
int log_set_level_name(struct str name);
/* Called with every line that is written, on the thread that writes it, also within itself: for a
 * process that keeps its own lines. Set before there are threads; NULL: nobody any more. */
void log_set_tap(void (*tap)(void *arg, enum log_level level, struct str line), void *arg);
bool log_is_on(enum log_level level);
const char *log_errno_text(int negative_errno);

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t n_fields);

#define LOG_AT(level, message, ...) \
    do { \
        if (log_is_on(level)) { \
            const struct log_field log_fields[] = {{0}, ##__VA_ARGS__}; \
            log_write(level, message, log_fields + 1, N_ELEMENTS(log_fields) - 1); \
        } \
    } while (0)

#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) LOG_AT(LOG_WARNING, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
