/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of WPA-PSK, as wpa_passphrase derives them. Deriving one takes milliseconds, and a network's
 * is the same for all its devices: the last few are remembered. Nothing else depends on what is.
 * From any thread. */
#pragma once

#include "base/str.h"
#include "pki/pki.h"

/* 0, or negative as pki_wifi_key(). */
int wifi_keys_derive(struct str passphrase, struct str ssid,
                     unsigned char ret_key[static WIFI_KEY_BYTES]);
