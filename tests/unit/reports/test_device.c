/* SPDX-License-Identifier: Apache-2.0 */
#include "derive_fixture.h"

#define DEVICE \
    "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Device'," \
    "'metadata':{'namespace':'n','name':'edge-7','uid':'u1','generation':2},'spec':{}," \
    "'status':{'uuid':'0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab'}}"
#define WITH_TARGET \
    "{'metadata':{'namespace':'n','name':'edge-7','uid':'u1'}," \
    "'spec':{'eve-os-version':'14.0.0-kvm-amd64'},'status':{}}"

static Eve__Info__ZInfoDevice device_message(void)
{
    Eve__Info__ZInfoDevice m;
    eve__info__zinfo_device__init(&m);
    m.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_ONLINE;
    return m;
}

static Eve__Info__ZInfoDevSW *software(struct arena *a, const char *version, int user_status)
{
    Eve__Info__ZInfoDevSW *sw = ARENA_NEW(a, Eve__Info__ZInfoDevSW);
    eve__info__zinfo_dev_sw__init(sw);
    sw->shortversion = arena_strz(a, str_of(version));
    sw->userstatus = (Eve__Info__BaseOsStatus) user_status;
    return sw;
}

TEST(the_machine_is_described_as_a_node_is)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    Eve__Info__ZInfoManufacturer maker;
    Eve__Info__ZInfoNetwork nets[2], *list[] = {&nets[0], &nets[1]};
    char *inner[] = {(char *) "192.168.1.5"}, *outer[] = {(char *) "10.0.0.7"};
    begin(&f, DEVICE);
    Eve__Info__ZInfoDevSW *sw[] = {software(f.arena, "13.4.0-kvm-amd64", 4)};
    eve__info__zinfo_manufacturer__init(&maker);
    maker.manufacturer = (char *) "ACME";
    maker.productname = (char *) "Box";
    maker.serialnumber = (char *) "S-1";
    maker.uuid = (char *) "4c4c4544-0000-1111-2222-333333333333";
    maker.biosversion = (char *) "1.2";
    for (int i = 0; i < 2; i++)
        eve__info__zinfo_network__init(&nets[i]);
    nets[0].ipaddrs = inner;
    nets[1].ipaddrs = outer;
    nets[0].n_ipaddrs = nets[1].n_ipaddrs = 1;
    nets[1].uplink = true;
    m.machinearch = (char *) "x86_64";
    m.ncpu = 4;
    m.memory = 8192;
    m.storage = 100 * 1024;
    m.minfo = &maker;
    m.network = list;
    m.n_network = 2;
    m.hostname = (char *) "edge-host";
    m.swlist = sw;
    m.n_swlist = 1;
    m.boottime = time_of(f.arena, NOW_US - 3600 * SECOND_US);
    struct device_word w = derive_device(&f.d, &m);
    assert_int_equal(w.state, EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_ONLINE);
    assert_str(json_text(f.arena, json_get(f.d.status, STR("addresses"))),
               "[{\"type\":\"InternalIP\",\"address\":\"10.0.0.7\"},{\"type\":\"InternalIP\","
               "\"address\":\"192.168.1.5\"},{\"type\":\"Hostname\",\"address\":\"edge-host\"}]");
    assert_str(json_text(f.arena, json_get(f.d.status, STR("capacity"))),
               "{\"cpu\":\"4\",\"memory\":\"8Gi\",\"ephemeral-storage\":\"100Gi\"}");
    assert_str(json_text(f.arena, json_get(f.d.status, STR("allocatable"))),
               "{\"cpu\":\"4\",\"memory\":\"8Gi\",\"ephemeral-storage\":\"100Gi\"}");
    assert_str(text_at(&f, "nodeInfo", "architecture"), "amd64");
    assert_str(text_at(&f, "nodeInfo", "osImage"), "EVE-OS 13.4.0-kvm-amd64");
    assert_str(text_at(&f, "nodeInfo", "hypervisor"), "kvm");
    assert_str(text_at(&f, "nodeInfo", "manufacturer"), "ACME");
    assert_str(text_at(&f, "nodeInfo", "serialNumber"), "S-1");
    assert_str(text_at(&f, "nodeInfo", "systemUUID"), "4c4c4544-0000-1111-2222-333333333333");
    assert_str(text_at(&f, "nodeInfo", "bootID"), "2027-01-15T07:00:00Z");
    assert_str(text_at(&f, "eve-os-version", NULL), "13.4.0-kvm-amd64");
    assert_condition(&f, "Healthy", "True", "NoErrors", "");
    assert_int_equal(f.d.n_events, 0);
    store(&f);
    (void) derive_device(&f.d, &m);
    assert_false(derivation_has_changed(&f.d));
    end(&f);
}

