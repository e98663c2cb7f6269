# SPDX-License-Identifier: Apache-2.0
"""VLANs and bonds as ports: nim makes them, the controller is reached over them, they change and go with their configuration. On Debian's
kernel, as the one that runs the tests may have neither."""
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests" / d) for d in ("api", "device", "agent")]

from fleet import Site  # noqa: E402
from netns import run  # noqa: E402
from seth import binary  # noqa: E402
from other_kernel import HOST, Checks, main  # noqa: E402
from test_controllerconn import ADDRESS, Net  # noqa: E402
from test_nim import OPTIONS, SECONDS, SUCCESS, Relay, World, dpc  # noqa: E402

checks = Checks(__file__, ("bridge", "8021q", "bonding", "veth"))
numbers = itertools.count()
VLAN, BOND = 1, 2
ROUND_ROBIN, ACTIVE_BACKUP = 1, 2


class LinkNet(Net):
    """eth0 and eth1 of the device are cables into one bridge of the controller, which is in VLANs 5 and 6, too."""

    def __init__(self):
        tag = f"ln{os.getpid()}-{next(numbers)}"
        self.device, self.controller, self.made = f"{tag}d", f"{tag}c", []

    def __enter__(self):
        try:
            for namespace in (self.device, self.controller):
                run("ip", "netns", "add", namespace)
                self.made.append(namespace)
                self.ip(namespace, "link set lo up")
            self.ip(self.controller, "link add br0 type bridge")
            for n in (0, 1):
                self.ip(self.device, f"link add eth{n} type veth peer name p{n} netns {self.controller}")
                self.ip(self.controller, f"link set p{n} master br0 up")
            for n in (5, 6):
                self.ip(self.controller, f"link add link br0 name br0.{n} type vlan id {n}")
                self.ip(self.controller, f"addr add 10.200.{n}.1/24 dev br0.{n}")
            self.ip(self.controller, "addr add 10.200.1.1/24 dev br0")
            for address in (ADDRESS, "10.200.2.1"):
                self.ip(self.controller, f"addr add {address}/32 dev lo")
            for name in ("br0", "br0.5", "br0.6"):
                self.ip(self.controller, f"link set {name} up")
            return self
        except BaseException:
            self.__exit__()
            raise


class Given:
    """A device that the server outside knows already, in place of a Site."""

    def __init__(self, given):
        self.device_port, self.root_pem, self.device = given["port"], given["root"].encode(), given["devices"].pop()
        self.server = self

    def onboarded(self):
        identity = types.SimpleNamespace(pem=self.device["certificate"].encode(), key_pem=lambda: self.device["key"].encode())
        return types.SimpleNamespace(identity=identity, uuid=self.device["uuid"])


class LinkWorld(World):
    def __init__(self, given, override):
        self.site, self.override, self.words, self.corp = Given(given), override, ("changes",), False
        self.stack, self.root = contextlib.ExitStack(), pathlib.Path(tempfile.mkdtemp(prefix="links-"))
        self.process = None

    def make_net(self):
        return LinkNet()

    def make_relay(self):
        return Relay(self.net, self.site.device_port, HOST)

    def links(self):
        """By name, as the kernel has them."""
        shown = subprocess.run(["ip", "-n", self.net.device, "-d", "-j", "link"], capture_output=True, text=True, check=True).stdout
        return {l["ifname"]: l for l in json.loads(shown)}

    def data(self, name):
        return self.links()[name]["linkinfo"]["info_data"]

    def members(self, bond):
        return sorted(n for n, l in self.links().items() if l.get("master") == bond)

    def controller(self, *ports, at="2025-01-01T00:00:00Z"):
        self.ok(dpc={**dpc(*ports, at=at), "Key": "zedagent"})


