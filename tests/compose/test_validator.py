# SPDX-License-Identifier: Apache-2.0
"""Each rule of the validator: a configuration that keeps it, and one that breaks it and nothing else."""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import validator  # noqa: E402
from good import BLOB, DATA, EVE, HTTPS, LAN, NGINX, REGISTRY, ROOT, SHA, block, good, port, uuid  # noqa: E402
from validator import validate, validate_change  # noqa: E402

NOWHERE = uuid(999)


def put(*path):
    """Sets the last of the path where the rest of it leads; a list grows by one when the index is its length."""
    *way, last, value = path

    def change(config):
        for step in way:
            config = config[step]
        if isinstance(config, list) and last == len(config):
            config.append(value)
        else:
            config[last] = value
    return change


def drop(*path):
    *way, last = path

    def change(config):
        for step in way:
            config = config[step]
        del config[last]
    return change


def all_of(*changes):
    def change(config):
        for one in changes:
            one(config)
    return change


IO, ADAPTERS, NETS, INSTANCES, STORES, TREES, VOLUMES, APPS = ("deviceIoList", "systemAdapterList", "networks", "networkInstances", "datastores", "contentInfo", "volumes", "apps")
ACLS = (APPS, 0, "interfaces", 0, "acls")
CELLULAR = {"type": "Cellular", "cellularCfg": [{"accessPoints": [{"apn": "a"}]}]}