TEST(a_boot_is_told_with_its_reason)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, DEVICE);
    m.boottime = time_of(f.arena, NOW_US);
    (void) derive_device(&f.d, &m);
    store(&f);
    m.boottime = time_of(f.arena, NOW_US + 20 * SECOND_US); /* its clock was set */
    (void) derive_device(&f.d, &m);
    assert_int_equal(f.d.n_events, 0);
    m.boottime = time_of(f.arena, NOW_US + 1000 * SECOND_US);
    m.last_boot_reason = EVE__INFO__BOOT_REASON__BOOT_REASON_WATCHDOG_HUNG;
    m.lastrebootreason = (char *) "zedagent hung";
    (void) derive_device(&f.d, &m);
    assert_event(&f, 0, true, "Rebooted",
                 "BOOT_REASON_WATCHDOG_HUNG: zedagent hung; booted at 2027-01-15T08:16:40Z");
    store(&f);
    m.boottime = time_of(f.arena, NOW_US + 5000 * SECOND_US);
    m.last_boot_reason = EVE__INFO__BOOT_REASON__BOOT_REASON_REBOOT_CMD;
    (void) derive_device(&f.d, &m);
    assert_event(&f, 0, false, "Rebooted", NULL);
    end(&f);
}

/* ---- base OS -------------------------------------------------------------------------------- */

TEST(an_update_is_followed_through_its_states)
{
    static const struct {
        int user_status, sub_status;
        const char *status, *reason, *message;
    } cases[] = {
        {1, 1, "False", "Downloading", "40 % downloaded"},
        {2, 0, "False", "Downloaded", ""},
        {3, 3, "False", "Updating", "being installed"},
        {3, 4, "False", "Updating", "rebooting into it"},
        {3, 5, "False", "Updating", "runs and is being tested"},
        {3, 7, "False", "Updating", "deferred by the device"},
        {5, 0, "False", "Fallback", NULL},
        {6, 0, "False", "Failed", "the device went back to the version that ran before"},
        {0, 0, "False", "Preparing", NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        Eve__Info__ZInfoDevice m = device_message();
        begin(&f, WITH_TARGET);
        Eve__Info__ZInfoDevSW *sw[] = {software(f.arena, "13.4.0-kvm-amd64", 4),
                                       software(f.arena, "14.0.0-kvm-amd64", cases[i].user_status)};
        sw[1]->substatus = (Eve__Info__BaseOsSubStatus) cases[i].sub_status;
        sw[1]->downloadprogress = 48;
        m.swlist = sw;
        m.n_swlist = 2;
        derive_base_os(&f.d, &m);
        assert_condition(&f, "BaseOSUpdated", cases[i].status, cases[i].reason, cases[i].message);
        end(&f);
    }
}

TEST(an_update_ends_with_the_running_version)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, WITH_TARGET);
    Eve__Info__ZInfoDevSW *sw[] = {software(f.arena, "13.4.0-kvm-amd64", 4)};
    m.swlist = sw;
    m.n_swlist = 1;
    derive_base_os(&f.d, &m);
    assert_condition(&f, "BaseOSUpdated", "False", "Waiting",
                     "13.4.0-kvm-amd64 runs; the device has not begun with 14.0.0-kvm-amd64");
    store(&f);
    sw[0] = software(f.arena, "14.0.0-kvm-amd64", 3);
    sw[0]->substatus = EVE__INFO__BASE_OS_SUB_STATUS__UPDATE_TESTING;
    derive_base_os(&f.d, &m);
    assert_condition(&f, "BaseOSUpdated", "False", "Updating", NULL);
    assert_event(&f, 0, false, "BaseOSChanged",
                 "14.0.0-kvm-amd64 runs, before it 13.4.0-kvm-amd64");
    sw[0]->userstatus = EVE__INFO__BASE_OS_STATUS__UPDATED;
    derive_base_os(&f.d, &m);
    assert_condition(&f, "BaseOSUpdated", "True", "Updated", "14.0.0-kvm-amd64 runs");
    end(&f);
}

