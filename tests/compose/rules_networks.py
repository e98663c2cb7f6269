# SPDX-License-Identifier: Apache-2.0
"""Networks of ports and network instances: addresses, subnets, DHCP ranges."""
import base64
import binascii
import ipaddress
import itertools

from validator import rule

MAX_DYNAMIC = 256


def address(text):
    try:
        return ipaddress.ip_address(text or "")
    except ValueError:
        return None


def subnet(text):
    try:
        return ipaddress.ip_network(text or "", strict=False) if "/" in (text or "") else None
    except ValueError:
        return None


def is_mtu(x):
    return x.get("mtu", 0) == 0 or 1280 <= x["mtu"] <= 65535


# ---- networks of ports ---------------------------------------------------------------------

@rule
def network_types_are_supported(c):
    """type: NETWORKTYPENOOP 0, V4 4, V6 6, V4Only 7, V6Only 8; DualV4V6 9 and Crypto* -> error. ip is mandatory unless type is 0."""
    for at, network in c.each("networks"):
        kind = network.get("type", "NETWORKTYPENOOP")
        if kind not in ("NETWORKTYPENOOP", "V4", "V6", "V4Only", "V6Only"):
            yield f"{at}.type", f"{kind} is not supported"
        elif kind != "NETWORKTYPENOOP" and "ip" not in network:
            yield f"{at}.ip", "is needed"


@rule
def networks_say_where_addresses_come_from(c):
    """ip.dhcp: Static 1, DHCPNone 2, Client 4; 0 -> error."""
    for at, network in c.each("networks"):
        if "ip" in network and network["ip"].get("dhcp") not in ("Static", "DHCPNone", "Client"):
            yield f"{at}.ip.dhcp", f"{network['ip'].get('dhcp')} is not supported"


@rule
def static_networks_are_complete(c):
    """Static needs SystemAdapter.addr plus ip.subnet (CIDR), gateway, dns."""
    for at, network in c.each("networks"):
        ip = network.get("ip", {})
        if ip.get("dhcp") != "Static":
            continue
        if not (subnet(ip.get("subnet")) and address(ip.get("gateway")) and ip.get("dns") and all(map(address, ip["dns"]))):
            yield f"{at}.ip", "a static network needs subnet, gateway and dns"
        for where, adapter in c.each("systemAdapterList"):
            if adapter.get("networkUUID") == network.get("id") and not address(adapter.get("addr")):
                yield f"{where}.addr", "a port of a static network needs an address"


@rule
def networks_have_one_ip_version(c):
    """Subnet, gateway, dns must be of one IP version."""
    for at, network in c.each("networks"):
        ip = network.get("ip", {})
        parts = [subnet(ip.get("subnet")), address(ip.get("gateway")), *map(address, ip.get("dns", []))]
        if len({part.version for part in parts if part}) > 1:
            yield f"{at}.ip", "mixes IPv4 and IPv6"


@rule
def mtus_are_in_range(c):
    """mtu 0 = default, else 1280..65535 (networks and network instances)"""
    for name in ("networks", "networkInstances"):
        for at, x in c.each(name):
            if not is_mtu(x):
                yield f"{at}.mtu", f"{x['mtu']} is not from 1280 to 65535"


@rule
def proxy_files_are_base64(c):
    """entProxy: pacfile (base64)"""
    for at, network in c.each("networks"):
        try:
            base64.b64decode(network.get("entProxy", {}).get("pacfile", ""), validate=True)
        except binascii.Error:
            yield f"{at}.entProxy.pacfile", "is no base64"


@rule
def wireless_settings_fit_their_type(c):
    """wireless: WiFi(1) wifiCfg[] {wifiSSID, keyScheme, ...}; Cellular(2) exactly one cellularCfg with access_points[]."""
    for at, network in c.each("networks"):
        wireless = network.get("wireless", {})
        kind, wifi, cellular = wireless.get("type", "TypeNOOP"), wireless.get("wifiCfg", []), wireless.get("cellularCfg", [])
        if kind == "WiFi" and not (wifi and all(w.get("wifiSSID") for w in wifi)):
            yield f"{at}.wireless.wifiCfg", "WiFi needs a network with a name"
        if kind == "Cellular" and not (len(cellular) == 1 and cellular[0].get("accessPoints")):
            yield f"{at}.wireless.cellularCfg", "Cellular needs exactly one with access points"
        if kind == "TypeNOOP" and (wifi or cellular):
            yield f"{at}.wireless.type", "is needed"


# ---- network instances ---------------------------------------------------------------------

def is_switch(instance):
    return instance.get("instType") == "ZnetInstSwitch"


def local_subnet(instance):
    return subnet(instance.get("ip", {}).get("subnet")) if instance.get("instType") == "ZnetInstLocal" else None


