# SPDX-License-Identifier: Apache-2.0
"""nim on real interfaces against a real server: the ports of a device in a network namespace, without any rule that routes by source
address. Needs root; without it these tests fail and say so."""
import base64
import contextlib
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tarfile
import tempfile
import threading
import time

from fleet import Site
from seth import Server, wait_until
from test_controllerconn import ADDRESS, NAME, Authority, Dns, Net, Proxy
from tool import TOOLS, Asked

SECONDS = 60
TOOL = str(TOOLS / "nim_tool")
FAIL, FAIL_WITH_IP_AND_DNS, SUCCESS, IPDNS_WAIT, INTERFACE_WAIT, REMOTE_WAIT = 1, 2, 3, 4, 6, 7
WAITING, ONBOARDED, SILENT = 1, 4, 5
OPTIONS = ("--tls-san", NAME)
HURRY = {"timer.port.testduration": 1, "timer.port.testinterval": 2, "timer.port.timeout": 3, "timer.metric.interval": 1}
PING = f"https://{NAME}/api/v2/edgedevice/ping"


def when(text):
    """A time that sorts, however many digits its fraction has."""
    seconds, _, fraction = text.rstrip("Z").partition(".")
    return seconds, fraction.ljust(9, "0")


class PlainNet(Net):
    """As a machine has it that routes by destination alone: eth0 has the best default route, whatever the source."""

    def __enter__(self):
        super().__enter__()
        try:
            for n, name in ((1, "eth0"), (2, "wwan0"), (3, "corp0")):
                self.ip(self.device, f"rule del from 10.200.{n}.2 table {100 + n}")
                self.ip(self.device, f"route add default via 10.200.{n}.1 dev {name} metric {n}00")
            return self
        except BaseException:
            self.__exit__()
            raise


class Relay:
    """The controller's address in its namespace; whoever comes is led to the server, and remembered."""

    def __init__(self, net, port, host="127.0.0.1"):
        self.socket, self.server, self.peers = net.listen(net.controller, (ADDRESS, 443)), (host, port), []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, peer = self.socket.accept()
                threading.Thread(target=self.relay, args=(client, peer[0]), daemon=True).start()

    def relay(self, client, peer):
        with client, contextlib.suppress(OSError), socket.create_connection(self.server, timeout=SECONDS) as out:
            self.peers.append(peer)
            back = threading.Thread(target=Proxy.copy, args=(out, client), daemon=True)
            back.start()
            Proxy.copy(client, out)
            back.join(SECONDS)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class World(Asked):
    """A device that the server knows, its network, and its directories as an installer leaves them."""

    def __init__(self, server, override=None, words=(), corp=False):
        self.site, self.override, self.words, self.corp = Site(server), override, words, corp
        self.stack, self.root = contextlib.ExitStack(), pathlib.Path(tempfile.mkdtemp(prefix="nim-"))
        self.tool = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.root, ignore_errors=True)
            self.net = stack.enter_context(self.make_net())
            resolvers = pathlib.Path("/etc/netns") / self.net.device  # `ip netns exec` shows them to the process
            stack.callback(shutil.rmtree, resolvers, ignore_errors=True)
            resolvers.mkdir(parents=True)
            (resolvers / "resolv.conf").write_text("nameserver 10.200.1.1\n")
            names = {NAME: ADDRESS}
            self.relay = stack.enter_context(contextlib.closing(self.make_relay()))
            self.dns = [stack.enter_context(contextlib.closing(Dns(self.net, self.net.controller, f"10.200.{n}.1", names))) for n in (1, 2)]
            if self.corp:
                self.corp_dns = stack.enter_context(contextlib.closing(Dns(self.net, self.net.corp, "10.200.3.1", {"wpad.corp.example": "10.200.3.1"})))
                self.proxy = stack.enter_context(contextlib.closing(Proxy(self.net, names)))
            device = self.site.onboarded()
            self.write("config/server", NAME + "\n")
            self.write("config/root-certificate.pem", self.site.root_pem)
            self.write("config/device.cert.pem", device.identity.pem)
            self.write("config/device.key.pem", device.identity.key_pem())
            self.write("persist/status/zedclient/OnboardingStatus/global.json", json.dumps({"DeviceUUID": str(device.uuid)}))
            if self.override is not None:
                self.write("config/DevicePortConfig/override.json", json.dumps(self.override))
            stack.callback(self.stop)
            self.start()
            self.stack = stack.pop_all()
            return self

    def __exit__(self, *_):
        self.stack.close()

    def make_net(self):
        return PlainNet()

    def make_relay(self):
        return Relay(self.net, self.site.server.device_port)

    def start(self):
        self.process = subprocess.Popen(["ip", "netns", "exec", self.net.device, TOOL, *(str(self.root / d) for d in ("config", "persist", "run")),
                                         *self.words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ok(items=HURRY)

    def stop(self):
        if self.process:
            self.process.stdin.close()
            code, self.process = self.process.wait(SECONDS), None
            assert code == 0, code

    # -- files

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.root / name).read_text())
        return {}

    def status(self):
        return self.read("run/nim/DeviceNetworkStatus/global.json")

    def list(self):
        return self.read("persist/status/nim/DevicePortConfigList/global.json")

    def keys(self):
        return [d["Key"] for d in self.list().get("PortConfigList") or []]

    def port(self, name):
        return next((p for p in self.status().get("Ports") or [] if p["IfName"] == name), {})

    def has_error(self, name):
        p = self.port(name)
        return when(p["LastFailed"]) > when(p["LastSucceeded"])

    def led(self):
        return self.read("run/global/LedBlinkCounter/ledconfig.json").get("BlinkCounter")

    def metrics(self):
        return self.read("run/nim/MetricsMap/global.json")

    # -- the tool

    def wait_order(self, *names):
        """Until services would try these ports, in this order."""
        self.wait(lambda: self.ask(order=True) == list(names), f"the order {names}")

    def poll(self, port):
        """One that is answered with a configuration, over this port."""
        self.wait(lambda: self.ask(order=True)[0] == port, f"the turn of {port}")
        answer = self.ask(poll=True)
        assert (answer["error"], answer["http"], answer["port"]) == (0, 200, port), answer

    def wait(self, condition, what, seconds=SECONDS):
        def asked():
            with contextlib.suppress(KeyError):
                return condition()

        try:
            wait_until(asked, seconds, what)
        except AssertionError:
            raise AssertionError(f"gave up waiting for {what}: {json.dumps(self.status(), indent=1)}\n{json.dumps(self.list(), indent=1)}") from None

    def wait_state(self, state, key=None):
        self.wait(lambda: (s := self.status()).get("State") == state and not s["Testing"] and key in (None, s["DPCKey"]), f"state {state} of {key}")