TEST(a_failed_update_says_why)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, WITH_TARGET);
    Eve__Info__ZInfoDevSW *sw[] = {software(f.arena, "13.4.0-kvm-amd64", 4),
                                   software(f.arena, "", 0),
                                   software(f.arena, "14.0.0-kvm-amd64", 6)};
    sw[2]->swerr = error_of(f.arena, "image does not fit the partition", 3);
    m.swlist = sw;
    m.n_swlist = 3;
    derive_base_os(&f.d, &m);
    assert_condition(&f, "BaseOSUpdated", "False", "Failed", "image does not fit the partition");
    assert_event(&f, 0, true, "BaseOSUpdateFailed", "image does not fit the partition");
    end(&f);
}

TEST(without_a_target_any_version_is_good)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, DEVICE);
    Eve__Info__ZInfoDevSW *sw[] = {software(f.arena, "13.4.0-kvm-amd64", 4)};
    m.swlist = sw;
    m.n_swlist = 1;
    derive_base_os(&f.d, &m);
    assert_condition(&f, "BaseOSUpdated", "True", "NoTarget", "13.4.0-kvm-amd64 runs");
    end(&f);
}

/* ---- Ready ---------------------------------------------------------------------------------- */

TEST(ready_follows_what_the_device_says_of_itself)
{
    static const struct {
        int state;
        uint16_t reasons;
        const char *status, *reason, *message;
    } cases[] = {
        {0, 0, "True", "Online", ""},
        {1, 0, "True", "Online", ""},
        {2, 0, "False", "Rebooting", NULL},
        {3, 0, "False", "MaintenanceMode", "maintenance mode"},
        {3, 1 << 2 | 1 << 3, "False", "MaintenanceMode",
         "maintenance mode: the vault is locked, low disk space"},
        {3, 1 << 1, "False", "MaintenanceMode", "maintenance mode: requested by a user"},
        {3, 1 << 9, "False", "MaintenanceMode", "maintenance mode: reason 9"},
        {4, 0, "True", "BaseosUpdating", NULL},
        {5, 0, "False", "Booting", NULL},
        {6, 0, "False", "PreparingPoweroff", NULL},
        {7, 0, "False", "PoweringOff", NULL},
        {8, 0, "False", "PreparedPoweroff", NULL},
        {200, 0, "True", "Online", ""},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        begin(&f, DEVICE);
        derive_ready(&f.d, &(struct contact_view){
                               CONTACT_HEARD,
                               NOW_US,
                               {.state = (uint8_t) cases[i].state, .reasons = cases[i].reasons}});
        assert_condition(&f, "Ready", cases[i].status, cases[i].reason, cases[i].message);
        end(&f);
    }
}

TEST(silence_is_unknown_and_names_the_last_time)
{
    struct fixture f;
    begin(&f, DEVICE);
    derive_ready(&f.d, &(struct contact_view){.contact = CONTACT_NEVER});
    assert_condition(&f, "Ready", "Unknown", "NeverSeen", NULL);
    assert_int_equal(f.d.n_events, 0);
    derive_ready(&f.d, &(struct contact_view){.contact = CONTACT_HEARD, .last_seen_us = NOW_US});
    assert_event(&f, 0, false, "DeviceReady", NULL);
    derive_ready(&f.d, &(struct contact_view){.contact = CONTACT_SILENT, .last_seen_us = NOW_US});
    assert_condition(&f, "Ready", "Unknown", "Silent", "lastSeen: 2027-01-15T08:00:00Z");
    assert_event(&f, 1, true, "DeviceNotReady", NULL);
    end(&f);
}