class AgentWorld(LinkWorld):
    """All of the agent that configurations and ports take, instead of nim alone."""

    def start(self):
        agent = pathlib.Path(binary()).resolve().parents[1] / "agent/program/seth-agent"
        words = [w for d in ("config", "persist", "run") for w in (f"--{d}-dir", str(self.root / d))]
        with open(self.root / "log", "ab") as log:
            self.process = subprocess.Popen(["ip", "netns", "exec", self.net.device, str(agent), "run", *words, "--ports", "manage", "--services",
                                             "client,zedagent,nodeagent,nim"], stderr=log)

    def stop(self):
        if self.process:
            self.process.terminate()
            code, self.process = self.process.wait(SECONDS), None
            assert code == 0, (self.root / "log").read_text()[-4000:]


def lower(n):
    return {"IfName": f"eth{n}", "Logicallabel": f"shop-{n}", "Phylabel": f"eth{n}"}


def upper(name, n, **more):
    return {"IfName": name, "Logicallabel": f"label-{name}", "IsMgmt": True, "IsL3Port": True, "Dhcp": 1, "Type": 4, "AddrSubnet": f"10.200.{n}.2/24",
            "Gateway": f"10.200.{n}.1", "DNSServers": ["10.200.1.1"], **more}


def vlan(name, n, parent="shop-0"):
    return upper(name, n, L2Type=VLAN, VLAN={"ParentPort": parent, "ID": n})


def bond(name, mode=ACTIVE_BACKUP, members=("shop-0", "shop-1"), **more):
    return upper(name, 1, L2Type=BOND, Bond={"AggregatedPorts": list(members), "Mode": mode,
                                             "MIIMonitor": {"Enabled": True, "Interval": 50, "UpDelay": 75}}, **more)


PLAIN = dpc({**upper("eth0", 1), "Logicallabel": "shop-0"})


def reaches(w, port, key="zedagent"):
    w.wait_state(SUCCESS, key)
    w.poll(port)
    return w.port(port)


def check_vlan_port_reaches_the_controller(given):
    with LinkWorld(given, PLAIN) as w:
        reaches(w, "eth0", "override")
        # One that somebody else has made stays as it is, whatever we do.
        w.net.ip(w.net.device, "link add link eth0 name theirs type vlan id 77")
        w.controller(lower(0), vlan("lan5", 5))
        port = reaches(w, "lan5")
        assert (port["L2Type"], port["VLAN"], port["Up"]) == (VLAN, {"ID": 5, "ParentPort": "shop-0"}, True), port
        assert port["AddrInfoList"][0]["Addr"] == "10.200.5.2" and w.relay.peers[-1] == "10.200.5.2", port
        made = w.links()["lan5"]
        assert (made["link"], made["linkinfo"]["info_data"]["id"]) == ("eth0", 5), made
        # Another life finds its own link and leaves it.
        w.process.kill()
        w.process.wait()
        w.start()
        reaches(w, "lan5")
        assert w.links()["lan5"]["ifindex"] == made["ifindex"]
        # Changed: another id under the same name is another link.
        w.controller(lower(0), {**vlan("lan5", 6)}, at="2025-02-01T00:00:00Z")
        w.wait(lambda: w.data("lan5")["id"] == 6, "the VLAN to be another")
        reaches(w, "lan5")
        assert w.relay.peers[-1] == "10.200.6.2"
        # No longer wanted: it goes, and theirs is still there.
        w.controller(PLAIN["Ports"][0], at="2025-03-01T00:00:00Z")
        reaches(w, "eth0")
        links = w.links()
        assert "lan5" not in links and links["theirs"]["linkinfo"]["info_data"]["id"] == 77, links