def static(name, n, cost=0, **more):
    return {"IfName": name, "IsMgmt": True, "Cost": cost, "Dhcp": 1, "Type": 4, "AddrSubnet": f"10.200.{n}.2/24", "Gateway": f"10.200.{n}.1",
            "DNSServers": [f"10.200.{n}.1"], **more}


def dpc(*ports, at="2024-01-01T00:00:00Z", **more):
    return {"Version": 1, "TimePriority": at, "Ports": list(ports), **more}


ETH, WWAN = static("eth0", 1), static("wwan0", 2, cost=10)
TWO = dpc(ETH, WWAN)


# ---- where it is

class Web:
    """Answers each GET on the controller's address with what `answer` says, and keeps what was asked."""

    def __init__(self, net, answer):
        self.socket, self.answer, self.asked = net.listen(net.controller, (ADDRESS, 80)), answer, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, peer = self.socket.accept()
                with client:
                    self.asked.append((peer[0], client.recv(4096).decode()))
                    status, body = self.answer()
                    client.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body))

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def test_ports_tell_where_they_are(server):
    geo = {"ip": "203.0.113.7", "city": "Husum", "country": "DE", "loc": "54.47,9.05", "org": "AS64500 Example", "more": 1, "region": "x" * 300}
    answers = [(500, b""), (200, b"no JSON")]
    with World(server, TWO, words=(f"geo=http://{NAME}/json",)) as w:
        with contextlib.closing(Web(w.net, lambda: answers.pop() if answers else (200, json.dumps(geo).encode()))) as web:
            w.ok(items={**HURRY, "timer.port.georetry": 5})
            w.wait_state(SUCCESS, "override")
            for name in ("eth0", "wwan0"):
                w.wait(lambda: w.port(name)["AddrInfoList"][0].get("Geo", {}).get("city") == "Husum", f"the place of {name}")
                address = w.port(name)["AddrInfoList"][0]
                assert address["Geo"] == {"ip": "203.0.113.7", "city": "Husum", "country": "DE", "loc": "54.47,9.05", "org": "AS64500 Example",
                                          "hostname": "", "region": "", "postal": ""}, address
                assert when(address["LastGeoTimestamp"]) > when("2026-01-01T00:00:00Z"), address
            # Over each port, from its address, and it says nothing of the device; bad answers are asked for again.
            assert {peer for peer, _ in web.asked} == {"10.200.1.2", "10.200.2.2"} and len(web.asked) >= 4, web.asked
            assert not any("serial" in text.lower() or "uuid" in text.lower() for _, text in web.asked), web.asked
            # What is known is not asked for again, and is none of the controller's metrics.
            n = len(web.asked)
            w.poll("eth0")
            assert len(web.asked) == n and set(w.metrics()["eth0"]["URLCounters"]) == {PING}, w.metrics()


