/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http.h"
