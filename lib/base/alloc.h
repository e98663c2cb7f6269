/* SPDX-License-Identifier: Apache-2.0 */
/* The heap. Running out of memory aborts here and nowhere else, so callers never see NULL. */
#pragma once

#include "base/lang.h"

void *mem_alloc(size_t n_bytes);
void *mem_zalloc(size_t n_bytes);
void *mem_realloc(void *p, size_t n_bytes);
/* n_items * item_bytes, checked for overflow. */
void *mem_realloc_array(void *p, size_t n_items, size_t item_bytes);
void *mem_dup(const void *p, size_t n_bytes);
/* A NUL-terminated copy. */
char *mem_strdup(const char *s);
void mem_free(void *p);

#define NEW(type) ((type *) mem_zalloc(sizeof(type)))