# ---- traces

def test_what_happened_to_tests_is_kept_for_later(server):
    with World(server, TWO) as w:
        w.wait_state(SUCCESS, "override")
        kept = w.root / "persist/netdump"
        w.wait(lambda: list(kept.glob("nim-ok-*.tgz")), "an archive of a good test")
        # Many tests, one archive.
        n = w.metrics()["eth0"]["SuccessCount"] if w.metrics() else 0
        w.wait(lambda: w.metrics()["eth0"]["SuccessCount"] >= n + 3, "more tests")
        (path,) = kept.iterdir()
        assert re.fullmatch(r"nim-ok-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.tgz", path.name) and path.stat().st_mode & 0o777 == 0o644, path
        with tarfile.open(path) as tar:
            files = {m.name.removeprefix(path.stem + "/"): tar.extractfile(m).read().decode() for m in tar.getmembers()}
        assert set(files) >= {"eve/dns.json", "eve/dpcl.json", "eve/controller.txt", "eve/device-uuid.txt", "linux/interfaces.json",
                              "requests/ping/nettrace.json"}, files.keys()
        assert json.loads(files["eve/dns.json"])["DPCKey"] == "override" and files["eve/controller.txt"] == NAME
        assert {i["name"] for i in json.loads(files["linux/interfaces.json"])} >= {"eth0", "wwan0"}
        texts = [e["text"] for e in json.loads(files["requests/ping/nettrace.json"])["events"]]
        assert any(PING in t and "10.200.1.2" in t for t in texts) and any(t.startswith("HTTP 200") for t in texts), texts
        # A bad one is of another topic.
        for cable in ("toeth", "towwan"):
            w.net.ip(w.net.controller, f"link set {cable} down")
        w.wait(lambda: list(kept.glob("nim-fail-*.tgz")), "an archive of a bad test")


def test_no_traces_are_kept_where_they_are_not_wanted(server):
    with World(server, TWO) as w:
        w.ok(items={**HURRY, "netdump.enable": False})
        w.wait_state(SUCCESS, "override")
        shutil.rmtree(w.root / "persist/netdump", ignore_errors=True)
        w.wait(lambda: w.metrics()["eth0"]["SuccessCount"] >= 4, "some tests")
        assert not (w.root / "persist/netdump").exists()


# ---- two management ports