def check_bond_survives_the_loss_of_a_member(given):
    with LinkWorld(given, PLAIN) as w:
        reaches(w, "eth0", "override")
        w.controller(lower(0), lower(1), bond("uplink"))
        port = reaches(w, "uplink")
        data = w.data("uplink")
        # The kernel rounds the delay down to a multiple of the interval; that is no difference to repair.
        assert (data["mode"], data["miimon"], data["updelay"]) == ("active-backup", 50, 50), data
        assert w.members("uplink") == ["eth0", "eth1"] and port["L2Type"] == BOND, port
        index = w.links()["uplink"]["ifindex"]
        status = port["BondStatus"]
        assert status["Mode"] == ACTIVE_BACKUP and status["MIIMonitor"]["PollingInterval"] == 50, status
        assert sorted(m["Logicallabel"] for m in status["Members"]) == ["shop-0", "shop-1"], status
        # The cable of the active one is cut: the other one carries on.
        active = status["ActiveMember"][-1]
        w.net.ip(w.net.controller, f"link set p{active} down")
        other = f"shop-{1 - int(active)}"
        w.wait(lambda: w.port("uplink")["BondStatus"]["ActiveMember"] == other, "the other member to be active")
        assert {m["Logicallabel"]: m["MIIUp"] for m in w.port("uplink")["BondStatus"]["Members"]} == {f"shop-{active}": False, other: True}
        reaches(w, "uplink")
        assert w.status()["State"] == SUCCESS and not w.has_error("uplink")
        w.net.ip(w.net.controller, f"link set p{active} up")
        # One member less is the same bond, another mode is another.
        w.controller(lower(0), lower(1), bond("uplink", members=("shop-1",)), at="2025-02-01T00:00:00Z")
        w.wait(lambda: w.members("uplink") == ["eth1"], "eth0 to be released")
        reaches(w, "uplink")
        assert w.links()["uplink"]["ifindex"] == index
        w.controller(lower(0), lower(1), bond("uplink", ROUND_ROBIN), at="2025-03-01T00:00:00Z")
        w.wait(lambda: w.data("uplink")["mode"] == "balance-rr" and w.members("uplink") == ["eth0", "eth1"], "the mode to be another")
        reaches(w, "uplink")
        # No longer wanted: members are ordinary ports again.
        w.controller(PLAIN["Ports"][0], at="2025-04-01T00:00:00Z")
        reaches(w, "eth0")
        assert "uplink" not in w.links() and "master" not in w.links()["eth0"]


def check_vlan_over_a_bond(given):
    with LinkWorld(given, PLAIN) as w:
        below = {**bond("pair"), "IsMgmt": False, "IsL3Port": False, "Dhcp": 0, "AddrSubnet": "", "Gateway": "", "DNSServers": []}
        w.controller(vlan("lan5", 5, "label-pair"), below, lower(0), lower(1))
        reaches(w, "lan5")
        assert w.links()["lan5"]["link"] == "pair" and w.relay.peers[-1] == "10.200.5.2"
        # Another bond takes the VLAN with it, and it is made again.
        below["Bond"] = {**below["Bond"], "Mode": ROUND_ROBIN}
        w.controller(vlan("lan5", 5, "label-pair"), below, lower(0), lower(1), at="2025-02-01T00:00:00Z")
        w.wait(lambda: w.data("pair")["mode"] == "balance-rr" and w.links()["lan5"]["link"] == "pair", "both to be made again")
        reaches(w, "lan5")


def check_members_move_between_bonds(given):
    def second(*members):
        return {**bond("spare", members=members), "IsMgmt": False, "IsL3Port": False, "Dhcp": 0, "AddrSubnet": "", "Gateway": "", "DNSServers": []}

    with LinkWorld(given, PLAIN) as w:
        w.controller(second("shop-1"), bond("uplink", members=("shop-0",)), lower(0), lower(1))
        reaches(w, "uplink")
        assert (w.members("uplink"), w.members("spare")) == (["eth0"], ["eth1"])
        indexes = w.links()["uplink"]["ifindex"], w.links()["spare"]["ifindex"]
        w.controller(second("shop-0"), bond("uplink", members=("shop-1",)), lower(0), lower(1), at="2025-02-01T00:00:00Z")
        w.wait(lambda: (w.members("uplink"), w.members("spare")) == (["eth1"], ["eth0"]), "both to change places")
        reaches(w, "uplink")
        assert (w.links()["uplink"]["ifindex"], w.links()["spare"]["ifindex"]) == indexes


