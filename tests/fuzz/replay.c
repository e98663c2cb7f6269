/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of a corpus directory; crashes and sanitizer reports are the
 * failures. An empty or missing corpus fails: it would prove nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *directory, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return -1;
    FILE *f = fopen(path, "rb");
    free(path);
    if (!f)
        return -1;
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0, got = 0;
    do {
        if (size == capacity)
            data = realloc(data, capacity = capacity ? capacity * 2 : 4096);
        if (!data)
            abort();
        got = fread(data + size, 1, capacity - size, f);
        size += got;
    } while (got > 0);
    (void) fclose(f);
    (void) LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
    if (!d) {
        fprintf(stderr, "usage: %s <corpus directory>\n", argv[0]);
        return 2;
    }
    size_t n_files = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        if (run_file(argv[1], e->d_name) < 0) {
            perror(e->d_name);
            return 1;
        }
        n_files++;
    }
    (void) closedir(d);
    printf("%zu inputs\n", n_files);
    return n_files == 0;
}