def test_traffic_moves_when_the_cheap_port_is_cut_and_returns(server):
    with World(server, TWO) as w:
        w.wait_state(SUCCESS, "override")
        w.wait(lambda: w.led() == ONBOARDED, "the LED to tell")
        assert w.port("eth0")["BindsDevice"] and w.port("eth0")["AddrInfoList"][0]["Addr"] == "10.200.1.2", w.port("eth0")
        for _ in range(5):
            w.poll("eth0")
        # Cut: the link goes down, the status says so at once, and polls never fail.
        w.net.ip(w.net.controller, "link set toeth down")
        w.wait(lambda: not w.port("eth0")["Up"] and w.has_error("eth0") and not w.has_error("wwan0"), "the cut to be noticed", 10)
        w.wait_order("wwan0")
        for _ in range(7):
            w.poll("wwan0")
        assert "no IP address" in w.port("eth0")["LastError"], w.port("eth0")
        assert w.status()["State"] == SUCCESS, w.status()
        # Restored: it returns. (The kernel has dropped the routes of the interface's network, none of the device's own.)
        w.net.ip(w.net.controller, "link set toeth up")
        w.wait(lambda: w.port("eth0")["Up"] and not w.has_error("eth0"), "the cable to be back")
        assert w.port("eth0")["LastError"] == ""
        w.wait_order("eth0", "wwan0")
        for _ in range(3):
            w.poll("eth0")
        metrics = w.ask(metrics=True)
        assert (metrics["eth0"]["SuccessCount"], metrics["eth0"]["FailureCount"]) == (8, 0), metrics
        assert (metrics["wwan0"]["SuccessCount"], metrics["wwan0"]["FailureCount"]) == (7, 0), metrics
        counts = {p: next(u for name, u in metrics[p]["URLCounters"].items() if name.endswith("/config")) for p in ("eth0", "wwan0")}
        assert [(u["SentMsgCount"], u["RecvMsgCount"]) for u in counts.values()] == [(8, 8), (7, 7)], counts
        # nim's own: pings over both, nothing but pings. Sources are those of the ports: the interfaces were bound.
        w.wait(lambda: w.metrics()["wwan0"]["URLCounters"][PING]["SentMsgCount"] >= 1 and w.metrics()["eth0"]["SuccessCount"] >= 2, "nim's metrics")
        assert set(w.metrics()["eth0"]["URLCounters"]) == {PING}, w.metrics()
        assert {"10.200.1.2", "10.200.2.2"} == set(w.relay.peers), w.relay.peers


def test_a_cut_that_no_link_shows_is_found_by_the_next_test(server):
    with World(server, TWO) as w:
        w.wait_state(SUCCESS, "override")
        w.poll("eth0")
        w.net.ip(w.net.device, "neigh replace 10.200.1.1 lladdr 02:00:00:00:00:99 dev eth0 nud permanent")
        w.wait(lambda: w.has_error("eth0") and not w.has_error("wwan0"), "a test to fail on eth0")
        w.poll("wwan0")
        assert w.port("eth0")["Up"] and w.status()["State"] == SUCCESS and w.status()["DPCKey"] == "override"
        w.net.ip(w.net.device, "neigh del 10.200.1.1 dev eth0")
        w.wait(lambda: not w.has_error("eth0"), "a test to succeed on eth0")
        w.poll("eth0")
        w.wait(lambda: w.metrics()["eth0"]["FailureCount"] >= 1 and w.metrics()["wwan0"]["SuccessCount"] >= 1, "both to be counted")


def test_a_port_with_nothing_but_a_proxy(server):
    corp = static("corp0", 3, DNSServers=["10.200.3.1"], Proxies=[{"type": 1, "server": "10.200.3.1", "port": 3128}])
    with World(server, dpc(corp), corp=True) as w:
        w.wait_state(SUCCESS, "override")
        for _ in range(4):
            w.poll("corp0")
        assert set(w.relay.peers) == {"10.200.4.2"} and set(w.proxy.asked) == {f"CONNECT {NAME}:443"}, (w.relay.peers, w.proxy.asked)
        metrics = w.ask(metrics=True)
        assert (metrics["corp0"]["SuccessCount"], metrics["corp0"]["FailureCount"]) == (4, 0), metrics
        w.wait(lambda: w.metrics()["corp0"]["URLCounters"][PING]["SentMsgCount"] >= 1, "nim's metrics")


def test_all_three_ports_by_their_costs(server):
    corp = static("corp0", 3, cost=20, DNSServers=["10.200.3.1"], Proxies=[{"type": 1, "server": "10.200.3.1", "port": 3128}])
    with World(server, dpc(corp, WWAN, ETH), corp=True) as w:
        w.wait_state(SUCCESS, "override")
        w.poll("eth0")
        w.net.ip(w.net.controller, "link set toeth down")
        w.wait(lambda: w.has_error("eth0"), "eth0 to be out")
        w.poll("wwan0")
        w.net.ip(w.net.controller, "link set towwan down")
        w.wait(lambda: w.has_error("wwan0"), "wwan0 to be out")
        w.poll("corp0")
        assert w.relay.peers[-1] == "10.200.4.2" and w.status()["State"] == SUCCESS


