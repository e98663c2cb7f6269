/* SPDX-License-Identifier: Apache-2.0 */
/* What is told to a local profile server, as functions of the reporter's world. */
#pragma once

#include "eve/profile.pb-c.h"
#include "report/make.h"

struct zedagent;

/* Ports of one configuration, and applications, that are told about. */
#define LPS_MAX_PORTS 256
#define LPS_MAX_APPS 4096

Eve__Profile__LocalAppInfoList *lps_app_info(struct world *w, const struct zedagent *z);
Eve__Profile__LocalDevInfo *lps_device_info(struct world *w, const struct zedagent *z);
Eve__Profile__AppBootInfoList *lps_boot_info(struct world *w, const struct zedagent *z);
/* NULL: nim is about to change it. */
Eve__Profile__RadioStatus *lps_radio_status(struct world *w, const struct zedagent *z);
/* NULL: nobody knows where the device is. */
Eve__Info__ZInfoLocation *lps_location(struct world *w);
/* NULL: no configuration is in use. The error is of what the server ordered last. network_info.c */
Eve__Profile__NetworkInfo *lps_network_info(struct world *w, const struct zedagent *z,
                                            struct str error);
