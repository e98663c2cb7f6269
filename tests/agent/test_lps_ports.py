# SPDX-License-Identifier: Apache-2.0
"""A real device whose ports a local profile server configures, an application of its own: what the kernel's interfaces become of it."""
import json
import subprocess

from agents import SECONDS
from seth import wait_until
from test_lps import Home, TOKEN

CONTROLLER, LPS = 1, 7
WAY_OUT, FIRST, SECOND = (f"0c000000-0000-4000-8000-00000000000{n}" for n in range(3))


def network(uuid, subnet, gateway=None):
    return {"id": uuid, "type": "V4", "ip": {"dhcp": "Static", "subnet": subnet, **({"gateway": gateway, "dns": [gateway]} if gateway else {})}}


class Wired(Home):
    """Its way out is eth0; eth1, which is open to changes from nearby, and eth2, which is not, lead nowhere."""

    def __init__(self):
        super().__init__()
        for name in ("eth1", "eth2"):
            self.ip("link", "add", name, "type", "veth", "peer", "name", f"{name}x")
            self.ip("link", "set", f"{name}x", "up")

    def ip(self, *words):
        return subprocess.run(["ip", "-n", self.place.network.name, *words], capture_output=True, text=True, check=True).stdout

    def begin(self):
        super().begin()
        net = self.place.network
        subnet = net.ours.rpartition(".")[0] + ".0/24"
        self.configure(networks=[network(WAY_OUT, subnet, net.ours), network(FIRST, "10.201.1.0/24"), network(SECOND, "10.201.2.0/24")],
                       deviceIoList=[{"ptype": "PhyIoNetEth", "phylabel": f"eth{n}", "logicallabel": f"eth{n}", "assigngrp": f"eth{n}",
                                      "phyaddrs": {"ifname": f"eth{n}"}} for n in range(3)])
        self.let(True)
        # Ports are managed from here on: before, the device would have lost its only way to the configuration that says how.
        self.place.agent.kill()
        self.place.agent.words = ("--ports", "manage")
        self.place.agent.start()
        self.until_address("eth1", "10.201.1.2/24")
        self.until_address("eth2", "10.201.2.2/24")
        return self

    def let(self, allows):
        """Whether eth1 may be changed from nearby."""
        adapters = [{"name": f"eth{n}", "lowerLayerName": f"eth{n}", "uplink": n == 0, "networkUUID": uuid, "addr": addr} for n, (uuid, addr) in
                    enumerate(((WAY_OUT, self.place.network.theirs), (FIRST, "10.201.1.2"), (SECOND, "10.201.2.2")))]
        adapters[1]["allowLocalModifications"] = allows
        self.configure(systemAdapterList=adapters)
        wait_until(lambda: (c := self.place.agent.topic("zedagent", "DevicePortConfig", "zedagent")) and
                   any(p["IfName"] == "eth1" and p.get("AllowLocalModifications", False) == allows for p in c["Ports"]), SECONDS, "the permission")

    def addresses(self, name):
        return [f"{a['local']}/{a['prefixlen']}" for i in json.loads(self.ip("-4", "-j", "addr", "show", "dev", name)) for a in i["addr_info"]]

    def until_address(self, name, address):
        wait_until(lambda: self.addresses(name) == [address], SECONDS, f"{name} to have {address}: it has {self.addresses(name)}")

    def port(self, name):
        return next(p for p in self.place.agent.topic("nim", "DeviceNetworkStatus")["Ports"] if p["IfName"] == name)

    def until_from(self, name, origin):
        wait_until(lambda: self.port(name)["ConfigSource"]["Origin"] == origin, SECONDS, f"{name} to be from {origin}")

    def told(self, name):
        """What the server was told last of its own configuration of the port."""
        return next((p for p in self.server.said["network"]["local_config"].get("ports", []) if p["logical_label"] == name), {})

    def until_told(self, name, **what):
        wait_until(lambda: all(self.told(name).get(k) == v for k, v in what.items()), SECONDS, f"to be told {what} of {name}: {self.told(name)}")


