/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody near the device may order, a local profile server (lps/) or the operator console:
 * which profile is in force, that applications or the device start again, silence of radios, in
 * which order applications boot, how ports are configured. It is on disk before it is obeyed, and
 * in force again after a restart. Who asks for it, how, and whether to be believed is not decided
 * here. */
#pragma once

#include "eve/profile.pb-c.h"
#include "zedagent/zedagent.h"

/* Longer names of profiles are not taken. */
#define LOCAL_MAX_PROFILE_BYTES 1024
/* Commands and boot orders of one message; what is beyond is left out. */
#define LOCAL_MAX_APPS 1024

/* As the configuration has it; strings live until the next event. */
struct local_server {
    struct str address; /* host[:port]; empty: there is none */
    struct str token;
};
struct local_server zedagent_local_server(const struct zedagent *z);

/* Empty: the controller's own counts. */
void zedagent_take_profile(struct zedagent *z, struct str profile);
/* Each application's once: a command is known by what it is and its timestamp. */
void zedagent_take_app_commands(struct zedagent *z, const Eve__Profile__LocalAppCmdList *list);
/* The timestamp of the last command that was carried out, 0: none. */
uint64_t zedagent_app_command_done(const struct zedagent *z, struct str app);
/* Once for each timestamp. */
void zedagent_take_device_command(struct zedagent *z, const Eve__Profile__LocalDevCmd *command);
uint64_t zedagent_device_command_done(const struct zedagent *z);
/* Applications that the list does not name have the controller's order again. */
void zedagent_take_boot_orders(struct zedagent *z, const Eve__Profile__AppBootConfigList *list);

/* How all the ports are configured that are not the controller's own to say; what it does not name
 * is the controller's again. `configs` is the DevicePortConfigList of now. Words, in the arena: all
 * of it is refused and why, absent: it is taken. */
struct str zedagent_take_network(struct zedagent *z, struct arena *a,
                                 const Eve__Profile__LocalNetworkConfig *order,
                                 const struct json *configs);
void zedagent_forget_network(struct zedagent *z);
/* DevicePortConfig of what is in force; NULL: nothing is. */
struct json *zedagent_local_network(const struct zedagent *z, struct arena *a);

struct local_radio {
    bool is_silent, is_changing; /* changing: nim has not said that it is so */
    int64_t requested_us;        /* wall time; 0: never */
};
void zedagent_take_radio_silence(struct zedagent *z, bool is_silent);
struct local_radio zedagent_radio(const struct zedagent *z);

/* The published configurations of applications and network instances. */
struct publication *zedagent_app_configs(const struct zedagent *z);
struct publication *zedagent_network_instances(const struct zedagent *z);
