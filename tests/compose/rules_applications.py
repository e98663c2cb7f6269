# SPDX-License-Identifier: Apache-2.0
"""Applications: what crashes a device, resources, interfaces and their rules."""
import base64
import binascii
import json
import re

from rules_networks import is_switch
from validator import rule

MATCHES = {"ip", "host", "eidset", "protocol", "lport", "fport", "adapter"}
MAX_LARGE, MAX_RECORD = 1 << 20, 64 << 10


@rule
def apps_have_what_devices_read_unchecked(c):
    """In every AppInstanceConfig set uuidandversion and fixedresources: a crash of the agent reboots the device."""
    for at, app in c.each("apps"):
        for key in ("uuidandversion", "fixedresources"):
            if not isinstance(app.get(key), dict):
                yield f"{at}.{key}", "is read without a check"


@rule
def apps_have_memory_and_processors(c):
    """memory in kilobytes, must be > 0; vcpus > 0"""
    for at, app in c.each("apps"):
        for key in ("memory", "vcpus"):
            if isinstance(app.get("fixedresources"), dict) and app["fixedresources"].get(key, 0) <= 0:
                yield f"{at}.fixedresources.{key}", "must be more than 0"


@rule
def apps_have_a_supported_mode(c):
    """virtualizationMode: PV 0, HVM 1, FML 3, NOHYPER 4 (mandatory with service=true), LEGACY 5."""
    for at, app in c.each("apps"):
        mode = (app.get("fixedresources") or {}).get("virtualizationMode", "PV")
        if mode not in ("PV", "HVM", "FML", "NOHYPER", "LEGACY") or app.get("service") and mode != "NOHYPER":
            yield f"{at}.fixedresources.virtualizationMode", f"{mode} does not fit"


@rule
def app_names_are_unique(c):
    """displayname should be unique per device: port-map checks skip equal names."""
    seen = set()
    for at, app in c.each("apps"):
        if app.get("displayname") in seen or not app.get("displayname"):
            yield f"{at}.displayname", f"{app.get('displayname')!r} is no name of its own"
        seen.add(app.get("displayname"))


@rule
def apps_have_a_root_volume(c):
    """First volume is the root."""
    for at, app in c.each("apps"):
        if not app.get("volumeRefList"):
            yield f"{at}.volumeRefList", "there is nothing to start from"


@rule
def mac_addresses_parse(c):
    """macAddress optional, must parse."""
    for at, _, interface, _ in c.interfaces():
        if interface.get("macAddress") and not re.fullmatch("([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}", interface["macAddress"]):
            yield f"{at}.macAddress", f"{interface['macAddress']} is no MAC address"


@rule
def interface_orders_are_unique(c):
    """By interface_order when enforce_network_interface_order is set (then unique across interfaces and network adapters)."""
    for at, app in c.each("apps"):
        if not (app.get("fixedresources") or {}).get("enforceNetworkInterfaceOrder"):
            continue
        network = [a for a in app.get("adapters", []) if str(a.get("type", "")).startswith("PhyIoNet")]
        orders = [x.get("interfaceOrder", 0) for x in app.get("interfaces", []) + network]
        if len(set(orders)) != len(orders):
            yield f"{at}.interfaces", f"orders {orders} repeat"


@rule
def interface_vlans_are_in_range(c):
    """access_vlan_id: 0 trunk, 2..4093."""
    for at, _, interface, _ in c.interfaces():
        vlan = interface.get("accessVlanId", 0)
        if vlan and not 2 <= vlan <= 4093:
            yield f"{at}.accessVlanId", f"{vlan} is not from 2 to 4093"


# ---- rules of interfaces -------------------------------------------------------------------

def matches_of(ace):
    return {m.get("type"): m.get("value", "") for m in ace.get("matches", [])}


def is_portmap(ace):
    return any(action.get("portmap") for action in ace.get("actions", []))


@rule
def acl_numbers_are_unique(c):
    """ACE ids unique, non-zero, < 2^24."""
    seen = set()
    for at, app, _, ace in c.aces():
        key = (id(app), ace.get("id", 0))
        if key in seen or not 0 < ace.get("id", 0) < 1 << 24:
            yield f"{at}.id", f"{ace.get('id', 0)} is no number of its own"
        seen.add(key)