def config_of(device):
    """As a controller says it: a VLAN over a bond of both ports is the only way to it."""
    network = "0c000000-0000-4000-8000-000000000001"
    return {"id": {"uuid": str(device.uuid), "version": "7"},
            "deviceIoList": [{"ptype": "PhyIoNetEth", "phylabel": f"eth{n}", "logicallabel": f"shop-{n}", "phyaddrs": {"ifname": f"eth{n}"}} for n in (0, 1)],
            "bonds": [{"logicallabel": "pair", "interfaceName": "bo1", "lowerLayerNames": ["shop-0", "shop-1"], "bondMode": "BOND_MODE_ACTIVE_BACKUP",
                       "mii": {"interval": 100}}],
            "vlans": [{"logicallabel": "office", "interfaceName": "lan5", "lowerLayerName": "pair", "vlanId": 5}],
            "networks": [{"id": network, "type": "V4", "ip": {"dhcp": "Static", "subnet": "10.200.5.0/24", "gateway": "10.200.5.1", "dns": ["10.200.1.1"]}}],
            "systemAdapterList": [{"name": "way", "lowerLayerName": "office", "uplink": True, "networkUUID": network, "addr": "10.200.5.2"}]}


def check_agent_follows_the_controller(given):
    with AgentWorld(given, PLAIN) as w:
        w.wait_state(SUCCESS, "zedagent")
        links, port = w.links(), w.port("lan5")
        assert links["lan5"]["link"] == "bo1" and w.members("bo1") == ["eth0", "eth1"], links
        assert port["Logicallabel"] == "way" and port["AddrInfoList"][0]["Addr"] == "10.200.5.2" and w.relay.peers[-1] == "10.200.5.2", port
        assert w.data("lan5")["id"] == 5 and w.data("bo1")["mode"] == "active-backup"


def check_what_cannot_be_made_is_told(given):
    with LinkWorld(given, PLAIN) as w:
        # A name that another link has.
        w.net.ip(w.net.device, "link add taken type bridge")
        w.controller(lower(0), vlan("taken", 5), bond("nomode", mode=0, members=("shop-0",)))
        w.wait(lambda: "nomode cannot be made: Invalid argument" in json.dumps(w.list()), "the reason")
        assert w.links()["taken"]["linkinfo"]["info_kind"] == "bridge" and "nomode" not in w.links()
        # The next best configuration serves.
        reaches(w, "eth0", "override")


# ---- outside

def start(server):
    """One machine for all, and a device for each."""
    if checks.output is not None:
        return
    site, devices = Site(server), []
    for _ in [n for n in globals() if n.startswith("check_")]:
        device = site.onboarded()
        site.tell(device, config_of(device))
        devices.append({"uuid": str(device.uuid), "certificate": text(device.identity.pem), "key": text(device.identity.key_pem())})
    checks.start({"port": server.device_port, "root": text(site.root_pem), "devices": devices})


def text(pem):
    return pem.decode() if isinstance(pem, bytes) else pem


def test_vlan_port_reaches_the_controller(server):
    start(server)
    checks.assert_good("check_vlan_port_reaches_the_controller")


def test_bond_survives_the_loss_of_a_member(server):
    start(server)
    checks.assert_good("check_bond_survives_the_loss_of_a_member")


def test_vlan_over_a_bond(server):
    start(server)
    checks.assert_good("check_vlan_over_a_bond")


def test_members_move_between_bonds(server):
    start(server)
    checks.assert_good("check_members_move_between_bonds")


def test_agent_follows_the_controller(server):
    start(server)
    checks.assert_good("check_agent_follows_the_controller")


def test_what_cannot_be_made_is_told(server):
    start(server)
    checks.assert_good("check_what_cannot_be_made_is_told")


if __name__ == "__main__":
    main(globals())