# rule: changes that each break it alone.
BREAKS = {
    "uuids_are_textual": [put("id", "uuid", "7"), put(VOLUMES, 4, {"uuid": "v", "origin": {"type": 1}, "maxsizebytes": 1}), put(APPS, 0, "designatedNodeId", "me")],
    "identities_are_unique": [lambda c: c[STORES].append(copy.deepcopy(c[STORES][1])), put("cipherContexts", 1, {"contextId": "ctx", "deviceCertHash": "X", "controllerCertHash": "Y"})],
    "volume_references_resolve": [put(APPS, 0, "volumeRefList", 1, "uuid", NOWHERE)],
    "volume_references_have_the_generation": [put(APPS, 0, "volumeRefList", 0, "generationCount", 1), put(VOLUMES, 1, "generationCount", "1")],
    "volume_contents_resolve": [put(VOLUMES, 0, "origin", "downloadContentTreeID", NOWHERE), drop(VOLUMES, 2, "origin", "downloadContentTreeID")],
    "content_datastores_resolve": [put(TREES, 1, "dsIdsList", [HTTPS, NOWHERE]), put(TREES, 0, "dsIdsList", [])],
    "base_os_content_resolves": [put("baseos", "contentTreeUuid", NOWHERE)],
    "interface_networks_resolve": [put(APPS, 1, "interfaces", 1, "networkId", NOWHERE)],
    "instance_ports_resolve": [put(INSTANCES, 0, "port", "name", "eth9")],
    "adapter_networks_resolve": [put(ADAPTERS, 3, "networkUUID", NOWHERE)],
    "adapter_lower_layers_resolve": [put(ADAPTERS, 2, "lowerLayerName", "nothing"), all_of(put(ADAPTERS, 2, "lowerLayerName", "usb0"), drop(APPS, 1, "adapters"))],
    "vlan_lower_layers_resolve": [put("vlans", 0, "lowerLayerName", "nothing")],
    "bond_members_resolve": [put("bonds", 0, "lowerLayerNames", ["eth2", "nothing"])],
    "passed_hardware_resolves": [put(APPS, 1, "adapters", 0, "name", "nothing"), drop(IO, 7, "assigngrp")],
    "cipher_contexts_resolve": [put(APPS, 0, "cipherData", "cipherContextId", "other"), put("cluster", "encryptedClusterToken", "cipherContextId", "other")],
    "pnac_references_resolve": [put("pnacs", 0, "logicallabel", "wlan0"), put("pnacs", 0, "certEnrollmentProfileName", "q")],
    "patch_volumes_resolve": [put("patchEnvelopes", 0, "artifacts", 0, "volumeRef", "imageId", DATA)],
    "cluster_interface_resolves": [put("cluster", "clusterInterface", "nothing")],
    "loc_datastores_resolve": [put("locConfig", "datastoreCollectInfoId", [REGISTRY])],

    "hardware_addresses_are_known": [put(IO, 0, "phyaddrs", "color", "blue")],
    "hardware_has_a_label": [put(IO, 8, {"ptype": "PhyIoHDMI", "assigngrp": "x"})],
    "ports_are_distinct": [put(IO, 8, port("eth0", 9, logicallabel="eth9")), put(IO, 8, {"phylabel": "eth4"}), put(IO, 4, "phyaddrs", "pcilong", "0000:06:00.0"), put(IO, 8, {"phylabel": "vlan-a"})],
    "virtual_functions_are_in_range": [put(IO, 5, "vflist", "data", 0, "vlanId", 4095), put(IO, 5, "vflist", "data", 0, "index", 2), put(IO, 5, "ptype", "PhyIoNetEth")],
    "free_uplink_is_not_sent": [put(IO, 0, "usagePolicy", {"freeUplink": True})],
    "there_is_an_uplink": [drop(ADAPTERS, 0, "uplink")],
    "uplinks_have_addresses": [drop(ADAPTERS, 0, "networkUUID"), put(NETS, 0, "ip", "dhcp", "DHCPNone"), all_of(drop(NETS, 0, "type"), drop(NETS, 0, "ip"))],
    "costs_are_in_range": [put(ADAPTERS, 1, "cost", 256)],
    "images_can_be_downloaded": [put(ADAPTERS, 0, "cost", 1), all_of(put(ADAPTERS, 0, "cost", 9), put("configItems", 3, {"key": "network.download.max.cost", "value": "8"}))],
    "labels_are_free": [put(ADAPTERS, 1, "sharedLabels", ["uplink"]), put(ADAPTERS, 1, "sharedLabels", ["tagged"])],
    "ports_in_use_are_not_passed_through": [put(APPS, 1, "adapters", 1, {"type": "PhyIoNetEth", "name": "eth0", "interfaceOrder": 7}), put(APPS, 1, "adapters", 0, "name", "eth2")],
    "bonds_and_vlans_are_named": [put("bonds", 0, "interfaceName", "bond0"), put("vlans", 0, "interfaceName", "a" * 16), put("vlans", 1, {"lowerLayerName": "eth1", "vlanId": 6})],
    "vlan_numbers_are_in_range": [put("vlans", 0, "vlanId", 0), put("vlans", 0, "vlanId", 4095)],
    "bond_members_have_no_other_use": [put("bonds", 0, "lowerLayerNames", ["eth0", "eth2"]), put("bonds", 1, {"logicallabel": "b", "lowerLayerNames": ["eth3"]}), put("vlans", 0, "lowerLayerName", "eth3")],

    "network_types_are_supported": [put(NETS, 0, "type", "DualV4V6"), put(NETS, 0, "type", 3), drop(NETS, 2, "ip")],
    "networks_say_where_addresses_come_from": [drop(NETS, 2, "ip", "dhcp")],
    "static_networks_are_complete": [drop(ADAPTERS, 1, "addr"), drop(NETS, 1, "ip", "gateway"), put(NETS, 1, "ip", "subnet", "192.168.7.0"), put(NETS, 1, "ip", "dns", [])],
    "networks_have_one_ip_version": [put(NETS, 1, "ip", "dns", ["2001:db8::1"])],
    "mtus_are_in_range": [put(NETS, 0, "mtu", 1279), put(INSTANCES, 0, "mtu", 65536)],
    "proxy_files_are_base64": [put(NETS, 0, "entProxy", "pacfile", "function()")],
    "wireless_settings_fit_their_type": [put(NETS, 2, "wireless", "wifiCfg", []), put(NETS, 2, "wireless", "type", "Cellular"), put(NETS, 2, "wireless", {"type": 2, "cellularCfg": CELLULAR["cellularCfg"] * 2}), drop(NETS, 2, "wireless", "type")],
    "instances_have_a_supported_type": [all_of(put(INSTANCES, 1, "instType", "ZnetInstMesh"), drop(INSTANCES, 1, "vlanAccessPorts"))],
    "instances_of_running_apps_are_active": [put(INSTANCES, 2, "activate", False)],
    "local_instances_have_a_subnet": [drop(INSTANCES, 2, "ip"), put(INSTANCES, 2, "ip", "subnet", "10.11.13.0/31")],
    "subnets_do_not_overlap": [put(INSTANCES, 2, "ip", "subnet", "10.11.12.0/28"), put(INSTANCES, 2, "ip", "subnet", "192.168.7.0/28")],
    "dhcp_ranges_are_in_the_subnet": [put(INSTANCES, 2, "ip", "dhcpRange", {"start": "10.11.13.2", "end": "10.11.14.1"}), put(INSTANCES, 2, "ip", "dhcpRange", {"start": "10.11.13.9", "end": "10.11.13.8"}),
                                      put(INSTANCES, 2, "ip", {"subnet": "10.12.0.0/16", "dhcpRange": {"start": "10.12.0.2", "end": "10.12.1.2"}})],
    "gateways_are_outside_the_dhcp_range": [put(INSTANCES, 0, "ip", "gateway", "10.11.12.9"), put(INSTANCES, 0, "ip", "gateway", "10.11.99.1")],
    "fixed_addresses_fit_their_network": [put(APPS, 0, "interfaces", 0, "addr", "10.11.12.200"), put(APPS, 0, "interfaces", 0, "addr", "10.11.13.9"), put(APPS, 0, "interfaces", 0, "addr", "fd00::1")],
    "switches_have_no_ip_type": [put(INSTANCES, 1, "ipType", "IPV4")],
    "static_routes_are_complete": [put(INSTANCES, 0, "staticRoutes", 0, "gateway", "0.0.0.0"), drop(INSTANCES, 0, "staticRoutes", 1, "port"), put(INSTANCES, 0, "staticRoutes", 0, "destinationNetwork", "x"),
                                   put(INSTANCES, 1, "staticRoutes", [{"destinationNetwork": "10.0.0.0/8", "port": "lab"}])],
    "access_vlans_are_in_range": [put(INSTANCES, 1, "vlanAccessPorts", 0, "vlanId", 4095), put(INSTANCES, 2, "vlanAccessPorts", [{"vlanId": 5}])],
    "instances_have_one_time_server": [put(INSTANCES, 0, "ip", "moreNtp", ["b"])],

    "datastores_have_the_form_of_their_type": [put(STORES, 0, "fqdn", "https://index.docker.io"), put(STORES, 1, "fqdn", "http://example.org"), drop(STORES, 2, "dpath"), put(STORES, 3, {"id": NOWHERE}), put(STORES, 1, "fqdn", "https://")],
    "credentials_are_encrypted": [put(STORES, 2, "password", "x"), put(NETS, 2, "wireless", "wifiCfg", 0, "password", "x")],
    "plain_http_has_no_credentials": [put(STORES, 3, {"id": NOWHERE, "dType": "DsHttp", "fqdn": "http://example.org", "cipherData": block()})],
    "contents_have_a_hash": [drop(TREES, 1, "sha256"), put(TREES, 0, "sha256", "abc")],
    "registries_stand_alone": [put(TREES, 0, "dsIdsList", [REGISTRY, HTTPS])],
    "contents_have_a_name_and_a_format": [drop(TREES, 0, "URL"), put(TREES, 1, "iformat", 0), drop(TREES, 1, "iformat")],
    "volumes_have_an_origin": [put(VOLUMES, 1, "origin", {"type": 0}), drop(VOLUMES, 1, "origin")],
    "blank_volumes_have_a_size": [drop(VOLUMES, 1, "maxsizebytes")],
    "blobs_are_no_disks": [put(APPS, 1, "volumeRefList", 0, "uuid", BLOB)],
    "base_os_has_a_version": [drop("baseos", "baseOsVersion")],
    "base_os_has_no_volume": [put(VOLUMES, 4, {"uuid": NOWHERE, "origin": {"type": 2, "downloadContentTreeID": EVE}})],
    "base_os_has_a_fitting_format": [put(TREES, 2, "iformat", "RAW"), put(TREES, 2, {"uuid": EVE, "dsIdsList": [HTTPS], "URL": "x", "iformat": "QCOW2", "sha256": SHA})],

    "apps_have_what_devices_read_unchecked": [drop(APPS, 0, "fixedresources"), drop(APPS, 1, "uuidandversion")],
    "apps_have_memory_and_processors": [put(APPS, 0, "fixedresources", "memory", 0), drop(APPS, 1, "fixedresources", "vcpus")],
    "apps_have_a_supported_mode": [put(APPS, 0, "fixedresources", "virtualizationMode", "Filler"), put(APPS, 0, "service", True)],
    "app_names_are_unique": [put(APPS, 1, "displayname", "web"), drop(APPS, 0, "displayname")],
    "apps_have_a_root_volume": [put(APPS, 0, "volumeRefList", [])],
    "mac_addresses_parse": [put(APPS, 0, "interfaces", 0, "macAddress", "02:00")],
    "interface_orders_are_unique": [put(APPS, 1, "interfaces", 1, "interfaceOrder", 0), put(APPS, 1, "adapters", 1, {"type": "PhyIoNetEth", "name": "pf0", "interfaceOrder": 1})],
    "interface_vlans_are_in_range": [put(APPS, 1, "interfaces", 0, "accessVlanId", 1), put(APPS, 1, "interfaces", 0, "accessVlanId", 4094)],
    "acl_numbers_are_unique": [put(*ACLS, 1, "id", 1), drop(*ACLS, 0, "id"), put(*ACLS, 0, "id", 1 << 24), put(APPS, 1, "interfaces", 1, "acls", 0, "id", 1)],
    "acl_matches_are_known": [put(*ACLS, 0, "matches", 0, "type", "color"), put(*ACLS, 0, "matches", 0, "type", "fport")],
    "acls_have_one_action": [put(*ACLS, 0, "actions", [{}, {"drop": True}]), put(*ACLS, 1, "actions", 0, "drop", True)],
    "port_maps_are_complete": [drop(*ACLS, 1, "actions", 0, "appPort"), put(*ACLS, 1, "matches", [{"type": "protocol", "value": "tcp"}]), drop(INSTANCES, 0, "port")],
    "port_maps_do_not_collide": [lambda c: c[APPS][0]["interfaces"][0]["acls"].append({**copy.deepcopy(c[APPS][0]["interfaces"][0]["acls"][1]), "id": 3})],
    "switches_have_no_host_rules": [put(APPS, 1, "interfaces", 0, "acls", 0, "matches", 0, "type", "host")],
    "hardware_goes_to_one_app": [put(APPS, 0, "adapters", [{"type": "PhyIoUSB", "name": "usb0"}])],
    "user_data_is_base64_and_once": [put(APPS, 1, "userData", "#cloud-config"), put(APPS, 0, "userData", "YQ==")],
    "app_records_fit": [put(APPS, 1, "userData", "YWFh" * (1 << 18) + "YQ=="), put(APPS, 0, "profileList", ["x" * 65536])],
    "vnc_shim_has_vnc": [drop(APPS, 1, "fixedresources", "enableVnc")],
    "vnc_displays_are_unique": [all_of(put(APPS, 0, "fixedresources", "enableVnc", True), put(APPS, 0, "fixedresources", "vncDisplay", 1))],

    "the_device_is_named": [drop("id", "version"), drop("id")],
    "nothing_is_sent_in_vain": [put("backup", {"counter": 1}), put(APPS, 0, "drives", []), put(TREES, 0, "generationCount", 1), put(APPS, 0, "fixedresources", "cpus", "1"), put(APPS, 0, "interfaces", 0, "hostname", "h")],
    "settings_stand_once_as_text": [put("configItems", 3, {"key": "our.own", "value": "y"}), put("configItems", 2, "value", 1), put("configItems", 3, {"value": "y"})],
    "settings_have_good_values": [put("configItems", 0, "value", "4"), put("configItems", 1, "value", "on"), put("configItems", 2, {"key": "timer.gc.vdisk", "value": "soon"})],
    "commands_are_there_from_the_start": [drop("reboot"), drop("shutdown", "desiredState")],
    "cipher_contexts_are_complete": [drop("cipherContexts", 0, "deviceCertHash"), put("cipherContexts", 1, {"contextId": "other", "deviceCertHash": "AAAA", "controllerCertHash": "BBBB"})],
    "cipher_blocks_are_complete": [drop(APPS, 0, "cipherData", "initialValue"), drop(STORES, 0, "cipherData", "cipherContextId")],
    "the_cluster_is_complete": [put("cluster", "clusterIpPrefix", "10.0.0.1"), put("cluster", "joinServerIp", "x"), put("cluster", "clusterId", "x"), put("cluster", "tieBreakerNodeId", "x"), drop("cluster", "encryptedClusterToken")],
    "load_balancers_need_native_orchestration": [put("cluster", "clusterType", 2)],
    "certificate_profiles_are_complete": [put("scepProfiles", 0, "scepUrl", "/x"), put("scepProfiles", 0, "csrProfile", "renewPeriodPercent", 101), put("scepProfiles", 1, {"scepUrl": "https://a.example"})],
    "port_authentication_is_by_tls": [drop("pnacs", 0, "eapMethod")],
    "patch_artifacts_are_complete": [put("patchEnvelopes", 0, "artifacts", 1, {}), put("patchEnvelopes", 0, "artifacts", 0, "inline", {})],
    "edgeview_has_a_token": [put("edgeview", "token", "a.b"), put("edgeview", "token", "a..c")],
}

