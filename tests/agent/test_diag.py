# SPDX-License-Identifier: Apache-2.0
"""The report of connectivity, in network namespaces: a device with ports, a controller behind a name; what is broken is what is reported."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

from cryptography import x509
from cryptography.hazmat.primitives import serialization

import eve
import wire
from seth import wait_until
from test_controllerconn import ADDRESS, NAME, Authority, Dns, Https, Net, Proxy, QuietHandler, port
from tool import TOOLS

SECONDS = 90
TOOL = str(TOOLS / "diag_tool")
FAIL, SUCCESS = 1, 3
ETH, WWAN = port("eth0", 1), port("wwan0", 2, cost=10)
CORP = port("corp0", 3, Proxies=[{"type": 1, "server": "10.200.3.1", "port": 3128}], DNSServers=[])
QUIET = {"diag.probe.remote.http.endpoint": "", "diag.probe.remote.https.endpoint": ""}


def identity_of(pems):
    return eve.Identity(serialization.load_pem_private_key(pems[1].encode(), None), x509.load_pem_x509_certificate(pems[0].encode()))


class Controller(Https):
    """HTTPS in the controller's namespace: ping, and uuid in an envelope that a device believes."""

    def __init__(self, net, authority, tls):
        self.requests, self.status = [], 200
        self.signing = identity_of(authority.issue("signing"))
        self.device = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(tls[0] + tls[1])
            f.flush()
            context.load_cert_chain(f.name)
        controller = self

        class Handler(QuietHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                controller.requests.append((self.command, self.path, dict(self.headers)))
                body = b""
                if self.path.endswith("/uuid"):
                    reply = wire.encode("uuid.UuidResponse", {"uuid": controller.device})
                    body = eve.seal(controller.signing, reply, sender_hash=controller.signing.pem_hash)
                self.send_response(controller.status)
                self.send_header("Content-Type", eve.PROTO)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

        super().__init__(net, (ADDRESS, 443), context, Handler)

    def certs(self):
        """The checkpoint of a device that has been here."""
        return wire.encode("certs.ZControllerCert", {"certs": [
            {"hashAlgo": 1, "certHash": self.signing.pem_hash[:16], "type": eve.SIGNING, "cert": self.signing.pem}]})


class PoliteProxy(Proxy):
    """Has an answer for those who do not want a tunnel, too."""

    def relay(self, client):
        if client.recv(4, socket.MSG_PEEK) != b"GET ":
            super().relay(client)
            return
        with client:
            client.recv(4096)
            client.sendall(b"HTTP/1.1 400 a proxy\r\nContent-Length: 0\r\n\r\n")


class World:
    """A device's directories and its network."""

    def __init__(self, names=None, with_controller=True):
        self.names, self.with_controller = {NAME: ADDRESS} if names is None else names, with_controller

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.net = stack.enter_context(Net())
            self.authority = Authority("root")
            self.controller = Controller(self.net, self.authority, self.authority.issue("c", [NAME])) if self.with_controller else None
            if self.controller:
                stack.callback(self.controller.close)
            for n in (1, 2):
                stack.enter_context(contextlib.closing(Dns(self.net, self.net.controller, f"10.200.{n}.1", self.names)))
            self.proxy = stack.enter_context(contextlib.closing(PoliteProxy(self.net, {NAME: ADDRESS})))
            self.root = pathlib.Path(tempfile.mkdtemp(prefix="diag-"))
            stack.callback(shutil.rmtree, self.root)
            cert, key = self.authority.issue("device-1")
            for name, content in (("config/server", NAME + "\n"), ("config/root-certificate.pem", self.authority.pem()),
                                  ("config/device.cert.pem", cert), ("config/device.key.pem", key)):
                self.write(name, content.encode())
            if self.controller:
                self.write("persist/checkpoint/controllercerts", self.controller.certs())
            self.stack = stack.pop_all()
            return self

    def __exit__(self, *_):
        self.stack.close()

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def start(self, *words, ports=(ETH,), state=FAIL, items=None):
        command = ["ip", "netns", "exec", self.net.device, TOOL, *(str(self.root / d) for d in ("config", "persist", "run")), *words]
        return Run(command, list(ports), state, QUIET if items is None else items)

    def report(self, *words, **more):
        """(exit code, what it printed)"""
        with self.start(*words, **more) as r:
            out = r.process.communicate(timeout=SECONDS)[0]
            return r.process.returncode, json.loads(out) if "json" in words else out


class Run:
    def __init__(self, command, ports, state, items):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.publish("", "LedBlinkCounter", {"BlinkCounter": 2}, key="ledconfig")
        self.publish("nim", "DevicePortConfigList", {"CurrentIndex": 0, "PortConfigList": [{"Key": "zedagent"}, {"Key": "lastresort"}]}, persistent=True)
        self.network(ports, state)
        self.say({"items": items})

    def say(self, command):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()

    def publish(self, agent, topic, value, key="global", persistent=False):
        self.say({"agent": agent, "topic": topic, "key": key, "persistent": persistent, "value": value})

    def network(self, ports, state):
        self.publish("nim", "DeviceNetworkStatus", {"Version": 1, "State": state, "DPCKey": "zedagent", "Ports": ports})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(SECONDS)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def checks(report, name="eth0"):
    found = next(p for p in report["ports"] if p["name"] == name)
    return found["result"], {c["check"]: c["result"] for c in found["checks"]}


def test_all_is_well():
    with World() as w:
        code, report = w.report("json", f"state={w.root}/diag.out", ports=(ETH, WWAN, {**port("app0", 7), "IsMgmt": False}))
        assert code == 0, report
        assert report["result"] == "pass" and report["managementPorts"] == report["passedPorts"] == 2
        assert checks(report) == ("pass", {"lookup": "pass", "ping": "pass", "uuid": "pass"}) == checks(report, "wwan0")
        assert checks(report, "app0") == ("skipped", {})
        assert report["server"] == NAME and report["device"] == "" and report["portConfig"]["key"] == "zedagent" and report["portConfig"]["state"] == "FAIL"
        assert report["summary"] == {"level": "error", "led": 2, "words": "Trying to connect to EV Controller"}
        lookup = report["ports"][0]["checks"][0]
        assert lookup["target"] == NAME and lookup["words"] == ADDRESS and lookup["tries"] == 1
        assert json.loads((w.root / "diag.out").read_text()) == report
        # The UUID is never named, the serial number is.
        assert {(m, p) for m, p, _ in w.controller.requests} == {("GET", "/api/v2/edgedevice/ping"), ("POST", "/api/v2/edgedevice/uuid")}
        code, text = w.report(ports=(ETH,))
        assert code == 0 and f"PASS: port eth0 fully connected to EV controller {NAME}\n" in text
        assert text.endswith("PASS: All ports specified to have EV controller connectivity passed test\n")
        assert "INFO: eth0: DNS servers: 10.200.1.1\n" in text and "INFO: Using priority 0 DevicePortConfig key zedagent\n" in text
        assert "INFO: Have 1 backup DevicePortConfig\n" in text and "INFO: eth0: no http(s) proxy\n" in text


def test_the_name_is_not_found():
    with World(names={}) as w:
        code, report = w.report("json", ports=(ETH,))
        assert code == 1 and report["result"] == "fail" and checks(report) == ("fail", {"lookup": "fail"})
        code, text = w.report(ports=({**ETH, "DNSServers": []},))
        assert code == 1 and "ERROR: eth0: lookup controller.example failed after 0 tries: the port has no DNS server\n" in text
        assert "FAIL: port eth0 not connected" in text and w.controller.requests == []


def test_the_controller_is_down_but_the_internet_is_there():
    with World(names={NAME: ADDRESS, "probe.example": "10.200.1.1"}, with_controller=False) as w:
        plain = http.server.ThreadingHTTPServer(("10.200.1.1", 80), http.server.BaseHTTPRequestHandler, bind_and_activate=False)
        plain.socket.close()
        plain.socket = w.net.listen(w.net.controller, ("10.200.1.1", 80))
        plain.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=plain.serve_forever, args=(0.05,), daemon=True).start()
        with contextlib.closing(plain.socket):
            code, report = w.report("json", ports=(ETH,), items={"diag.probe.remote.http.endpoint": "probe.example",
                                                                 "diag.probe.remote.https.endpoint": "probe.example"})
            plain.shutdown()
        assert code == 1 and checks(report) == ("fail", {"lookup": "pass", "ping": "fail", "probe-http": "pass", "probe-https": "fail"})
        ping = report["ports"][0]["checks"][1]
        assert ping["tries"] == 5 and "ECONNREFUSED" in ping["words"] and ping["ms"] >= 4000


