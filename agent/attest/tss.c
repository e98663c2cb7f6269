/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/tss.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/lang.h"
#include "base/log.h"

static const char *const names[TSS_LIBRARIES] = {
    [TSS_ESYS] = "libtss2-esys.so.0",
    [TSS_MU] = "libtss2-mu.so.0",
    [TSS_TCTI] = "libtss2-tctildr.so.0",
};

static bool open_libraries(struct tss *s)
{
    for (size_t i = 0; i < TSS_LIBRARIES; i++) {
        s->libraries[i] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!s->libraries[i])
            return false;
    }
    return true;
}

static bool find_functions(struct tss *s)
{
    /* POSIX has a pointer to a function in one to data. */
#define TSS_FIND(library, function) \
    *(void **) &s->function = dlsym(s->libraries[library], #function); \
    if (!s->function) \
        return false;
    TSS_FUNCTIONS(TSS_FIND)
#undef TSS_FIND
    return true;
}

int tss_load(struct tss *s)
{
    if (s->Esys_Initialize)
        return 0;
    if (open_libraries(s) && find_functions(s))
        return 0;
    log_debug("tpm2-tss", LOG_TEXT("problem", dlerror()));
    tss_unload(s);
    return -ELIBACC;
}

void tss_unload(struct tss *s)
{
    for (size_t i = 0; i < TSS_LIBRARIES; i++)
        if (s->libraries[i])
            (void) dlclose(s->libraries[i]);
    *s = (struct tss){0};
}