def static(name, address, **more):
    return {"logical_label": name, "ip_addresses": [address], **more}


def test_ports_are_configured_from_nearby():
    with Wired().begin() as home:
        server = home.serve()
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN)
        server.until_asked("network", 1)
        assert not server.said["network"]["local_config"].get("ports"), server.said["network"]
        assert "10.201.1.2/24" in json.dumps(server.said["network"]["port_status"]), server.said["network"]
        # What makes no sense is refused whole, in words.
        server.answers["network"] = {"ports": [static("eth1", "10.201.1.77/24"), static("eth1", "10.201.1.78/24")]}
        wait_until(lambda: server.said["network"]["local_config"].get("error_message") == 'port "eth1": configured more than once', SECONDS, "the reason")
        server.answers["network"] = {"server_token": "guess", "ports": [static("eth1", "10.201.1.77/24")]}
        wait_until(lambda: "invalid token" in server.said["network"]["local_config"].get("error_message", ""), SECONDS, "the token to be refused")
        assert home.addresses("eth1") == ["10.201.1.2/24"]
        # One port may be changed, the other may not.
        server.answers["network"] = {"ports": [static("eth1", "10.201.1.77/24", mtu=1400), static("eth2", "10.201.2.77/24")]}
        home.until_address("eth1", "10.201.1.77/24")
        home.until_told("eth1", config_applied=True)
        assert home.told("eth1")["config_source"]["origin"] in (LPS, "NETWORK_CONFIG_ORIGIN_LPS"), home.told("eth1")
        home.until_told("eth2", error_message='local modifications not permitted for port "eth2"')
        assert home.addresses("eth2") == ["10.201.2.2/24"] and home.port("eth2")["LpsConfigError"]
        assert home.port("eth1")["ConfigSource"]["Origin"] == LPS and home.port("eth2")["ConfigSource"]["Origin"] == CONTROLLER
        wait_until(lambda: home.port("eth1")["MTU"] == 1400, SECONDS, "the MTU")
        assert not home.port("eth1")["IsMgmt"] and home.port("eth0")["ConfigSource"]["Origin"] == CONTROLLER
        kept = home.place.agent.topic("nim", "DevicePortConfigList", persistent=True)
        assert "10.201.1.77" not in json.dumps(kept), kept
        # Nothing new, then nobody there: it stays; and after a restart.
        server.answers["network"] = None
        server.until_asked("network")
        server.close()
        home.server = None
        home.place.agent.kill()
        home.ip("addr", "flush", "dev", "eth1")
        home.place.agent.start()
        home.until_address("eth1", "10.201.1.77/24")
        wait_until(lambda: home.agent_status().get("ConfigGetStatus") == 1, SECONDS, "a configuration again")
        home.until_from("eth1", LPS)
        assert home.addresses("eth1") == ["10.201.1.77/24"]
        # The controller takes the permission back, and gives it again.
        server = home.serve()
        server.until_asked("network", 1)
        home.until_told("eth1", config_applied=True)
        home.let(False)
        home.until_address("eth1", "10.201.1.2/24")
        home.until_told("eth1", error_message='local modifications not permitted for port "eth1"')
        home.let(True)
        home.until_address("eth1", "10.201.1.77/24")
        # The server does not know of ports any more.
        server.answers["network"] = 404
        home.until_address("eth1", "10.201.1.2/24")
        home.until_from("eth1", CONTROLLER)


def test_without_the_server_ports_are_the_controllers():
    with Wired().begin() as home:
        server = home.serve()
        server.answers["network"] = {"ports": [static("eth1", "10.201.1.77/24")]}
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN)
        home.until_address("eth1", "10.201.1.77/24")
        home.configure(localProfileServer=None, profileServerToken=None)
        home.until_address("eth1", "10.201.1.2/24")
        assert not (home.place.agent.root / "persist/checkpoint/localnetworkconfig").exists()
