# SPDX-License-Identifier: Apache-2.0
"""Judges an EdgeDevConfig (protobuf JSON) by what EVE devices make of it, independently of whoever composed it.

    findings = validate(config)              of one configuration
    findings = validate_change(old, new)     of one that follows another on the same device

A finding names its rule and the place. Each rule is a function in rules_*.py whose text is the rule. Rules look at what they
need and leave the rest to others: what does not resolve is reported once, by the rule about references."""
import collections
import importlib
import re

Finding = collections.namedtuple("Finding", "rule path text")

RULES, CHANGE_RULES = {}, {}
MODULES = ("rules_references", "rules_ports", "rules_networks", "rules_storage", "rules_applications", "rules_device", "rules_changes")
MAPS = {"phyaddrs", "cbattr"}

# Numbers of enums, for those who send numbers. Names are unique enough: a number is looked up by the field.
ENUMS = {
    "ptype": {0: "PhyIoNoop", 1: "PhyIoNetEth", 2: "PhyIoUSB", 3: "PhyIoCOM", 4: "PhyIoAudio", 5: "PhyIoNetWLAN", 6: "PhyIoNetWWAN", 7: "PhyIoHDMI", 11: "PhyIoNetEthPF", 12: "PhyIoNetEthVF"},
    "dhcp": {0: "DHCPNoop", 1: "Static", 2: "DHCPNone", 4: "Client"},
    "instType": {0: "ZNetInstFirst", 1: "ZnetInstSwitch", 2: "ZnetInstLocal"},
    "ipType": {0: "First", 1: "IPV4", 2: "IPV6"},
    "dType": {0: "DsUnknown", 1: "DsHttp", 2: "DsHttps", 3: "DsS3", 4: "DsSFTP", 5: "DsContainerRegistry", 6: "DsAzureBlob", 7: "DsGoogleStorage"},
    "iformat": {0: "FmtUnknown", 1: "RAW", 2: "QCOW", 3: "QCOW2", 4: "VHD", 5: "VMDK", 6: "OVA", 7: "VHDX", 8: "CONTAINER", 9: "ISO", 10: "PVC"},
    "virtualizationMode": {0: "PV", 1: "HVM", 2: "Filler", 3: "FML", 4: "NOHYPER", 5: "LEGACY"},
    "target": {0: "TgtUnknown", 1: "Disk", 5: "AppCustom"},
    "eapMethod": {0: "EAP_METHOD_UNSPECIFIED", 1: "EAP_METHOD_TLS"},
    "clusterType": {0: "CLUSTER_TYPE_UNSPECIFIED", 1: "CLUSTER_TYPE_K3S_BASE", 2: "CLUSTER_TYPE_REPLICATED_STORAGE"},
    ("networks", "type"): {0: "NETWORKTYPENOOP", 4: "V4", 6: "V6", 7: "V4Only", 8: "V6Only", 9: "DualV4V6"},
    ("wireless", "type"): {0: "TypeNOOP", 1: "WiFi", 2: "Cellular"},
    ("origin", "type"): {0: "VCOT_UNKNOWN", 1: "VCOT_BLANK", 2: "VCOT_DOWNLOAD"},
}
WIDE = {"generationCount", "maxsizebytes", "maxSizeBytes", "controllerEpoch"}


def rule(function):
    """A rule of one configuration: a generator of (path, text)."""
    RULES[function.__name__] = function
    return function


def change_rule(function):
    """A rule of two configurations, the older one first."""
    CHANGE_RULES[function.__name__] = function
    return function


def normal(value, name="", above=""):
    """With names in lowerCamelCase, enums by name and 64-bit integers as numbers; absent enums stay absent."""
    if isinstance(value, list):
        return [normal(item, name, above) for item in value]
    if isinstance(value, dict):
        if name in MAPS:
            return dict(value)
        return {key: normal(below, key, name) for key, below in ((re.sub("_(.)", lambda m: m.group(1).upper(), k), v) for k, v in value.items())}
    names = ENUMS.get((above, name)) or ENUMS.get(name)
    if names and isinstance(value, int) and not isinstance(value, bool):
        return names.get(value, f"unknown {value}")
    return int(value) if name in WIDE and isinstance(value, str) else value


class Config:
    """A configuration with the look-ups that rules share."""

    def __init__(self, raw):
        self.raw = normal(raw)
        self.volumes = self.by("volumes", "uuid")
        self.contents = self.by("contentInfo", "uuid")
        self.datastores = self.by("datastores", "id")
        self.networks = self.by("networks", "id")
        self.instances = {i.get("uuidandversion", {}).get("uuid"): i for i in self.list("networkInstances")}
        self.items = {i.get("key"): i.get("value", "") for i in self.list("configItems")}

    def list(self, name):
        return self.raw.get(name, [])

    def by(self, name, key):
        return {item[key]: item for item in self.list(name) if item.get(key)}

    def each(self, name):
        """(path, element) of a list."""
        return [(f"{name}[{i}]", item) for i, item in enumerate(self.list(name))]

    def interfaces(self):
        """(path, application, interface, its network instance or None)"""
        for at, app in self.each("apps"):
            for j, interface in enumerate(app.get("interfaces", [])):
                yield f"{at}.interfaces[{j}]", app, interface, self.instances.get(interface.get("networkId"))

    def aces(self):
        """(path, application, network instance, rule of an interface)"""
        for at, app, interface, instance in self.interfaces():
            for k, ace in enumerate(interface.get("acls", [])):
                yield f"{at}.acls[{k}]", app, instance, ace

    def datastores_of(self, content):
        """The datastores of a content tree that are there."""
        return [self.datastores[i] for i in datastore_ids(content) if i in self.datastores]

    def is_registry(self, content):
        return any(d.get("dType") == "DsContainerRegistry" for d in self.datastores_of(content))

    def uplinks(self):
        return [a for a in self.list("systemAdapterList") if a.get("uplink")]

    def cipher_blocks(self, value=None, path=""):
        """(path, block) wherever one is."""
        value = self.raw if value is None else value
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield from self.cipher_blocks(item, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, below in value.items():
                at = f"{path}.{key}" if path else key
                if isinstance(below, dict) and key in ("cipherData", "encryptedClusterToken", "scepChallengePassword", "metadataCipherData"):
                    yield at, below
                elif isinstance(below, (dict, list)):
                    yield from self.cipher_blocks(below, at)


def datastore_ids(content):
    return content.get("dsIdsList") or ([content["dsId"]] if content.get("dsId") else [])


def label_of(io):
    """An empty logical label is the physical one."""
    return io.get("logicallabel") or io.get("phylabel", "")


def lower_of(adapter):
    return adapter.get("lowerLayerName") or adapter.get("name", "")


def is_network_io(io):
    return io.get("ptype", "PhyIoNoop") in ("PhyIoNetEth", "PhyIoNetWLAN", "PhyIoNetWWAN", "PhyIoNetEthPF", "PhyIoNetEthVF")


def load():
    for name in MODULES:
        importlib.import_module(name)


def judge(rules, *configs):
    load()
    return [Finding(name, *found) for name, function in rules.items() for found in function(*configs)]


def validate(config):
    """What is wrong with a configuration; an empty list when nothing is."""
    return judge(RULES, Config(config))


def validate_change(old, new):
    """What is wrong with going from one to the other, besides what validate() says of each."""
    return judge(CHANGE_RULES, Config(old), Config(new))
