/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/pki.h"
