# SPDX-License-Identifier: Apache-2.0
"""Hardware, ports, uplinks, bonds and VLANs."""
from rules_references import RESERVED_LABELS
from validator import label_of, lower_of, rule

ADDRESS_KEYS = {"pcilong", "ifname", "serial", "irq", "ioports", "usbaddr", "usbproduct"}


@rule
def hardware_addresses_are_known(c):
    """phyaddrs keys (case-insensitive): pcilong, ifname, serial, irq, ioports, usbaddr, usbproduct; others are ignored."""
    for at, io in c.each("deviceIoList"):
        for key in io.get("phyaddrs", {}):
            if key.lower() not in ADDRESS_KEYS:
                yield f"{at}.phyaddrs", f"{key} is no address"


@rule
def hardware_has_a_label(c):
    """logicallabel empty -> phylabel is used: one of them is there."""
    for at, io in c.each("deviceIoList"):
        if not label_of(io):
            yield at, "has no label"


@rule
def ports_are_distinct(c):
    """Same logical label, interface name or bus address on two ports -> both in error. A lower layer matches exactly one."""
    seen = set()
    named = [(at, ("label", label_of(io))) for at, io in c.each("deviceIoList") if label_of(io)]
    named += [(at, ("label", x.get("logicallabel"))) for name in ("bonds", "vlans") for at, x in c.each(name) if x.get("logicallabel")]
    for at, io in c.each("deviceIoList"):
        named += [(f"{at}.phyaddrs", (key.lower(), value)) for key, value in io.get("phyaddrs", {}).items() if key.lower() in ("ifname", "pcilong", "usbaddr") and value]
    for at, what in named:
        if what in seen:
            yield at, f"{what[0]} {what[1]} stands twice"
        seen.add(what)


@rule
def virtual_functions_are_in_range(c):
    """vflist (type PhyIoNetEthPF 11): vf_count, optional per VF {index, mac, vlan_id <= 4094}"""
    for at, io in c.each("deviceIoList"):
        functions = io.get("vflist")
        if not functions:
            continue
        if io.get("ptype") != "PhyIoNetEthPF":
            yield f"{at}.vflist", "only a physical function has virtual ones"
        for j, function in enumerate(functions.get("data", [])):
            if function.get("vlanId", 0) > 4094 or function.get("index", 0) >= functions.get("vfCount", 0):
                yield f"{at}.vflist.data[{j}]", "is out of range"


@rule
def free_uplink_is_not_sent(c):
    """PhysicalIO.usagePolicy.freeUplink on any IO switches cost handling to the old mode; do not send it."""
    for at, io in c.each("deviceIoList"):
        if "freeUplink" in io.get("usagePolicy", {}):
            yield f"{at}.usagePolicy.freeUplink", "is sent"


@rule
def there_is_an_uplink(c):
    """If no adapter has uplink=true, all are treated as management. A port config without any valid management port is ignored."""
    if not c.uplinks():
        yield "systemAdapterList", "no port is an uplink"


@rule
def uplinks_have_addresses(c):
    """uplink=true needs a networkUUID with dhcp Client or Static. DHCPNone 2 only non-management."""
    for at, adapter in c.each("systemAdapterList"):
        if not adapter.get("uplink"):
            continue
        network = c.networks.get(adapter.get("networkUUID"))
        if not adapter.get("networkUUID"):
            yield f"{at}.networkUUID", "an uplink needs a network"
        elif network and network.get("ip", {}).get("dhcp") == "DHCPNone" or network and network.get("type", "NETWORKTYPENOOP") == "NETWORKTYPENOOP":
            yield f"{at}.networkUUID", "an uplink needs an address"


@rule
def costs_are_in_range(c):
    """cost 0..255 (larger is clamped)"""
    for at, adapter in c.each("systemAdapterList"):
        if not 0 <= adapter.get("cost", 0) <= 255:
            yield f"{at}.cost", f"{adapter['cost']} is more than 255"


@rule
def images_can_be_downloaded(c):
    """A cost above network.download.max.cost (default 0) is not used for image downloads: an only uplink with cost > 0 downloads nothing."""
    most = c.items.get("network.download.max.cost", "0")
    if not c.list("contentInfo") or not c.uplinks() or not most.isdigit():
        return
    if all(a.get("cost", 0) > int(most) for a in c.uplinks()):
        yield "systemAdapterList", f"every uplink costs more than {most}"


@rule
def labels_are_free(c):
    """shared_labels: "all", "uplink", "freeuplink" are reserved (error if set), and a port name may not be a label."""
    names = {a.get("name") for a in c.list("systemAdapterList")}
    for at, adapter in c.each("systemAdapterList"):
        for label in adapter.get("sharedLabels", []):
            if label in RESERVED_LABELS or label in names:
                yield f"{at}.sharedLabels", f"{label} is reserved or a port"


@rule
def ports_in_use_are_not_passed_through(c):
    """A port used by a SystemAdapter cannot be passed through to an app at the same time. The whole group goes to one app."""
    used = {lower_of(a) for a in c.list("systemAdapterList")}
    used |= {v.get("lowerLayerName") for v in c.list("vlans")} | {n for b in c.list("bonds") for n in b.get("lowerLayerNames", [])}
    for at, app in c.each("apps"):
        for j, adapter in enumerate(app.get("adapters", [])):
            group = [io for io in c.list("deviceIoList") if io.get("assigngrp") and adapter.get("name") in (io["assigngrp"], io.get("logicallabel"), io.get("phylabel"))]
            for io in group:
                if label_of(io) in used:
                    yield f"{at}.adapters[{j}]", f"{label_of(io)} is a port of the device"


@rule
def bonds_and_vlans_are_named(c):
    """Bonds and VLANs: logicallabel required; interface_name <= 15 characters, default = label, "bond0" is reserved"""
    for name in ("bonds", "vlans"):
        for at, x in c.each(name):
            interface = x.get("interfaceName") or x.get("logicallabel", "")
            if not x.get("logicallabel"):
                yield f"{at}.logicallabel", "is needed"
            elif len(interface) > 15 or interface == "bond0":
                yield f"{at}.interfaceName", f"{interface!r} cannot be the name of an interface"


@rule
def vlan_numbers_are_in_range(c):
    """VLAN id 1..4094"""
    for at, vlan in c.each("vlans"):
        if not 1 <= vlan.get("vlanId", 0) <= 4094:
            yield f"{at}.vlanId", f"{vlan.get('vlanId', 0)} is not from 1 to 4094"


@rule
def bond_members_have_no_other_use(c):
    """A bond member may not carry IP, a VLAN, or a second bond."""
    taken = [lower_of(a) for a in c.list("systemAdapterList")] + [v.get("lowerLayerName") for v in c.list("vlans")]
    members = [(f"{at}.lowerLayerNames", name) for at, bond in c.each("bonds") for name in bond.get("lowerLayerNames", [])]
    for i, (at, name) in enumerate(members):
        if name in taken or name in [other for _, other in members[:i]]:
            yield at, f"{name} is in use"
