/* SPDX-License-Identifier: Apache-2.0 */
#include "program/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/str.h"

#define MAX_LINE_BYTES 512

/* A range of addresses as /proc/self/smaps describes it in its first line. */
struct mapping {
    unsigned long begin, end, inode;
    char rights[5];
};

static bool is_mapping(const char *line, struct mapping *ret)
{
    struct mapping m = {0};
    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &m.begin, &m.end, m.rights, &m.inode) != 4)
        return false;
    *ret = m;
    return true;
}

/* Whether nothing is in it but what is in the file: what was relocated or written is not there
 * twice. */
static bool is_as_its_file(const struct mapping *m, unsigned long anonymous_kb)
{
    return m->inode != 0 && m->rights[1] != 'w' && m->rights[3] == 'p' && anonymous_kb == 0;
}

static void drop_pages(FILE *smaps)
{
    char line[MAX_LINE_BYTES];
    struct mapping m = {0};
    unsigned long anonymous_kb;
    while (fgets(line, sizeof(line), smaps)) {
        if (is_mapping(line, &m) || sscanf(line, "Anonymous: %lu kB", &anonymous_kb) != 1)
            continue;
        if (is_as_its_file(&m, anonymous_kb))
            (void) madvise((void *) m.begin, m.end - m.begin, MADV_DONTNEED);
        m = (struct mapping){0};
    }
}

void memory_hand_back(void)
{
    (void) malloc_trim(0);
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (!smaps)
        return;
    drop_pages(smaps);
    (void) fclose(smaps);
}
