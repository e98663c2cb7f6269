/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"
