/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

static atomic_int threshold = LOG_INFO;

static const char *const level_names[] = {
    [LOG_ERROR] = "error",
    [LOG_WARNING] = "warning",
    [LOG_INFO] = "info",
    [LOG_DEBUG] = "debug",
};

void log_set_level(enum log_level level)
{
    atomic_store(&threshold, (int) level);
}

int log_set_level_name(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(level_names); i++) {
        if (str_is(name, level_names[i])) {
            log_set_level((enum log_level) i);
            return 0;
        }
    }
    return -EINVAL;
}

static struct {
    void (*fn)(void *arg, enum log_level level, struct str line);
    void *arg;
} listener;

void log_set_tap(void (*tap)(void *arg, enum log_level level, struct str line), void *arg)
{
    listener.fn = tap;
    listener.arg = arg;
}

bool log_is_on(enum log_level level)
{
    return (int) level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

const char *log_errno_text(int negative_errno)
{
    static _Thread_local char text[128];
    return strerror_r(-negative_errno, text, sizeof(text));
}

/* Control bytes are escaped, so that nothing from outside can forge a line. */
static void append_quoted(struct buf *b, struct str s)
{
    buf_append_char(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(b, "\\x%02x", c);
        else
            buf_append_char(b, (char) c);
    }
    buf_append_char(b, '"');
}

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t n_fields)
{
    BUF_AUTO line = {0};
    char now[CLOCK_MICROS_BYTES];
    clock_format_micros(clock_system.wall_us(&clock_system), now);
    buf_printf(&line, "time=%s level=%s msg=", now, level_names[level]);
    append_quoted(&line, str_of(message));
    for (size_t i = 0; i < n_fields; i++) {
        buf_printf(&line, " %s=", fields[i].key);
        if (fields[i].type == LOG_FIELD_INT)
            buf_printf(&line, "%" PRId64, fields[i].i);
        else
            append_quoted(&line, fields[i].s);
    }
    buf_append_char(&line, '\n');
    /* A log that cannot be written has nowhere to complain. */
    ssize_t ignored = write(STDERR_FILENO, line.p, line.n);
    (void) ignored;
    if (listener.fn)
        listener.fn(listener.arg, level, str_sub(buf_str(&line), 0, line.n - 1));
}