TEST(a_heartbeat_alone_is_written_every_half_hour)
{
    struct fixture f;
    struct contact_view v = {.contact = CONTACT_HEARD, .last_seen_us = NOW_US};
    begin(&f, DEVICE);
    derive_ready(&f.d, &v);
    derive_heartbeat(&f.d, NOW_US);
    assert_str(derive_condition_text(f.d.status, "Ready", "lastHeartbeatTime"),
               "2027-01-15T08:00:00Z");
    store(&f);
    derive_ready(&f.d, &v);
    derive_heartbeat(&f.d, NOW_US + 1799 * SECOND_US);
    assert_false(derivation_has_changed(&f.d));
    derive_heartbeat(&f.d, NOW_US + 1800 * SECOND_US);
    assert_true(derivation_has_changed(&f.d));
    end(&f);
}

TEST(a_heartbeat_goes_along_with_any_change)
{
    struct fixture f;
    begin(&f, DEVICE);
    derive_ready(&f.d, &(struct contact_view){.contact = CONTACT_HEARD, .last_seen_us = NOW_US});
    derive_heartbeat(&f.d, NOW_US);
    store(&f);
    derive_app_counts(&f.d, 1, 2);
    derive_heartbeat(&f.d, NOW_US + SECOND_US);
    assert_str(derive_condition_text(f.d.status, "Ready", "lastHeartbeatTime"),
               "2027-01-15T08:00:01Z");
    assert_str(text_at(&f, "apps", "summary"), "1/2");
    end(&f);
}

/* ---- configuration -------------------------------------------------------------------------- */

TEST(a_delivered_configuration_is_accepted_and_then_applied)
{
    struct fixture f;
    Eve__Metrics__DeviceMetric metric;
    struct delivery v = {.hash = STR("hash-1"),
                         .at_us = NOW_US,
                         .version = 7,
                         .rendered_s = NOW_US / SECOND_US - 60,
                         .is_confirmed = true};
    begin(&f, DEVICE);
    derive_delivery(&f.d, &v);
    assert_str(json_text(f.arena, json_get(f.d.status, STR("config"))),
               "{\"hash\":\"hash-1\",\"version\":\"7\",\"renderedAt\":\"2027-01-15T07:59:00Z\","
               "\"fetchedAt\":\"2027-01-15T08:00:00Z\"}");
    assert_condition(&f, "ConfigAccepted", "True", "Received", NULL);
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    eve__metrics__device_metric__init(&metric);
    metric.last_received_config = time_of(f.arena, NOW_US + 2 * SECOND_US);
    metric.last_processed_config = time_of(f.arena, NOW_US + SECOND_US);
    derive_metrics(&f.d, &metric);
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    metric.last_processed_config = metric.last_received_config;
    derive_metrics(&f.d, &metric);
    assert_condition(&f, "ConfigApplied", "True", "Processed", NULL);
    store(&f);
    v.at_us += 60 * SECOND_US;
    derive_delivery(&f.d, &v);
    assert_false(derivation_has_changed(&f.d));
    v.hash = STR("hash-2");
    derive_delivery(&f.d, &v);
    assert_str(text_at(&f, "config", "fetchedAt"), "2027-01-15T08:01:00Z");
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    end(&f);
}