@rule
def acl_matches_are_known(c):
    """Matches ANDed: ip, host, eidset, protocol, lport, fport, adapter; a port needs protocol."""
    for at, _, _, ace in c.aces():
        kinds = set(matches_of(ace))
        if not kinds <= MATCHES:
            yield f"{at}.matches", f"{sorted(map(str, kinds - MATCHES))} is unknown"
        if kinds & {"lport", "fport"} and "protocol" not in kinds:
            yield f"{at}.matches", "a port needs a protocol"


@rule
def acls_have_one_action(c):
    """One action per ACE: none/{} allow, drop, limit (limitrate, limitunit, limitburst), portmap + appPort."""
    for at, _, _, ace in c.aces():
        actions = ace.get("actions", [])
        if len(actions) > 1 or any(sum(bool(a.get(k)) for k in ("drop", "limit", "portmap")) > 1 for a in actions):
            yield f"{at}.actions", "there is more than one"


@rule
def port_maps_are_complete(c):
    """portmap + appPort, of one protocol and lport. Portmap on an air-gapped instance is rejected."""
    for at, _, instance, ace in c.aces():
        if not is_portmap(ace):
            continue
        kinds = matches_of(ace)
        if not kinds.get("lport") or not 0 < ace["actions"][0].get("appPort", 0) <= 65535:
            yield at, "a port map needs lport and appPort"
        if instance is not None and not instance.get("port", {}).get("name"):
            yield at, "the network leads nowhere"


@rule
def port_maps_do_not_collide(c):
    """The same protocol+lport on a shared port label is rejected."""
    seen = {}
    for at, _, instance, ace in c.aces():
        kinds = matches_of(ace)
        if is_portmap(ace) and instance is not None and kinds.get("lport"):
            key = (instance.get("port", {}).get("name"), kinds.get("protocol"), kinds["lport"])
            if key in seen:
                yield at, f"{key[1]} port {key[2]} is that of {seen[key]}"
            seen[key] = at


@rule
def switches_have_no_host_rules(c):
    """host/eidset not on switch."""
    for at, _, instance, ace in c.aces():
        if instance is not None and is_switch(instance) and set(matches_of(ace)) & {"host", "eidset"}:
            yield f"{at}.matches", "a switch knows no names"


# ---- the rest ------------------------------------------------------------------------------

@rule
def hardware_goes_to_one_app(c):
    """adapters (passthrough): the whole group goes to one app; not used by another app."""
    seen = set()
    for at, app in c.each("apps"):
        for j, adapter in enumerate(app.get("adapters", [])):
            groups = {io["assigngrp"] for io in c.list("deviceIoList") if io.get("assigngrp") and adapter.get("name") in (io["assigngrp"], io.get("logicallabel"), io.get("phylabel"))}
            if groups & seen:
                yield f"{at}.adapters[{j}]", f"{adapter.get('name')} is given away already"
            seen |= groups


@rule
def user_data_is_base64_and_once(c):
    """userData: base64 of cloud-init text. Use cipherData, not both."""
    for at, app in c.each("apps"):
        if app.get("userData") and "cipherData" in app:
            yield f"{at}.userData", "is also in cipherData"
        try:
            base64.b64decode(app.get("userData", ""), validate=True)
        except binascii.Error:
            yield f"{at}.userData", "is no base64"


@rule
def app_records_fit(c):
    """Limits: 1 MB per large field, 64 KB for the rest of the app record (many ACLs overflow it)."""
    for at, app in c.each("apps"):
        large = [app.get("userData", ""), app.get("cipherData", {}).get("cipherData", "")]
        rest = {k: v for k, v in app.items() if k not in ("userData", "cipherData")}
        if any(len(text) > MAX_LARGE for text in large) or len(json.dumps(rest)) > MAX_RECORD:
            yield at, "is larger than a device takes"


@rule
def vnc_shim_has_vnc(c):
    """enable_vnc_shim_vm requires enable_vnc."""
    for at, app in c.each("apps"):
        resources = app.get("fixedresources") or {}
        if resources.get("enableVncShimVm") and not resources.get("enableVnc"):
            yield f"{at}.fixedresources.enableVncShimVm", "needs enableVnc"


@rule
def vnc_displays_are_unique(c):
    """enable_vnc + vncDisplay (TCP 5900+n)"""
    seen = set()
    for at, app in c.each("apps"):
        resources = app.get("fixedresources") or {}
        display = resources.get("vncDisplay", 0)
        if resources.get("enableVnc") and display:
            if display in seen:
                yield f"{at}.fixedresources.vncDisplay", f"{display} is in use"
            seen.add(display)