def test_there_is_no_way():
    with World() as w:
        w.net.ip(w.net.device, "route del default table 101")
        w.net.ip(w.net.device, "route add unreachable default table 101")
        w.net.ip(w.net.controller, "link set toeth down")
        items = {"diag.probe.remote.http.endpoint": "10.200.9.9", "diag.probe.remote.https.endpoint": ""}
        code, report = w.report("json", ports=(ETH,), items=items)
        assert code == 1 and checks(report) == ("fail", {"lookup": "fail"})
        w.write("config/server", ADDRESS.encode())  # nothing to look up
        code, report = w.report("json", ports=(ETH,), items=items)
        assert code == 1 and checks(report) == ("fail", {"lookup": "pass", "ping": "fail", "probe-http": "fail"})
        assert w.controller.requests == []


def test_one_of_two_ports():
    with World() as w:
        w.net.ip(w.net.device, "link set eth0 down")
        code, report = w.report("json", ports=({**ETH, "AddrInfoList": []}, WWAN))
        assert code == 0 and report["result"] == "warning" and (report["managementPorts"], report["passedPorts"]) == (2, 1)
        assert checks(report) == ("fail", {}) and checks(report, "wwan0")[0] == "pass"


def test_a_proxy_is_the_only_way():
    with World() as w:
        code, report = w.report("json", ports=(CORP,))
        assert code == 0 and checks(report, "corp0") == ("pass", {"lookup": "fail", "ping": "pass", "uuid": "pass"}), report
        assert report["ports"][0]["proxy"]["list"] == [{"type": "https", "server": "10.200.3.1:3128"}]
        w.controller.status = 503
        code, report = w.report("json", ports=(CORP,))
        assert code == 1 and checks(report, "corp0")[1] == {"lookup": "fail", "ping": "fail", "proxy": "pass"}, report