TEST(rejected_settings_are_named)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    Eve__Info__ZInfoConfigItemStatus s;
    Eve__Info__ZInfoConfigItem bad;
    Eve__Info__ZInfoConfigItemStatus__ConfigItemsEntry item, *items[] = {&item};
    Eve__Info__ZInfoConfigItemStatus__UnknownConfigItemsEntry odd, *odds[] = {&odd};
    begin(&f, DEVICE);
    eve__info__zinfo_config_item_status__init(&s);
    eve__info__zinfo_config_item__init(&bad);
    eve__info__zinfo_config_item_status__config_items_entry__init(&item);
    eve__info__zinfo_config_item_status__unknown_config_items_entry__init(&odd);
    bad.error = (char *) "value 3 is below 5";
    item.key = (char *) "timer.config.interval";
    item.value = &bad;
    odd.key = (char *) "no.such.item";
    s.configitems = items;
    s.unknownconfigitems = odds;
    s.n_configitems = s.n_unknownconfigitems = 1;
    m.configitemstatus = &s;
    derive_delivery(&f.d,
                    &(struct delivery){.hash = STR("h"), .at_us = NOW_US, .is_confirmed = true});
    derive_config_word(&f.d, &m);
    const char *words = "timer.config.interval: value 3 is below 5; no.such.item: not known to the "
                        "device";
    assert_condition(&f, "ConfigAccepted", "False", "ItemsRejected", words);
    assert_event(&f, 0, true, "ConfigItemsRejected", words);
    derive_delivery(&f.d,
                    &(struct delivery){.hash = STR("h"), .at_us = NOW_US, .is_confirmed = true});
    assert_condition(&f, "ConfigAccepted", "False", "ItemsRejected", words);
    s.n_configitems = s.n_unknownconfigitems = 0;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigAccepted", "True", "Received", NULL);
    end(&f);
}

TEST(a_fallback_of_the_network_means_not_applied)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    Eve__Info__SystemAdapterInfo s;
    Eve__Info__DevicePortStatus ports[2], *list[] = {&ports[0], &ports[1]};
    Eve__Info__DevicePort port, *port_list[] = {&port};
    begin(&f, DEVICE);
    eve__info__system_adapter_info__init(&s);
    eve__info__device_port__init(&port);
    for (int i = 0; i < 2; i++)
        eve__info__device_port_status__init(&ports[i]);
    ports[0].lasterror = (char *) "no DHCP lease on eth1";
    s.status = list;
    s.n_status = 2;
    s.currentindex = 1;
    m.systemadapter = &s;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "False", "NetworkFallback",
                     "the newest port configuration does not work: no DHCP lease on eth1");
    /* Another configuration need not have other ports. */
    derive_delivery(&f.d, &(struct delivery){.hash = STR("h2"), .at_us = NOW_US});
    assert_str(text_at(&f, "config", "hash"), "h2");
    assert_condition(&f, "ConfigApplied", "False", "NetworkFallback", NULL);
    s.currentindex = 0;
    port.name = (char *) "eth1";
    port.err = error_of(f.arena, "link is down", 3);
    ports[0].ports = port_list;
    ports[0].n_ports = 1;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "False", "PortError", "eth1: link is down");
    assert_event(&f, 1, true, "PortError", "eth1: link is down");
    port.err = NULL;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "True", "Processed", NULL);
    end(&f);
}

TEST(what_was_sent_is_not_yet_accepted)
{
    struct fixture f;
    begin(&f, DEVICE);
    derive_delivery(&f.d, &(struct delivery){.hash = STR("h"), .at_us = NOW_US, .version = 3});
    assert_str(text_at(&f, "config", "version"), "3");
    assert_str(derive_condition_text(f.d.status, "ConfigAccepted", "status"), "");
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    store(&f);
    derive_delivery(&f.d,
                    &(struct delivery){.hash = STR("h"), .at_us = NOW_US, .is_confirmed = true});
    assert_condition(&f, "ConfigAccepted", "True", "Received", NULL);
    assert_str(text_at(&f, "config", "version"), "3");
    end(&f);
}