def ranges(instance):
    """(gateway, first, last) of a local instance as the device takes them, or None."""
    net, ip = local_subnet(instance), instance.get("ip", {})
    if net is None or net.num_addresses < 4:
        return None
    given = ip.get("dhcpRange", {})
    gateway = address(ip.get("gateway")) or net[1]
    last = address(given.get("end")) or net[-2]
    middle = net.num_addresses >= 16 and not given.get("end")
    first = address(given.get("start")) or (net[net.num_addresses // 2] if middle else net[2])
    return (gateway, first, last) if len({gateway.version, first.version, last.version, net.version}) == 1 else None


@rule
def instances_have_a_supported_type(c):
    """Only types 1 and 2 (switch, local) are supported."""
    for at, instance in c.each("networkInstances"):
        if instance.get("instType") not in ("ZnetInstSwitch", "ZnetInstLocal"):
            yield f"{at}.instType", f"{instance.get('instType')} is not supported"


@rule
def instances_of_running_apps_are_active(c):
    """activate=false leaves apps in AWAITNETWORKINSTANCE."""
    for at, app, _, instance in c.interfaces():
        if instance is not None and app.get("activate") and not instance.get("activate"):
            yield f"{at}.networkId", "the network instance is not active"


@rule
def local_instances_have_a_subnet(c):
    """Local: subnet mandatory, >= 4 addresses"""
    for at, instance in c.each("networkInstances"):
        if instance.get("instType") == "ZnetInstLocal":
            net = local_subnet(instance)
            if net is None or net.num_addresses < 4:
                yield f"{at}.ip.subnet", f"{instance.get('ip', {}).get('subnet')} is no subnet of at least 4 addresses"


@rule
def subnets_do_not_overlap(c):
    """No overlap with another instance or with a device port's IPv4 subnet."""
    used = [(at, local_subnet(i)) for at, i in c.each("networkInstances") if local_subnet(i)]
    ports = [(at, subnet(n.get("ip", {}).get("subnet"))) for at, n in c.each("networks")]
    pairs = itertools.chain(itertools.combinations(used, 2), itertools.product(used, [(at, net) for at, net in ports if net]))
    for (_, one), (at, other) in pairs:
        if one.version == other.version and one.overlaps(other):
            yield f"{at}.ip.subnet", f"{other} overlaps with {one}"


@rule
def dhcp_ranges_are_in_the_subnet(c):
    """The range lies in the subnet, start before end; at most 256 dynamic addresses."""
    for at, instance in c.each("networkInstances"):
        found, net = ranges(instance), local_subnet(instance)
        if not found:
            continue
        _, first, last = found
        if first not in net or last not in net or first > last:
            yield f"{at}.ip.dhcpRange", f"{first} to {last} is no part of {net}"
        elif instance["ip"].get("dhcpRange") and int(last) - int(first) >= MAX_DYNAMIC:
            yield f"{at}.ip.dhcpRange", f"{first} to {last} is more than {MAX_DYNAMIC} addresses"


@rule
def gateways_are_outside_the_dhcp_range(c):
    """Gateway must be in the subnet and outside the DHCP range."""
    for at, instance in c.each("networkInstances"):
        found, net = ranges(instance), local_subnet(instance)
        if found and (found[0] not in net or found[1] <= found[0] <= found[2]):
            yield f"{at}.ip.gateway", f"{found[0]} is outside {net} or inside the DHCP range"


@rule
def fixed_addresses_fit_their_network(c):
    """A static NetworkAdapter.addr must be inside the subnet and outside the DHCP range, IPv4 only."""
    for at, _, interface, instance in c.interfaces():
        if not interface.get("addr") or instance is None:
            continue
        found, net, addr = ranges(instance), local_subnet(instance), address(interface["addr"])
        if addr is None or addr.version != 4 or (found and (addr not in net or found[1] <= addr <= found[2])):
            yield f"{at}.addr", f"{interface['addr']} is no address outside the DHCP range of its network"


@rule
def switches_have_no_ip_type(c):
    """ipType for switch must be 0"""
    for at, instance in c.each("networkInstances"):
        if is_switch(instance) and instance.get("ipType", "First") != "First":
            yield f"{at}.ipType", "a switch has none"


@rule
def static_routes_are_complete(c):
    """Static routes (local only): destination CIDR, and gateway (not 0.0.0.0) and/or port label."""
    for at, instance in c.each("networkInstances"):
        for j, route in enumerate(instance.get("staticRoutes", [])):
            gateway = address(route.get("gateway"))
            has_hop = gateway is not None and not gateway.is_unspecified if route.get("gateway") else bool(route.get("port"))
            if is_switch(instance) or subnet(route.get("destinationNetwork")) is None or not has_hop:
                yield f"{at}.staticRoutes[{j}]", "needs a destination and a gateway or port, in a local network"


@rule
def access_vlans_are_in_range(c):
    """VLAN access ports (switch): vlan 1..4094"""
    for at, instance in c.each("networkInstances"):
        for j, access in enumerate(instance.get("vlanAccessPorts", [])):
            if not is_switch(instance) or not 1 <= access.get("vlanId", 0) <= 4094:
                yield f"{at}.vlanAccessPorts[{j}]", "needs a VLAN from 1 to 4094 of a switch"


@rule
def instances_have_one_time_server(c):
    """ip.more_ntp is not read for network instances (only ntp)."""
    for at, instance in c.each("networkInstances"):
        if instance.get("ip", {}).get("moreNtp"):
            yield f"{at}.ip.moreNtp", "is not read"
