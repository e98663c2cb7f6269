/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"