TEST(a_device_leaves_it_aside_in_maintenance_mode_and_while_it_updates_itself)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, DEVICE);
    m.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_MAINTENANCE_MODE;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "False", "MaintenanceMode", NULL);
    /* Another one changes nothing about that. */
    derive_delivery(&f.d, &(struct delivery){.hash = STR("h2"), .at_us = NOW_US});
    assert_condition(&f, "ConfigApplied", "False", "MaintenanceMode", NULL);
    m.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_BASEOS_UPDATING;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "False", "BaseOSUpdating", NULL);
    m.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_ONLINE;
    derive_config_word(&f.d, &m);
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    end(&f);
}

TEST(a_version_on_its_way_keeps_applications_waiting)
{
    static const struct {
        int user_status;
        const char *reason;
    } cases[] = {{1, "BaseOSUpdating"}, {2, "BaseOSUpdating"}, {3, "BaseOSUpdating"}, {6, ""}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        Eve__Info__ZInfoDevice m = device_message();
        begin(&f, WITH_TARGET);
        Eve__Info__ZInfoDevSW *list[] = {
            software(f.arena, "13.4.0-kvm-amd64", 4),
            software(f.arena, "14.0.0-kvm-amd64", cases[i].user_status)};
        m.swlist = list;
        m.n_swlist = 2;
        (void) derive_device(&f.d, &m);
        assert_str(derive_condition_text(f.d.status, "ConfigApplied", "reason"), cases[i].reason);
        end(&f);
    }
}

static void metrics_at(struct fixture *f, int64_t received_us, int64_t processed_us)
{
    Eve__Metrics__DeviceMetric metric;
    eve__metrics__device_metric__init(&metric);
    metric.last_received_config = time_of(f->arena, received_us);
    metric.last_processed_config = time_of(f->arena, processed_us);
    derive_metrics(&f->d, &metric);
}

TEST(a_configuration_that_is_not_worked_in_is_ignored)
{
    struct fixture f;
    const int64_t before_us = NOW_US - 3600 * SECOND_US;
    begin(&f, DEVICE);
    derive_delivery(&f.d, &(struct delivery){.hash = STR("h"),
                                             .at_us = NOW_US,
                                             .rendered_s = NOW_US / SECOND_US,
                                             .is_confirmed = true});
    /* It may be at it. */
    metrics_at(&f, before_us, before_us);
    assert_condition(&f, "ConfigApplied", "Unknown", "Fetched", NULL);
    store(&f);
    store(&f);
    metrics_at(&f, before_us, before_us);
    assert_condition(&f, "ConfigApplied", "False", "Ignored",
                     "the device fetched it and went on with that of 2027-01-15T07:00:00Z: it "
                     "cannot read the new one, or has one that is newer");
    assert_event(&f, 0, true, "ConfigIgnored", NULL);
    metrics_at(&f, NOW_US, NOW_US);
    assert_condition(&f, "ConfigApplied", "True", "Processed", NULL);
    end(&f);
}

TEST(another_target_is_not_reached_before_the_device_says_so)
{
    struct fixture f;
    begin(&f, WITH_TARGET);
    (void) json_set(f.arena, f.d.status, STR("eve-os-version"),
                    json_string(STR("13.4.0-kvm-amd64")));
    const struct condition good = {"BaseOSUpdated", "True", STR("NoTarget"), STR("")};
    (void) derive_condition(&f.d, &good);
    derive_base_os_target(&f.d);
    assert_condition(&f, "BaseOSUpdated", "False", "Waiting",
                     "13.4.0-kvm-amd64 runs; the device has not begun with 14.0.0-kvm-amd64");
    end(&f);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static Eve__Info__ZioBundle *adapter(struct arena *a, const char *name, char **members, size_t n)
{
    Eve__Info__ZioBundle *b = ARENA_NEW(a, Eve__Info__ZioBundle);
    eve__info__zio_bundle__init(b);
    b->type = EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
    b->name = (char *) name;
    b->members = members;
    b->n_members = n;
    return b;
}

TEST(ports_are_those_that_the_device_lists)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, DEVICE);
    char *members[] = {(char *) "eth1", (char *) "\xff\x01"};
    Eve__Info__ZioBundle *list[] = {adapter(f.arena, "eth0", NULL, 0),
                                    adapter(f.arena, "group", members, 2)};
    m.assignableadapters = list;
    m.n_assignableadapters = 2;
    derive_ports(&f.d, &m);
    const struct json *ports = json_get(f.d.status, STR("ports"));
    assert_int_equal(json_count(ports), 3);
    assert_str(json_text(f.arena, &ports->items[0]),
               "{\"label\":\"eth0\",\"type\":1,\"group\":\"eth0\"}");
    assert_str(json_text(f.arena, &ports->items[1]),
               "{\"label\":\"eth1\",\"type\":1,\"group\":\"group\"}");
    assert_true(str_is_utf8(json_get_str(&ports->items[2], STR("label"))));
    /* One that lists none has not lost them. */
    store(&f);
    m.n_assignableadapters = 0;
    derive_ports(&f.d, &m);
    assert_false(derivation_has_changed(&f.d));
    end(&f);
}