def test_a_network_that_has_its_own_proxy_script(server):
    """Discovery: nim fetches the script, everybody else only sees it in the status."""
    script = b'function FindProxyForURL(url, host) { return "PROXY 10.200.3.1:3128"; }'
    corp = static("corp0", 3, DNSServers=["10.200.3.1"], DomainName="corp.example", NetworkProxyEnable=True)
    with World(server, dpc(corp), corp=True) as w:
        # No script yet: the test fails and says why.
        w.wait(lambda: "wpad.corp.example" in w.port("corp0")["LastError"], "the missing script to be reported")
        web = w.net.listen(w.net.corp, ("10.200.3.1", 80))

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with web.accept()[0] as c:
                        c.recv(4096)
                        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ns-proxy-autoconfig\r\nContent-Length: %d\r\n"
                                  b"Connection: close\r\n\r\n%s" % (len(script), script))

        threading.Thread(target=serve, daemon=True).start()
        try:
            w.wait_state(SUCCESS, "override")
            assert w.port("corp0")["WpadURL"] == "http://wpad.corp.example/wpad.dat" and w.port("corp0")["Pacfile"], w.port("corp0")
            w.poll("corp0")
            assert w.relay.peers[-1] == "10.200.4.2"
        finally:
            with contextlib.suppress(OSError):
                web.shutdown(socket.SHUT_RDWR)
            web.close()


def test_a_proxy_that_looks_into_tls(server):
    """Whoever is at the controller's address shows a certificate of its own: believed only where a port names its authority."""
    authority = Authority("curious proxy")
    with World(server, dpc(ETH)) as w:
        w.wait_state(SUCCESS, "override")
        w.relay.close()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name, text in zip(("cert", "key"), authority.issue("c", [NAME])):
            w.write(name, text)
        context.load_cert_chain(w.root / "cert", w.root / "key")
        listener = w.net.listen(w.net.controller, (ADDRESS, 443))

        def serve():
            while True:
                try:
                    client = listener.accept()[0]
                except OSError:
                    return
                with contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as c:
                    c.recv(4096)
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        try:
            w.wait(lambda: w.has_error("eth0") and "certificate" in w.port("eth0")["LastError"], "the stranger to be refused")
            known = {**ETH, "pubsub-large-ProxyCertPEM": [base64.b64encode(authority.pem().encode()).decode()]}
            w.ok(dpc=dpc(known, Key="zedagent", at="2026-01-01T00:00:00Z"))
            w.wait_state(SUCCESS, "zedagent")
            assert w.ask(poll=True)["http"] == 200, "other services believe it, too"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


# ---- configurations that come and go

def test_bad_configuration_of_the_controller_falls_back_and_is_reported(server):
    with World(server, dpc(ETH)) as w:
        w.wait_state(SUCCESS, "override")
        # Named after the wrong network: an address and a resolver, but nobody there.
        w.net.ip(w.net.device, "addr add 10.200.55.2/24 dev corp0")
        w.ok(dpc=dpc(static("corp0", 3), Key="zedagent", at="2026-01-01T00:00:00Z"))
        w.wait(lambda: w.keys() == ["zedagent", "override"] and w.list()["CurrentIndex"] == 1 and not w.status()["Testing"], "the way back")
        first = w.list()["PortConfigList"][0]
        assert first["State"] == FAIL_WITH_IP_AND_DNS and when(first["LastFailed"]) > when(first["LastSucceeded"]) and "corp0" in first["LastError"], first
        assert first["Ports"][0]["LastError"] and w.status()["DPCKey"] == "override" and w.status()["State"] == SUCCESS
        assert w.status()["CurrentIndex"] == 1
        w.poll("eth0")
        # A port that does not exist is waited for, then given up.
        w.ok(dpc=dpc(static("eth7", 7), Key="zedagent", at="2026-02-01T00:00:00Z"))
        w.wait(lambda: w.status()["State"] == INTERFACE_WAIT and w.status()["DPCKey"] == "zedagent", "the wait for eth7")
        w.wait_state(SUCCESS, "override")
        assert w.list()["PortConfigList"][0]["State"] == FAIL, w.list()
        # The right one is taken over, and what it replaces is forgotten.
        w.ok(dpc=dpc(WWAN, Key="zedagent", at="2026-03-01T00:00:00Z"))
        w.wait_state(SUCCESS, "zedagent")
        w.wait(lambda: w.keys() == ["zedagent"] and w.list()["CurrentIndex"] == 0, "the list to be short")
        w.poll("wwan0")
        assert w.list()["PortConfigList"][0]["Ports"][0]["ConfigSource"]["Origin"] == 1