NEXT = put("id", "version", "8")
# rule: (changes that break it alone, a change that keeps it), both on top of the next version.
CHANGES = {
    "time_does_not_go_backwards": ([put("configTimestamp", "2026-11-16T04:59:59Z")], put("configTimestamp", "2026-11-16T05:00:01Z")),
    "the_version_follows_changes": ([all_of(put("id", "version", "7"), put("deviceName", "n"))], put("deviceName", "n")),
    "instances_keep_their_type": ([put(INSTANCES, 2, "instType", "ZnetInstSwitch")], put(INSTANCES, 2, "uuidandversion", "version", "2")),
    "changed_volumes_have_a_new_generation": ([put(VOLUMES, 1, "maxsizebytes", 9), put(VOLUMES, 1, "readonly", True), put(TREES, 0, "URL", "library/nginx:1.28")],
                                              all_of(put(VOLUMES, 1, "maxsizebytes", 9), put(VOLUMES, 1, "generationCount", 1))),
    "changed_resources_restart": ([put(APPS, 0, "fixedresources", "memory", 1)],
                                  all_of(put(APPS, 0, "fixedresources", "memory", 1), put(APPS, 0, "restart", "counter", 2), put(APPS, 1, "fixedresources", "disableLogs", True))),
    "changed_interfaces_restart": ([drop(APPS, 0, "interfaces", 0, "addr"), put(APPS, 1, "interfaces", [])],
                                   all_of(drop(APPS, 0, "interfaces", 0, "addr"), put(APPS, 0, "restart", "counter", 2), put(APPS, 1, "interfaces", 0, "acls", []))),
    "changed_volumes_and_hardware_purge": ([put(APPS, 1, "adapters", []), drop(APPS, 0, "volumeRefList", 1)], all_of(drop(APPS, 0, "volumeRefList", 1), put(APPS, 0, "purge", "counter", 2))),
    "changed_user_data_is_taken_again": ([put(APPS, 1, "userData", "Yg=="), put(APPS, 0, "cipherData", "clearTextSha256", "DDDD")],
                                         all_of(put(APPS, 1, "userData", "Yg=="), put(APPS, 1, "cloudInitVersion", 1), put(APPS, 0, "cipherData", "clearTextSha256", "DDDD"), put(APPS, 0, "uuidandversion", "version", "2"))),
    "counters_do_not_go_back": ([put(APPS, 0, "restart", "counter", 0), drop(APPS, 0, "purge"), put("baseos", "retryUpdate", "counter", 0)], put(APPS, 0, "restart", "counter", 2)),
    "commands_stay": ([drop("reboot")], put("reboot", "counter", 1)),
}