def test_simulated_failures():
    with World() as w:
        code, report = w.report("json", "dns")
        assert code == 1 and report["ports"][0]["checks"][0]["words"] == "simulated failure"
        code, report = w.report("json", "ping")
        assert code == 1 and checks(report) == ("fail", {"lookup": "pass", "ping": "fail"})


def test_a_controller_that_is_not_believed():
    with World() as w:
        stranger = identity_of(Authority("stranger").issue("signing"))
        w.controller.signing = stranger
        code, report = w.report("json")
        assert code == 1 and checks(report) == ("fail", {"lookup": "pass", "ping": "pass", "uuid": "fail"})
        assert report["ports"][0]["checks"][2]["tries"] == 1


def test_it_reports_for_ever_but_not_all_the_time():
    with World() as w:
        out = w.root / "out"
        os.mkfifo(out)
        with w.start("forever", "json", f"output={out}", f"state={w.root}/state", ports=(), state=FAIL) as r:
            with open(os.open(out, os.O_RDWR)) as f:  # a writer, too: between two reports there is none
                first = json.loads(f.readline())
                assert first["ports"] == [] and first["result"] == "fail"
                for _ in range(20):
                    r.publish("zedmanager", "AppInstanceSummary", {"TotalRunning": _})
                r.network([ETH], SUCCESS)
                seen = [json.loads(f.readline())]
                while not seen[-1]["ports"] or seen[-1]["apps"]["running"] != 19:
                    seen.append(json.loads(f.readline()))
                assert len(seen) <= 3, "one report for many changes"
                assert seen[-1]["result"] == "pass" and checks(seen[-1]) == ("pass", {}) and w.controller.requests == []
            r.publish("vaultmgr", "VaultStatus", {"Name": "Application Data Store", "Status": 3, "Error": "no key"}, key="v")
            wait_until(lambda: json.loads((w.root / "state").read_text())["vaults"], what="the snapshot, without a reader of the pipe")


def test_a_console_has_rows_and_columns():
    with World() as w:
        code, text = w.report("rows=12", "columns=40", ports=(ETH, WWAN))
        lines = text.splitlines()
        assert code == 0 and len(lines) <= 16 and max(map(len, lines)) <= 40, text
        assert any("more lines)" in line for line in lines) and "passed" in "".join(lines[-3:])


def test_nobody_speaks():
    with World() as w:
        command = ["ip", "netns", "exec", w.net.device, TOOL, *(str(w.root / d) for d in ("config", "persist", "run"))]
        done = subprocess.run(command, input="", capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 1 and "ERROR: No ports specified to have EV controller connectivity" in done.stdout, done