TEST(ports_are_bounded)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    begin(&f, DEVICE);
    const size_t n = 20000;
    char **members = ARENA_ARRAY(f.arena, char *, n);
    for (size_t i = 0; i < n; i++)
        members[i] = (char *) "eth9";
    Eve__Info__ZioBundle *list[] = {adapter(f.arena, "g", members, n),
                                    adapter(f.arena, "h", members, n)};
    m.assignableadapters = list;
    m.n_assignableadapters = 2;
    derive_ports(&f.d, &m);
    assert_int_equal(json_count(json_get(f.d.status, STR("ports"))), 256);
    end(&f);
}

TEST(a_deviceconfig_knows_whether_it_was_delivered)
{
    struct fixture f;
    begin(&f, "{'metadata':{'name':'edge-7','generation':4},'status':{'hash':'h2'}}");
    derive_delivered(&f.d, &(struct delivery){.hash = STR("h1")});
    assert_condition(&f, "Delivered", "False", "Outdated", "the device has version h1");
    derive_delivered(&f.d, &(struct delivery){.hash = STR("h2"), .version = 7});
    assert_condition(&f, "Delivered", "True", "Fetched", "the device has version 7");
    end(&f);
}

/* ---- health, attestation, metrics ------------------------------------------------------------ */

TEST(errors_of_the_device_itself_make_it_unhealthy)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    Eve__Info__DataSecAtRest vaults;
    Eve__Info__VaultInfo vault, *vault_list[] = {&vault};
    Eve__Info__StorageInfo pool, *pools[] = {&pool};
    begin(&f, DEVICE);
    eve__info__data_sec_at_rest__init(&vaults);
    eve__info__vault_info__init(&vault);
    eve__info__storage_info__init(&pool);
    vault.name = (char *) "Application Data Store";
    vault.vaulterr = error_of(f.arena, "PCR mismatch", 3);
    vaults.vaultlist = vault_list;
    vaults.n_vaultlist = 1;
    pool.pool_name = (char *) "persist";
    pool.storage_state = EVE__INFO__STORAGE_STATUS__STORAGE_STATUS_DEGRADED;
    m.datasecatrestinfo = &vaults;
    m.storage_info = pools;
    m.n_storage_info = 1;
    derive_health(&f.d, &m);
    const char *words = "Application Data Store: PCR mismatch; persist: Degraded";
    assert_condition(&f, "Healthy", "False", "VaultError", words);
    assert_event(&f, 0, true, "VaultError", words);
    vault.vaulterr = NULL;
    pool.storage_state = EVE__INFO__STORAGE_STATUS__STORAGE_STATUS_ONLINE;
    derive_health(&f.d, &m);
    assert_condition(&f, "Healthy", "True", "NoErrors", "");
    end(&f);
}