def names(findings):
    return {finding.rule for finding in findings}


def test_the_good_configuration_breaks_nothing():
    assert validate(good()) == []
    assert validate_change(good(), good()) == []


def test_every_rule_is_broken_alone():
    validator.load()
    assert set(BREAKS) == set(validator.RULES), set(BREAKS) ^ set(validator.RULES)
    assert all(function.__doc__ for function in validator.RULES.values()), "a rule says what it is"
    for name, changes in BREAKS.items():
        for i, change in enumerate(changes):
            config = good()
            change(config)
            found = validate(config)
            assert names(found) == {name}, (name, i, found)
            assert all(f.path and f.text for f in found)


def test_every_rule_of_changes_is_broken_alone():
    validator.load()
    assert set(CHANGES) == set(validator.CHANGE_RULES)
    assert all(function.__doc__ for function in validator.CHANGE_RULES.values())
    for name, (bad, fine) in CHANGES.items():
        for i, change in enumerate([*bad, fine]):
            config = good()
            NEXT(config)
            change(config)
            found = validate_change(good(), config)
            assert names(found) == ({name} if i < len(bad) else set()), (name, i, found)


def test_what_is_allowed_at_the_edge():
    fine = [put(APPS, []), put(NETS, 2, "wireless", CELLULAR), put("configItems", 3, {"key": "network.download.max.cost", "value": "0"}), put(IO, 0, "phyaddrs", {"IfName": "eth0"}),
            all_of(put("configItems", 3, {"key": "network.download.max.cost", "value": "9"}), put(ADAPTERS, 0, "cost", 9)), drop("cluster"), drop("baseos"),
            put(INSTANCES, 2, "ip", {"subnet": "10.13.0.0/30"}), put(TREES, 0, {"uuid": NGINX, "dsId": REGISTRY, "URL": "x", "iformat": "CONTAINER", "sha256": SHA.upper()}),
            put(APPS, 0, "interfaces", 0, "acls", []), put(STORES, 3, {"id": NOWHERE, "dType": 7, "dpath": "b"}), put(STORES, 3, {"id": NOWHERE, "dType": "DsAzureBlob", "fqdn": "a.blob.core.windows.net", "dpath": "c"}),
            all_of(put(STORES, 3, {"id": NOWHERE, "dType": "DsHttp", "fqdn": "http://example.org", "cipherData": block()}),
                   put("configItems", 3, {"key": "datastore.http.security.allowinsecureauth", "value": "true"}))]
    for i, change in enumerate(fine):
        config = good()
        change(config)
        assert validate(config) == [], (i, validate(config))


def test_both_forms_of_names_and_numbers_are_read():
    config = good()
    config["config_timestamp"], config["content_info"] = config.pop("configTimestamp"), config.pop("contentInfo")
    for tree in config["content_info"]:
        tree["ds_ids_list"] = tree.pop("dsIdsList")
    config[VOLUMES][0]["generationCount"] = 2
    assert validate({**config, "contentInfo": config.pop("content_info")}) == []
    config = good()
    config[NETS][0].update(type=4, ip={"dhcp": 4})
    config[NETS][2]["wireless"]["type"] = 1
    config[VOLUMES][0]["origin"]["type"] = 2
    assert validate(config) == []
    config[NETS][0]["ip"]["dhcp"] = 3
    assert names(validate(config)) == {"networks_say_where_addresses_come_from"}
    assert LAN in [n["id"] for n in config[NETS]] and ROOT in [v["uuid"] for v in config[VOLUMES]]
