/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema.h"