def test_what_works_is_known_after_a_restart(server):
    with World(server, TWO) as w:
        w.wait_state(SUCCESS, "override")
        w.ok(dpc=dpc(ETH, Key="zedagent", at="2026-03-01T00:00:00Z"))
        w.wait_state(SUCCESS, "zedagent")
        w.wait(lambda: w.keys() == ["zedagent"], "the list to be short")
        w.stop()
        w.write("persist/checkpoint/lastconfig", "a configuration was here once")
        shutil.rmtree(w.root / "run")
        w.start()
        # The installer's file serves no more: the controller has been heard.
        w.wait_state(SUCCESS, "zedagent")
        w.poll("eth0")
        assert w.keys() == ["zedagent"]


def test_last_resort(server):
    with World(server, dpc(static("eth7", 7))) as w:
        w.wait(lambda: w.status()["State"] in (INTERFACE_WAIT, FAIL), "eth7 to be missed")
        w.ok(items={**HURRY, "network.fallback.any.eth": 2})
        w.wait_state(SUCCESS, "lastresort")
        assert w.keys() == ["override", "lastresort"], w.keys()
        assert {p["IfName"] for p in w.status()["Ports"]} == {"eth0", "corp0"}, "radios need more configuration"
        assert all(p["Dhcp"] == 4 and p["ConfigSource"]["Origin"] == 4 for p in w.status()["Ports"])
        assert w.list()["PortConfigList"][1]["TimePriority"] == "1970-01-01T00:00:00Z"


def test_a_plain_machine_without_any_configuration(server):
    """Its ports are taken as they are, at once; a resolver is all that is missing here, so the server is named by its address."""
    with World(server, words=("machine",)) as w:
        pass
    with Server("--tls-san", ADDRESS) as by_address:
        w = World(by_address, words=("machine",))
        original = w.write
        w.write = lambda name, content: original(name, ADDRESS + "\n" if name == "config/server" else content)
        with w:
            begin = time.monotonic()
            w.wait_state(SUCCESS, "lastresort")
            assert time.monotonic() - begin < 20
            ports = w.status()["Ports"]
            assert [p["IfName"] for p in ports] and all(p["IsMgmt"] and p["Cost"] == 0 and p["Dhcp"] == 0 for p in ports), ports
            answers = [w.ask(poll=True) for _ in range(6)]
            assert all(a["error"] == 0 for a in answers) and {a["port"] for a in answers} <= {"eth0", "wwan0"}, answers
            # A port that comes later is taken, too.
            w.net.link(w.net.device, "eth5", "10.200.5.2", w.net.controller, "tofive", "10.200.5.1")
            w.wait(lambda: w.port("eth5"), "eth5 to become a port")


def test_nothing_reaches_the_controller(server):
    with World(server, dpc(ETH)) as w:
        w.wait_state(SUCCESS, "override")
        w.net.ip(w.net.controller, "link set toeth down")
        w.wait(lambda: w.led() == WAITING, "the LED to tell")
        w.wait(lambda: w.has_error("eth0"), "the port's error")
        w.net.ip(w.net.controller, "link set toeth up")
        w.wait_state(SUCCESS, "override")
        w.wait(lambda: w.led() == ONBOARDED, "the LED to tell")
        w.poll("eth0")


def test_a_controller_that_refuses_is_a_controller_that_is_there(server):
    with World(server, dpc(ETH)) as w:
        w.wait_state(SUCCESS, "override")
        w.stop()
        w.relay.close()
        w.start()
        w.wait_state(REMOTE_WAIT, "override")
        w.wait(lambda: "refused" in w.list()["PortConfigList"][0]["LastWarning"].lower(), "the warning")
        first = w.list()["PortConfigList"][0]
        assert "LastError" not in first and when(first["LastSucceeded"]) > when(first["LastFailed"]), first


def test_radio_silence_is_told_and_stops_tests(server):
    with World(server, dpc(ETH)) as w:
        w.wait_state(SUCCESS, "override")
        w.ok(agent={"Name": "zedagent", "RadioSilence": {"Imposed": True, "ChangeInProgress": True}})
        w.wait(lambda: w.status()["RadioSilence"]["Imposed"] and not w.status()["RadioSilence"]["ChangeInProgress"], "silence")
        w.wait(lambda: w.led() == SILENT, "the LED to tell")
        succeeded = when(w.port("eth0")["LastSucceeded"])
        n = len(w.relay.peers)
        w.ok(agent={"Name": "zedagent", "RadioSilence": {"Imposed": False}})
        w.wait(lambda: when(w.port("eth0")["LastSucceeded"]) > succeeded and len(w.relay.peers) > n, "tests to go on")
        w.wait(lambda: w.led() == ONBOARDED, "the LED to tell")


