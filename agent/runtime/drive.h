/* SPDX-License-Identifier: Apache-2.0 */
/* The medium from which cloud-init of a virtual machine reads what it is to do: an ISO 9660 file
 * system called "cidata" with user-data and meta-data. */
#pragma once

#include "base/str.h"

/* Blocks. *ret_error (heap) */
int drive_write(const char *path, struct str user_data, struct str meta_data, char **ret_error);
