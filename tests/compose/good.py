# SPDX-License-Identifier: Apache-2.0
"""A configuration that has something for every rule to look at, and breaks none."""
import copy


def uuid(n):
    return f"00000000-0000-4000-8000-{n:012d}"


DEVICE, LAN, STATIC, LOCAL, SWITCH, OWN, REGISTRY, HTTPS, BUCKET = (uuid(n) for n in range(1, 10))
NGINX, DISK, EVE, ROOT, DATA, VM, BLOB, WEB, MACHINE, CLUSTER, PATCH, WIFI = (uuid(n) for n in range(10, 22))
SHA = "ab" * 32


def block():
    return {"cipherContextId": "ctx", "initialValue": "AAAA", "cipherData": "BBBB", "clearTextSha256": "CCCC"}


def port(name, n, **more):
    return {"ptype": "PhyIoNetEth", "phylabel": name, "logicallabel": name, "assigngrp": name, "phyaddrs": {"ifname": name, "pcilong": f"0000:0{n}:00.0"}, **more}


GOOD = {
    "id": {"uuid": DEVICE, "version": "7"},
    "configTimestamp": "2026-11-16T05:00:00Z",
    "reboot": {"desiredState": True},
    "shutdown": {"desiredState": True},
    "configItems": [{"key": "timer.config.interval", "value": "60"}, {"key": "maintenance.mode", "value": "none"}, {"key": "our.own", "value": "x"}],
    "cipherContexts": [{"contextId": "ctx", "deviceCertHash": "AAAA", "controllerCertHash": "BBBB"}],
    "deviceIoList": [
        port("eth0", 1), port("eth1", 2), port("eth2", 3), port("eth3", 4), port("eth4", 5), {**port("pf0", 6), "ptype": "PhyIoNetEthPF", "vflist": {"vfCount": 2, "data": [{"index": 1, "vlanId": 4094}]}},
        {"ptype": "PhyIoNetWLAN", "phylabel": "wlan0", "phyaddrs": {"ifname": "wlan0"}},
        {"ptype": "PhyIoUSB", "phylabel": "usb0", "assigngrp": "usb", "phyaddrs": {"USBaddr": "1:1"}},
    ],
    "bonds": [{"logicallabel": "bond-a", "lowerLayerNames": ["eth2", "eth3"]}],
    "vlans": [{"logicallabel": "vlan-a", "interfaceName": "eth1.5", "lowerLayerName": "eth1", "vlanId": 5}],
    "networks": [
        {"id": LAN, "type": "V4", "ip": {"dhcp": "Client"}, "mtu": 1500, "entProxy": {"pacfile": "YQ=="}},
        {"id": STATIC, "type": 7, "ip": {"dhcp": "Static", "subnet": "192.168.7.0/24", "gateway": "192.168.7.1", "dns": ["192.168.7.1"]}},
        {"id": WIFI, "type": "V4", "ip": {"dhcp": "Client"}, "wireless": {"type": "WiFi", "wifiCfg": [{"wifiSSID": "lab", "keyScheme": "WPAPSK", "cipherData": block()}]}},
    ],
    "systemAdapterList": [
        {"name": "eth0", "lowerLayerName": "eth0", "uplink": True, "networkUUID": LAN, "sharedLabels": ["lab"]},
        {"name": "bonded", "lowerLayerName": "bond-a", "networkUUID": STATIC, "addr": "192.168.7.5", "cost": 255},
        {"name": "tagged", "lowerLayerName": "vlan-a"},
        {"name": "wlan0", "networkUUID": WIFI},
    ],
    "networkInstances": [
        {"uuidandversion": {"uuid": LOCAL, "version": "1"}, "displayname": "local", "instType": "ZnetInstLocal", "activate": True, "port": {"type": "PhyIoNetEth", "name": "uplink"},
         "ipType": "IPV4", "ip": {"subnet": "10.11.12.0/24", "gateway": "10.11.12.1", "dns": ["10.11.12.1"], "dhcpRange": {"start": "10.11.12.2", "end": "10.11.12.200"}, "ntp": "pool"},
         "staticRoutes": [{"destinationNetwork": "10.0.0.0/8", "gateway": "10.11.12.250"}, {"destinationNetwork": "10.1.0.0/16", "port": "lab"}]},
        {"uuidandversion": {"uuid": SWITCH, "version": "1"}, "displayname": "switch", "instType": 1, "activate": True, "port": {"name": "tagged"}, "ipType": 0,
         "vlanAccessPorts": [{"vlanId": 4094, "accessPort": "tagged"}]},
        {"uuidandversion": {"uuid": OWN, "version": "1"}, "displayname": "own", "instType": "ZnetInstLocal", "activate": True, "ip": {"subnet": "10.11.13.0/28"}},
    ],
    "datastores": [
        {"id": REGISTRY, "dType": "DsContainerRegistry", "fqdn": "docker://index.docker.io", "cipherData": block()},
        {"id": HTTPS, "dType": 2, "fqdn": "https://example.org:443", "dpath": "images"},
        {"id": BUCKET, "dType": "DsS3", "fqdn": "https://s3.example.org", "dpath": "bucket"},
    ],
    "contentInfo": [
        {"uuid": NGINX, "dsIdsList": [REGISTRY], "URL": "library/nginx:1.27", "iformat": "CONTAINER", "displayName": "nginx"},
        {"uuid": DISK, "dsIdsList": [HTTPS, BUCKET], "URL": "vm.qcow2", "iformat": "QCOW2", "sha256": SHA, "maxSizeBytes": "1000000"},
        {"uuid": EVE, "dsIdsList": [REGISTRY], "URL": "lfedge/eve:14.5.0", "iformat": 8},
    ],
    "volumes": [
        {"uuid": ROOT, "origin": {"type": "VCOT_DOWNLOAD", "downloadContentTreeID": NGINX}, "generationCount": "2"},
        {"uuid": DATA, "origin": {"type": 1}, "maxsizebytes": "1073741824"},
        {"uuid": VM, "origin": {"type": "VCOT_DOWNLOAD", "downloadContentTreeID": DISK}, "maxsizebytes": 2147483648},
        {"uuid": BLOB, "origin": {"type": "VCOT_DOWNLOAD", "downloadContentTreeID": DISK}, "target": "AppCustom"},
    ],
    "apps": [
        {"uuidandversion": {"uuid": WEB, "version": "1"}, "displayname": "web", "activate": True, "fixedresources": {"memory": 524288, "vcpus": 1, "virtualizationMode": 1},
         "volumeRefList": [{"uuid": ROOT, "generationCount": 2, "mountDir": "/"}, {"uuid": DATA, "mountDir": "/data"}],
         "interfaces": [{"name": "a", "networkId": LOCAL, "addr": "10.11.12.201", "macAddress": "02:00:00:00:00:01",
                         "acls": [{"id": 1, "matches": [{"type": "ip", "value": "0.0.0.0/0"}], "actions": [{}]},
                                  {"id": 2, "matches": [{"type": "protocol", "value": "tcp"}, {"type": "lport", "value": "8080"}], "actions": [{"portmap": True, "appPort": 80}]}]}],
         "cipherData": block(), "restart": {"counter": 1}, "purge": {"counter": 1}},
        {"uuidandversion": {"uuid": MACHINE, "version": "1"}, "displayname": "machine", "activate": True,
         "fixedresources": {"memory": 1048576, "vcpus": 2, "virtualizationMode": "HVM", "enableVnc": True, "vncDisplay": 1, "enableVncShimVm": True, "enforceNetworkInterfaceOrder": True},
         "volumeRefList": [{"uuid": VM}], "adapters": [{"type": "PhyIoUSB", "name": "usb"}], "userData": "YQ==",
         "interfaces": [{"name": "a", "networkId": SWITCH, "accessVlanId": 2, "interfaceOrder": 0, "acls": [{"id": 1, "matches": [{"type": "ip", "value": "0.0.0.0/0"}]}]},
                        {"name": "b", "networkId": OWN, "interfaceOrder": 1, "acls": [{"id": 2, "matches": [{"type": "host", "value": "example.org"}], "actions": [{"drop": True}]}]}]},
    ],
    "baseos": {"contentTreeUuid": EVE, "baseOsVersion": "14.5.0-kvm-amd64", "activate": True, "retryUpdate": {"counter": 1}},
    "cluster": {"clusterName": "c", "clusterId": CLUSTER, "clusterInterface": "eth4", "clusterIpPrefix": "10.244.244.2/28", "joinServerIp": "10.244.244.1",
                "clusterType": "CLUSTER_TYPE_K3S_BASE", "encryptedClusterToken": block(), "loadBalancerService": {"interfaces": [{"interfaceName": "eth0"}]}},
    "scepProfiles": [{"profileName": "p", "scepUrl": "https://scep.example.org/x", "csrProfile": {"renewPeriodPercent": 80}}],
    "pnacs": [{"logicallabel": "eth0", "eapMethod": "EAP_METHOD_TLS", "certEnrollmentProfileName": "p"}],
    "patchEnvelopes": [{"uuid": PATCH, "artifacts": [{"volumeRef": {"imageId": BLOB}}, {"inline": {"base64Data": "YQ=="}}]}],
    "edgeview": {"token": "a.b.c"},
    "locConfig": {"locUrl": "https://loc.example.org", "datastoreCollectInfoId": [HTTPS]},
}


def good():
    return copy.deepcopy(GOOD)