def test_ports_are_set_up_where_that_is_allowed(server):
    """The machine has no address at all; the configuration gives it both, and the way out."""
    with World(server, TWO, words=("changes",)) as w:
        pass
    w = World(server, TWO, words=("changes",))
    original = w.start

    def start():
        for name in ("eth0", "wwan0"):
            w.net.ip(w.net.device, f"addr flush dev {name}")
            w.net.ip(w.net.device, f"link set {name} down")
        original()

    w.start = start
    with w:
        w.wait_state(SUCCESS, "override")
        assert w.port("eth0")["AddrInfoList"][0]["Addr"] == "10.200.1.2", w.port("eth0")
        w.poll("eth0")
        w.net.ip(w.net.controller, "link set toeth down")
        w.wait(lambda: w.has_error("eth0"), "the cut to be noticed")
        w.poll("wwan0")


def test_a_local_profile_server_changes_the_only_ports_there_are(server):
    """Both ways out are open to it: nobody but it decides, until one is not."""
    def local(*ports):
        return {"Version": 1, "Key": "lps", "Ports": [{"Logicallabel": p["IfName"], "ConfigSource": {"Origin": 7, "SubmittedAt": "2026-01-01T00:00:00Z"}, **p}
                                                     for p in ports]}

    def addresses(w, name):
        shown = subprocess.run(["ip", "-n", w.net.device, "-4", "-j", "addr", "show", "dev", name], capture_output=True, text=True, check=True).stdout
        return [a["local"] for i in json.loads(shown) for a in i["addr_info"]]

    def controller(w, at, *ports):
        w.ok(dpc={**dpc(*ports, at=at), "Key": "zedagent"})

    opened = [{**p, "AllowLocalModifications": True} for p in (ETH, WWAN)]
    with World(server, TWO, words=("changes",)) as w:
        controller(w, "2025-01-01T00:00:00Z", *opened)
        w.wait_state(SUCCESS, "zedagent")
        # Another address, on which the controller is reached as well; what it costs is not the server's to say.
        w.ok(lps=local({**ETH, "AddrSubnet": "10.200.1.7/24", "Cost": 99, "IsMgmt": False}))
        w.wait(lambda: addresses(w, "eth0") == ["10.200.1.7"], "the address")
        w.wait(lambda: w.port("eth0")["ConfigSource"]["Origin"] == 7 and not w.has_error("eth0"), "the port to work")
        w.wait_state(SUCCESS, "zedagent")
        w.poll("eth0")
        assert w.relay.peers[-1] == "10.200.1.7" and w.port("eth0")["Cost"] == 0, w.relay.peers
        # Both are spoiled: the controller is gone, and still nothing else is tried.
        w.ok(lps=local({**ETH, "AddrSubnet": "10.200.77.7/24", "Gateway": "10.200.77.1", "DNSServers": ["10.200.77.1"]},
                       {**WWAN, "AddrSubnet": "10.200.78.7/24", "Gateway": "10.200.78.1", "DNSServers": ["10.200.78.1"]}))
        w.wait_state(FAIL_WITH_IP_AND_DNS, "zedagent")
        assert addresses(w, "eth0") == ["10.200.77.7"] and addresses(w, "wwan0") == ["10.200.78.7"]
        # A better order is tried at once.
        w.ok(lps=local({**ETH, "AddrSubnet": "10.200.1.8/24"}, {**WWAN, "AddrSubnet": "10.200.78.7/24"}))
        w.wait_state(SUCCESS, "zedagent")
        assert addresses(w, "eth0") == ["10.200.1.8"]
        # The controller closes them.
        controller(w, "2025-02-01T00:00:00Z", ETH, WWAN)
        w.wait(lambda: addresses(w, "eth0") == ["10.200.1.2"] and addresses(w, "wwan0") == ["10.200.2.2"], "its own addresses")
        w.wait(lambda: w.port("eth0")["LpsConfigError"] == 'local modifications not permitted for port "eth0"', "the reason")
        assert "10.200.1.8" not in json.dumps(w.list())
