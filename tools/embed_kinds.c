/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the files under kinds/ into one C file: embed_kinds <output.c> <protobuf.yaml>
 * <manifest.yaml>... Files below bootstrap/ are objects, all others kinds. Runs at build time; a
 * file that is no YAML stops the build with its name. */
#include <stdio.h>
#include <stdlib.h>

#include "json/yaml.h"

#define MANIFEST_MAX_BYTES (4u << 20)
#define LITERAL_CHUNK 100 /* bytes per line of the generated string */

static bool read_file(const char *path, struct buf *text)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n;
    do {
        n = fread(buf_reserve(text, 65536), 1, 65536, f);
        text->n += n;
    } while (n > 0 && text->n <= MANIFEST_MAX_BYTES);
    const bool ok = !ferror(f) && text->n <= MANIFEST_MAX_BYTES;
    (void) fclose(f);
    return ok;
}

/* As adjacent C string literals; octal escapes end after three digits, so nothing that follows can
 * join them. */
static void write_literal(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (i % LITERAL_CHUNK == 0)
            buf_append_str(out, i ? STR("\"\n    \"") : STR("\n    \""));
        const unsigned char c = (unsigned char) text.p[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f || c == '?')
            buf_printf(out, "\\%03o", c);
        else
            buf_append_char(out, (char) c);
    }
    buf_append_str(out, STR("\""));
}

/* The JSON of a file as STR("..."). */
static bool embed(struct buf *out, const char *path)
{
    BUF_AUTO text = {0};
    if (!read_file(path, &text)) {
        fprintf(stderr, "embed_kinds: cannot read %s\n", path);
        return false;
    }
    ARENA_AUTO a = arena_new();
    struct json_parse_result parsed;
    if (yaml_parse(a, buf_str(&text), &parsed) < 0) {
        fprintf(stderr, "embed_kinds: %s: %.*s\n", path, STR_ARG(parsed.error));
        return false;
    }
    if (parsed.duplicates) {
        fprintf(stderr, "embed_kinds: %s: %.*s stands twice\n", path,
                STR_ARG(parsed.duplicates->path));
        return false;
    }
    buf_append_str(out, STR("STR("));
    write_literal(out, json_text(a, parsed.value));
    buf_append_str(out, STR(")"));
    return true;
}

/* "core/configmaps.yaml" of a path that may be relative to anything. */
static struct str shown_path(const char *path)
{
    struct str whole = str_of(path);
    ptrdiff_t file = str_find_last(whole, '/');
    ptrdiff_t group = file < 0 ? -1 : str_find_last(str_sub(whole, 0, (size_t) file), '/');
    return str_from(whole, (size_t) (group + 1));
}

/* The array of that name, with the files below bootstrap/ or with all others. */
static bool embed_files(struct buf *out, const char *array, bool is_bootstrap, char **argv)
{
    int n = 0;
    buf_printf(out, ";\nconst struct kinds_manifest %s[] = {\n", array);
    for (int i = 3; argv[i]; i++) {
        struct str shown = shown_path(argv[i]);
        if (str_starts_with(shown, STR("bootstrap/")) != is_bootstrap)
            continue;
        buf_printf(out, "    {\"%.*s\", ", STR_ARG(shown));
        if (!embed(out, argv[i]))
            return false;
        buf_append_str(out, STR("},\n"));
        n++;
    }
    buf_printf(out, "};\nconst size_t n_%s = %d", array, n);
    return true;
}

static bool write_file(const char *path, struct str text)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    const bool ok = fwrite(text.p, 1, text.n, f) == text.n;
    return (fclose(f) == 0) && ok;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed_kinds <output.c> <protobuf.yaml> "
                        "<manifest.yaml>...\n");
        return EXIT_FAILURE;
    }
    BUF_AUTO out = {0};
    buf_append_str(&out, STR("/* SPDX-License-Identifier: Apache-2.0 */\n"
                             "/* Generated from kinds/ by tools/embed_kinds.c. */\n"
                             "#include \"kinds/kinds.h\"\n\n"
                             "const struct str kinds_protobuf = "));
    if (!embed(&out, argv[2]))
        return EXIT_FAILURE;
    if (!embed_files(&out, "kinds_manifests", /* is_bootstrap= */ false, argv) ||
        !embed_files(&out, "kinds_bootstrap", /* is_bootstrap= */ true, argv))
        return EXIT_FAILURE;
    buf_append_str(&out, STR(";\n"));
    if (!write_file(argv[1], buf_str(&out))) {
        fprintf(stderr, "embed_kinds: cannot write %s\n", argv[1]);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