TEST(attestation_is_what_we_found)
{
    struct fixture f;
    begin(&f, DEVICE);
    derive_attested(&f.d, false, STR("PCR 7 differs"));
    assert_condition(&f, "Attested", "False", "QuoteRefused", "PCR 7 differs");
    assert_event(&f, 0, true, "AttestationFailed", "PCR 7 differs");
    derive_attested(&f.d, true, STR(""));
    assert_condition(&f, "Attested", "True", "QuoteVerified", "");
    assert_event(&f, 1, false, "Attested", NULL);
    end(&f);
}

TEST(metrics_tell_what_applications_may_use)
{
    struct fixture f;
    Eve__Metrics__DeviceMetric m;
    Eve__Metrics__DeviceMemoryMetric memory;
    begin(&f, "{'metadata':{},'status':{'capacity':{'ephemeral-storage':'100Gi'}}}");
    eve__metrics__device_metric__init(&m);
    eve__metrics__device_memory_metric__init(&memory);
    memory.memorymb = 8192;
    memory.allocated_evemb = 1024;
    m.devicememory = &memory;
    m.runtimestorageoverheadmb = 5000;
    derive_metrics(&f.d, &m);
    assert_str(text_at(&f, "allocatable", "memory"), "7Gi");
    assert_str(text_at(&f, "allocatable", "ephemeral-storage"), "95Gi");
    store(&f);
    /* A little more or less is no news. */
    m.runtimestorageoverheadmb = 4100;
    derive_metrics(&f.d, &m);
    assert_false(derivation_has_changed(&f.d));
    m.runtimestorageoverheadmb = 50000;
    derive_metrics(&f.d, &m);
    assert_str(text_at(&f, "allocatable", "ephemeral-storage"), "51Gi");
    /* Nonsense is not taken. */
    memory.allocated_evemb = UINT32_MAX;
    m.runtimestorageoverheadmb = UINT64_MAX;
    derive_metrics(&f.d, &m);
    assert_str(text_at(&f, "allocatable", "memory"), "7Gi");
    assert_str(text_at(&f, "allocatable", "ephemeral-storage"), "51Gi");
    end(&f);
}

TEST(hardware_knows_the_kernel)
{
    struct fixture f;
    Eve__Info__ZInfoHardware m;
    begin(&f, DEVICE);
    eve__info__zinfo_hardware__init(&m);
    m.kernel_version = (char *) "6.1.112-linuxkit";
    derive_hardware(&f.d, &m);
    assert_str(text_at(&f, "nodeInfo", "kernelVersion"), "6.1.112-linuxkit");
    end(&f);
}

TEST(absurd_numbers_make_no_absurd_status)
{
    struct fixture f;
    Eve__Info__ZInfoDevice m = device_message();
    Eve__Info__MaintenanceModeReason reasons[] = {(Eve__Info__MaintenanceModeReason) -5,
                                                  (Eve__Info__MaintenanceModeReason) 70000,
                                                  (Eve__Info__MaintenanceModeReason) 15};
    Eve__Info__SystemAdapterInfo s;
    begin(&f, DEVICE);
    eve__info__system_adapter_info__init(&s);
    s.currentindex = UINT32_MAX;
    m.ncpu = UINT32_MAX;
    m.memory = m.storage = UINT64_MAX;
    m.state = (Eve__Info__ZDeviceState) -1;
    m.last_boot_reason = (Eve__Info__BootReason) 12345;
    m.boottime = time_of(f.arena, NOW_US);
    m.boottime->seconds = INT64_MAX;
    m.systemadapter = &s;
    m.maintenance_mode_reasons = reasons;
    m.n_maintenance_mode_reasons = N_ELEMENTS(reasons);
    struct device_word w = derive_device(&f.d, &m);
    assert_int_equal(w.state, 0);
    assert_int_equal(w.reasons, 1 << 15);
    struct quantity q;
    struct str error;
    assert_int_equal(quantity_parse(text_at(&f, "capacity", "memory"), &q, &error), 0);
    assert_true(quantity_sign(&q) > 0);
    assert_non_null(json_parse_quick(f.arena, json_text(f.arena, f.d.status)));
    end(&f);
}
