# SPDX-License-Identifier: Apache-2.0
"""controllerconn over real interfaces: a device with three ports in a network namespace, a controller in another, a network between them
that can be reached only through a proxy. Needs root; without it these tests fail and say so."""
import base64
import contextlib
import datetime
import http.server
import itertools
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import eve
from fleet import Site
from netns import inside, run
from seth import Server
from tool import TOOLS, Asked

SECONDS = 60
TOOL = str(TOOLS / "uplink_tool")
NAME, ADDRESS = "controller.example", "10.200.9.9"
PING = f"https://{NAME}/api/v2/edgedevice/ping"
numbers = itertools.count()


# ---- namespaces

class Net:
    """eth0 (10.200.1.2) and wwan0 (10.200.2.2) lead to the controller; corp0 (10.200.3.2) only to a host that does not forward."""

    def __init__(self):
        tag = f"cc{os.getpid()}-{next(numbers)}"
        self.device, self.controller, self.corp = (f"{tag}{x}" for x in "dcp")
        self.made = []

    def ip(self, namespace, text):
        run("ip", "-n", namespace, *text.split())

    def link(self, a, name_a, address_a, b, name_b, address_b):
        self.ip(a, f"link add {name_a} type veth peer name {name_b} netns {b}")
        for namespace, name, address in ((a, name_a, address_a), (b, name_b, address_b)):
            self.ip(namespace, f"addr add {address}/24 dev {name}")
            self.ip(namespace, f"link set {name} up")

    def __enter__(self):
        assert os.geteuid() == 0, "these tests make network namespaces: they need root"
        try:
            for namespace in (self.device, self.controller, self.corp):
                run("ip", "netns", "add", namespace)
                self.made.append(namespace)
                self.ip(namespace, "link set lo up")
            self.link(self.device, "eth0", "10.200.1.2", self.controller, "toeth", "10.200.1.1")
            self.link(self.device, "wwan0", "10.200.2.2", self.controller, "towwan", "10.200.2.1")
            self.link(self.device, "corp0", "10.200.3.2", self.corp, "inside", "10.200.3.1")
            self.link(self.corp, "outside", "10.200.4.2", self.controller, "tocorp", "10.200.4.1")
            self.ip(self.controller, f"addr add {ADDRESS}/32 dev lo")
            self.ip(self.corp, f"route add {ADDRESS}/32 via 10.200.4.1")
            for n in (1, 2, 3):
                self.ip(self.device, f"rule add from 10.200.{n}.2 table {100 + n}")
                self.ip(self.device, f"route add default via 10.200.{n}.1 table {100 + n}")
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for namespace in self.made:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)

    def listen(self, namespace, address, kind=socket.SOCK_STREAM):
        with inside(namespace):
            s = socket.socket(socket.AF_INET, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen(512)
        return s


# ---- certificates

class Authority:
    def __init__(self, name):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(name, self.key.public_key(), None, is_ca=True)

    def _sign(self, name, public_key, sans, is_ca=False, days=(-1, 30)):
        now = datetime.datetime.utcnow()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if is_ca else self.certificate.subject
        b = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key).serial_number(x509.random_serial_number())
             .not_valid_before(now + datetime.timedelta(days=days[0])).not_valid_after(now + datetime.timedelta(days=days[1]))
             .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True))
        if sans:
            b = b.add_extension(x509.SubjectAlternativeName([x509.DNSName(s) for s in sans]), critical=False)
        return b.sign(self.key, hashes.SHA256())

    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, name, sans=None, days=(-1, 30)):
        """(certificate, key) as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = self._sign(name, key.public_key(), sans, days=days).public_bytes(serialization.Encoding.PEM).decode()
        return pem, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


# ---- servers

class QuietHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that does not believe us goes away in the middle


class Https:
    """A server in the controller's namespace."""

    def __init__(self, net, address, context, handler):
        self.server = QuietServer(address, handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = context.wrap_socket(net.listen(net.controller, address), server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Controller(Https):
    """HTTPS that wants a certificate; what it is asked is kept. /status/<n> answers n, /echo the body, /redirect leads to /echo."""

    def __init__(self, net, authority, certificate, address=(ADDRESS, 443)):
        self.requests, self.extra = [], []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as d:
            path = pathlib.Path(d)
            (path / "cert").write_text(certificate[0])
            (path / "key").write_text(certificate[1])
            (path / "ca").write_text(authority.pem())
            context.load_cert_chain(path / "cert", path / "key")
            context.load_verify_locations(path / "ca")
        context.verify_mode = ssl.CERT_REQUIRED
        controller = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                who = dict(x[0] for x in self.connection.getpeercert()["subject"])["commonName"]
                controller.requests.append({"from": self.client_address[0], "method": self.command, "path": self.path, "headers": dict(self.headers),
                                            "body": body, "who": who})
                code = int(self.path.split("/")[2]) if self.path.startswith("/status/") else 302 if self.path == "/redirect" else 200
                reply = b"" if code in (204, 304) else body if self.path == "/echo" else b"x" * 100
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "/echo")
                if code not in (204, 304):
                    self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = answer

        super().__init__(net, address, context, Handler)


class Dns:
    """Answers A for the names it knows; keeps (name, who asked)."""

    def __init__(self, net, namespace, address, names):
        self.socket, self.names, self.queries = net.listen(namespace, (address, 53), socket.SOCK_DGRAM), names, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                data, peer = self.socket.recvfrom(1500)
                if not data:
                    return  # it was closed
                labels, at = [], 12
                while data[at]:
                    labels.append(data[at + 1:at + 1 + data[at]].decode())
                    at += 1 + data[at]
                name, question = ".".join(labels), data[12:at + 5]
                self.queries.append((name, peer[0]))
                is_a = struct.unpack(">H", data[at + 1:at + 3])[0] == 1
                found = self.names.get(name)
                records = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + socket.inet_aton(found) if found and is_a else b""
                flags = 0x8180 if found else 0x8183
                self.socket.sendto(data[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0) + question + records, peer)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Proxy:
    """CONNECT and nothing else; it resolves names itself."""

    def __init__(self, net, names):
        self.net, self.names, self.asked = net, names, []
        self.socket = net.listen(net.corp, ("10.200.3.1", 3128))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client):
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096) or b"\r\n\r\n"
            method, target = head.split(b" ")[:2]
            self.asked.append((method + b" " + target).decode())
            host, port = target.decode().rsplit(":", 1)
            if method != b"CONNECT" or host not in self.names:
                client.sendall(b"HTTP/1.1 502 no\r\nContent-Length: 0\r\n\r\n")
                return
            with inside(self.net.corp):
                out = socket.create_connection((self.names[host], int(port)), timeout=SECONDS)
            with out:
                client.sendall(b"HTTP/1.1 200 ok\r\n\r\n")
                back = threading.Thread(target=self.copy, args=(out, client), daemon=True)
                back.start()
                self.copy(client, out)
                back.join(SECONDS)

    @staticmethod
    def copy(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Tool(Asked):
    """The uplink in the device's namespace, or here."""

    def __init__(self, namespace=None):
        command = ["ip", "netns", "exec", namespace, TOOL] if namespace else [TOOL]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, url=PING, **more):
        return self.ask(send={"url": url, **more})

    def next(self):
        """Of a stream: its next piece, or its end."""
        return json.loads(self.process.stdout.readline())

    def read(self, n):
        text = ""
        while len(text) < n:
            line = self.next()
            assert "piece" in line, (line, text)
            piece = line["piece"]
            assert len(piece) <= 4096
            text += piece
        return text

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0


def port(name, n, cost=0, **more):
    return {"IfName": name, "IsMgmt": True, "IsL3Port": True, "Cost": cost, "AddrInfoList": [{"Addr": f"10.200.{n}.2"}],
            "DNSServers": [f"10.200.{n}.1"], **more}


ETH, WWAN = port("eth0", 1), port("wwan0", 2, cost=10)
HTTPS_PROXY = [{"type": 1, "server": "10.200.3.1", "port": 3128}]


class World:
    """All of it, with a device that the controller knows."""

    def __init__(self, certificate=None):
        self.stack = contextlib.ExitStack()
        self.certificate = certificate

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.net = stack.enter_context(Net())
            self.authority = Authority("test root")
            names = {NAME: ADDRESS}
            certificate = self.certificate(self.authority) if self.certificate else self.authority.issue("c", [NAME])
            self.controller = stack.enter_context(contextlib.closing(Controller(self.net, self.authority, certificate)))
            self.dns = [stack.enter_context(contextlib.closing(Dns(self.net, self.net.controller, f"10.200.{n}.1", names))) for n in (1, 2)]
            self.corp_dns = stack.enter_context(contextlib.closing(Dns(self.net, self.net.corp, "10.200.3.1",
                                                                      {NAME: ADDRESS, "wpad.corp.example": "10.200.3.1"})))
            self.proxy = stack.enter_context(contextlib.closing(Proxy(self.net, names)))
            self.tool = stack.enter_context(contextlib.closing(Tool(self.net.device)))
            cert, key = self.authority.issue("device-1")
            self.tool.ok(roots=self.authority.pem(), cert=cert, key=key)
            self.tool.ok(timeouts=[3000, 1500])
            self.stack = stack.pop_all()
            return self

    def __exit__(self, *_):
        self.stack.close()

    def ports(self, *ports):
        self.tool.ok(ports={"Version": 1, "Ports": list(ports)})

    def last(self):
        return self.controller.requests[-1]


# ---- tests

def test_traffic_moves_when_the_cheap_port_is_cut_and_returns():
    with World() as w:
        w.ports(WWAN, ETH)
        for _ in range(3):
            answer = w.tool.send()
            assert answer["error"] == 0 and answer["port"] == "eth0", answer
            assert w.last()["from"] == "10.200.1.2" and w.last()["who"] == "device-1", w.last()
        assert (NAME, "10.200.1.2") in w.dns[0].queries and not w.dns[1].queries, "each port asks its own servers"

        w.net.ip(w.net.controller, "link set toeth down")
        for _ in range(2):
            answer = w.tool.send()
            assert answer["error"] == 0 and answer["port"] == "wwan0" and answer["status"] == "None", answer
            assert "send via eth0 with src IP 10.200.1.2: " in answer["words"], answer
            assert w.last()["from"] == "10.200.2.2"
        assert (NAME, "10.200.2.2") in w.dns[1].queries

        w.net.ip(w.net.controller, "link set toeth up")
        answer = w.tool.send()
        assert answer["error"] == 0 and answer["port"] == "eth0", answer

        metrics = w.tool.ask(metrics=True)
        eth, wwan = metrics["eth0"], metrics["wwan0"]
        assert (eth["SuccessCount"], eth["FailureCount"], wwan["SuccessCount"], wwan["FailureCount"]) == (4, 2, 2, 0), metrics
        url = eth["URLCounters"][PING]
        assert (url["TryMsgCount"], url["SentMsgCount"], url["RecvMsgCount"], url["RecvByteCount"]) == (2, 4, 4, 400), url
        assert eth["LastFailure"] < eth["LastSuccess"] and wwan["LastFailure"].startswith("0001"), metrics


def test_a_port_that_has_only_a_proxy():
    with World() as w:
        w.ports(port("corp0", 3))
        assert w.tool.send()["error"] < 0, "there is no way but the proxy"
        # The proxy has an address and looks the controller up itself: no DNS server is needed.
        w.ports(port("corp0", 3, DNSServers=[], Proxies=HTTPS_PROXY))
        answer = w.tool.send()
        assert answer["error"] == 0 and answer["port"] == "corp0", answer
        assert w.last()["from"] == "10.200.4.2" and w.last()["who"] == "device-1", "TLS is the device's own, end to end"
        assert w.proxy.asked == [f"CONNECT {NAME}:443"], w.proxy.asked
        metrics = w.tool.ask(metrics=True)["corp0"]
        assert (metrics["SuccessCount"], metrics["FailureCount"]) == (1, 1), metrics
        # What the proxy refuses is a failure of the port, not an answer of the controller.
        answer = w.tool.send("https://other.example/")
        assert answer["error"] < 0 and answer["last"] == 0 and answer["status"] == "None", answer
        # An exception goes direct, which leads nowhere here.
        w.ports(port("corp0", 3, Proxies=HTTPS_PROXY, Exceptions=".example"))
        assert w.tool.send()["error"] < 0
        assert len(w.proxy.asked) == 2


def pac(text):
    return base64.b64encode(text.encode()).decode()


def test_proxy_scripts():
    with World() as w:
        script = """function FindProxyForURL(url, host) {
            if (isInNet(dnsResolve(host), "10.200.9.0", "255.255.255.0") && myIpAddress() == "10.200.3.2" && shExpMatch(url, "https://*.example/*"))
                return "PROXY 10.200.3.1:3128; DIRECT";
            return "DIRECT"; }"""
        w.ports(port("corp0", 3, Pacfile=pac(script)))
        answer = w.tool.send()
        assert answer["error"] == 0 and w.proxy.asked == [f"CONNECT {NAME}:443"], answer
        assert w.corp_dns.queries[0] == (NAME, "10.200.3.2"), "a script's names are looked up at the port's servers"
        # Scripts that fail, do not parse or do not end mean no proxy; on eth0 that works.
        for bad in ("function FindProxyForURL() { throw 1; }", "function (", "while (true) {}", "var x = []; for (;;) x.push(new Array(1e5).join('y'))", "x"):
            w.ports(port("eth0", 1, Pacfile=pac(bad)))
            answer = w.tool.send()
            assert answer["error"] == 0, (bad, answer)
        assert len(w.proxy.asked) == 1
        children = pathlib.Path(f"/proc/{w.tool.process.pid}/task/{w.tool.process.pid}/children").read_text().split()
        assert not children, "every evaluation's process has been waited for"


def test_proxy_discovery():
    with World() as w:
        script = "function FindProxyForURL(url, host) { return 'PROXY 10.200.3.1:3128'; }"
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.headers["Host"], self.path))
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(script.encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("10.200.3.1", 80), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = w.net.listen(w.net.corp, ("10.200.3.1", 80))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            corp = port("corp0", 3, DomainName="site.corp.example", NetworkProxyEnable=True)
            w.ports(corp)
            kind = "text/html"
            answer = w.tool.ask(wpad="corp0")
            assert answer["error"] < 0 and "http://wpad.site.corp.example/wpad.dat: " in answer["words"], answer
            kind = "application/x-ns-proxy-autoconfig; charset=utf-8"
            answer = w.tool.ok(wpad="corp0")
            assert answer["url"] == "http://wpad.corp.example/wpad.dat", answer
            assert asked == [("wpad.corp.example", "/wpad.dat")] * 2, asked
            w.ports({**corp, "Pacfile": answer["pac"]})
            assert w.tool.send()["error"] == 0 and w.last()["from"] == "10.200.4.2"
            w.ports({**corp, "NetworkProxyURL": "http://10.200.3.1/mine.pac"})
            assert w.tool.ok(wpad="corp0")["url"] == "http://10.200.3.1/mine.pac"
        finally:
            server.shutdown()
            server.server_close()


def test_certificates_that_are_not_believed():
    stranger = Authority("stranger")
    cases = (
        ("expired", lambda a: a.issue("c", [NAME], days=(-9, -1)), "CertInvalid"),
        ("not yet valid", lambda a: a.issue("c", [NAME], days=(1, 9)), "CertInvalid"),
        ("of somebody else", lambda a: stranger.issue("c", [NAME]), "CertUnknownAuthority"),
        ("for another name", lambda a: a.issue("c", ["other.example"]), "None"),
        ("with its name as common name alone", lambda a: a.issue(NAME), "None"),
    )
    for what, certificate, status in cases:
        with World(certificate) as w:
            w.ports(ETH)
            answer = w.tool.send()
            assert answer["error"] < 0 and answer["status"] == status and answer["last"] == 0, (what, answer)
            assert not w.controller.requests, what
            w.ports(port("corp0", 3, Proxies=HTTPS_PROXY))
            expected = "CertUnknownAuthorityProxy" if status == "CertUnknownAuthority" else status
            answer = w.tool.send()
            assert answer["error"] < 0 and answer["status"] == expected, (what, answer)


def test_trust_is_of_the_connection_and_not_of_the_process():
    stranger = Authority("stranger")
    with World() as w:
        w.ports(ETH)
        cert, key = w.authority.issue("device-1")
        for roots, is_good in ((w.authority, True), (stranger, False), (w.authority, True)):
            w.tool.ok(roots=roots.pem(), cert=cert, key=key)
            answer = w.tool.send()
            assert (answer["error"] == 0) == is_good and (is_good or answer["status"] == "CertUnknownAuthority"), (is_good, answer)


def test_http_as_the_device_speaks_it():
    with World() as w:
        w.ports(ETH)
        w.tool.send()
        headers = w.last()["headers"]
        assert headers["Connection"] == "close" and headers["Accept-Encoding"] == "gzip" and headers["X-Serial-Number"] == "serial-1", headers
        first = headers["X-Request-Id"]
        w.tool.send("https://controller.example/echo", body="hello")
        seen = w.last()
        assert seen["method"] == "POST" and seen["body"] == b"hello" and seen["headers"]["Content-Type"] == "application/x-proto-binary", seen
        assert seen["headers"]["X-Request-Id"] != first and "Expect" not in seen["headers"]
        w.tool.send("https://controller.example/echo", body="")
        assert w.last()["method"] == "POST" and w.last()["headers"]["Content-Length"] == "0"
        answer = w.tool.send("https://controller.example/redirect", body="hello")
        assert answer["error"] == 0 and w.last()["method"] == "GET" and w.last()["path"] == "/echo", (answer, w.last())
        for code, error, status in ((304, 0, "None"), (204, 0, "None"), (404, -71, "NotFound"), (503, -71, "Upgrade"), (403, -71, "Forbidden")):
            answer = w.tool.send(f"https://controller.example/status/{code}", bails=True)
            assert (answer["error"], answer["status"], answer["http"]) == (error, status, code), answer
        body = "x" * (3 << 20)
        assert w.tool.send("https://controller.example/echo", body=body)["n"] == len(body)


def test_sessions_are_resumed_and_counted():
    with World() as w:
        w.ports(ETH)
        for _ in range(4):
            assert w.tool.send()["error"] == 0
        url = w.tool.ask(metrics=True)["eth0"]["URLCounters"][PING]
        assert url["SessionResume"] == 3, url
        cert, key = w.authority.issue("device-2")
        w.tool.ok(roots=w.authority.pem(), cert=cert, key=key)
        assert w.tool.send()["error"] == 0 and w.last()["who"] == "device-2", "no session of another identity serves"


def test_many_requests_at_once():
    """On one loop, without threads: all are delivered, over both ports of one cost, and every socket is closed in the end."""
    n = 200
    with World() as w:
        w.ports(ETH, port("wwan0", 2))
        w.tool.ok(timeouts=[60000, 30000])
        assert w.tool.send()["error"] == 0
        assert w.tool.ask(metrics=True)  # a turn of its loop later the socket is closed
        fds = len(os.listdir(f"/proc/{w.tool.process.pid}/fd"))
        line = json.dumps({"send": {"url": "https://controller.example/echo", "body": "x" * 2000}}) + "\n"
        def write():
            w.tool.process.stdin.write(line * n)
            w.tool.process.stdin.flush()

        writer = threading.Thread(target=write)  # beside the reading: pipes are small
        writer.start()
        answers = [json.loads(w.tool.process.stdout.readline()) for _ in range(n)]
        writer.join(SECONDS)
        assert all(a["error"] == 0 and a["n"] == 2000 for a in answers), [a for a in answers if a["error"]][:3]
        metrics = w.tool.ask(metrics=True)
        counts = [metrics[p]["URLCounters"]["https://controller.example/echo"]["SentMsgCount"] for p in ("eth0", "wwan0")]
        assert counts == [n // 2, n // 2], counts
        assert len(os.listdir(f"/proc/{w.tool.process.pid}/fd")) == fds, "descriptors are left open"


def test_failures_of_transport():
    with World() as w:
        w.ports(ETH)
        answer = w.tool.send(f"https://{NAME}:444/")
        assert answer["error"] < 0 and answer["status"] == "Refused", answer
        answer = w.tool.send("https://nosuch.example/")
        assert answer["error"] < 0 and "lookup nosuch.example: " in answer["words"], answer
        w.ports(port("eth0", 1, AddrInfoList=[{"Addr": "10.200.77.1"}, {"Addr": "fe80::1"}, {"Addr": "10.200.1.2"}]))
        answer = w.tool.send(f"https://{ADDRESS}:444/")
        assert "with src IP 10.200.77.1: bind: " in answer["words"] and answer["status"] == "Refused", answer
        # Nobody there: the dial has its own limit, and all attempts end.
        w.ports(ETH)
        w.tool.ok(timeouts=[20000, 300])
        begin = time.monotonic()
        w.net.ip(w.net.controller, "route add blackhole 10.200.66.0/24")
        answer = w.tool.send("https://10.200.66.1/")
        assert answer["error"] < 0 and time.monotonic() - begin < 10, answer


class Streams:
    """Answers each request as the test does."""

    HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    def __init__(self, w):
        self.socket = w.net.listen(w.net.controller, (ADDRESS, 8888))
        self.socket.settimeout(SECONDS)
        self.url = f"http://{ADDRESS}:8888/signal"
        self.taken = contextlib.ExitStack()

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(SECONDS)
        self.taken.enter_context(connection)
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        return connection, request.decode()

    @staticmethod
    def chunk(data):
        return b"%x\r\n%s\r\n" % (len(data), data)

    def close(self):
        self.taken.close()
        self.socket.close()


def test_a_stream_is_handed_on_for_as_long_as_it_lasts():
    with World() as w, contextlib.closing(Streams(w)) as server:
        w.ports(ETH)
        w.tool.ok(timeouts=[300, 300])
        stream = {"url": server.url, "port": "eth0", "source": "10.200.1.2"}

        def write(**command):
            w.tool.process.stdin.write(json.dumps(command) + "\n")
            w.tool.process.stdin.flush()

        # No head in time: nobody answered.
        write(stream=stream)
        server.accept()
        assert "i/o timeout" in w.tool.next()["words"]
        w.tool.ok(timeouts=[1500, 1500])
        write(stream=stream)
        c, request = server.accept()
        assert request.startswith("GET /signal HTTP/1.1\r\n") and "X-Request-Id: " in request and "Accept-Encoding" not in request, request
        assert c.getpeername()[0] == "10.200.1.2"
        c.sendall(server.HEAD)
        assert w.tool.next() == {"piece": ""}, "told that it is open"
        sockets = run("ip", "netns", "exec", w.net.device, "ss", "-tno", "state", "established", "dport", "=", ":8888")
        assert "timer:(keepalive," in sockets, sockets
        # It is silent for longer than any request may be: one that is made in the meantime ends.
        answer = w.tool.send(server.url)
        assert answer["error"] < 0 and "timed out" in answer["words"], answer
        server.accept()
        c.sendall(server.chunk(b"one"))
        assert w.tool.next() == {"piece": "one"}
        # More than is taken at once, and nothing of it gets lost.
        flood = "".join(f"{i:07}\n" for i in range(65536))
        sending = threading.Thread(target=c.sendall, args=(server.chunk(flood.encode()),))
        sending.start()
        assert w.tool.read(len(flood)) == flood
        sending.join()
        # The end that HTTP knows, and none at all.
        c.sendall(server.chunk(b"last") + server.chunk(b""))
        assert w.tool.read(4) == "last"
        assert w.tool.next()["http"] == 200
        counters = w.tool.ask(metrics=True)["eth0"]["URLCounters"][server.url]
        assert counters["RecvByteCount"] == len(flood) + 7 and counters["SentMsgCount"] == 1 and counters["TotalTimeSpent"] < 1500, counters
        write(stream=stream)
        c, _ = server.accept()
        c.sendall(server.HEAD + b"5\r\nabc")
        assert w.tool.read(3) == "abc"
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        answer = w.tool.next()
        assert answer["error"] == 0 and answer["http"] == 200 and answer["body"] == "", answer
        # Another answer is one as any other.
        write(stream=stream)
        c, _ = server.accept()
        c.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone")
        answer = w.tool.next()
        assert answer["http"] == 404 and answer["body"] == "none", answer
        # Cancelled from outside, and by whoever gets a piece.
        for cancel in (True, False):
            write(stream={**stream, "cancels_at": "stop"})
            c, _ = server.accept()
            c.sendall(server.HEAD)
            assert w.tool.next() == {"piece": ""}
            if cancel:
                w.tool.ok(cancel=True)
            else:
                c.sendall(server.chunk(b"stop") + server.chunk(b"more"))
                assert w.tool.read(4).startswith("stop")
            assert c.recv(1) == b"", "hung up"
        assert w.tool.ask(metrics=True)["eth0"]["URLCounters"][server.url]["SentMsgCount"] == 2


def test_traces_tell_what_happened_and_no_secrets():
    with World() as w:
        w.ports(ETH, WWAN)
        w.net.ip(w.net.controller, "link set toeth down")
        answer = w.tool.send("https://controller.example/echo", body="a secret", traces=True)
        text = json.dumps(answer["trace"])
        assert answer["error"] == 0 and answer["trace"]["dropped"] == 0, answer
        for expected in ("from 10.200.1.2", "failed: ", "from 10.200.2.2", f"lookup: {ADDRESS}", "HTTP 200, 8 bytes", "over: delivered"):
            assert expected in text, (expected, text)
        assert "a secret" not in text and "X-Serial-Number" not in text, text


def test_against_the_server_itself():
    """The device API of seth: configuration with an envelope, over TLS; counted."""
    with Server() as server:
        site = Site(server)
        d = site.onboarded()
        tool = Tool()
        with contextlib.closing(tool):
            tool.ok(roots=site.root_pem.decode(), cert=d.identity.pem.decode(), key=d.identity.key_pem().decode())
            tool.ok(ports={"Version": 1, "Ports": [{**ETH, "IfName": "lo", "AddrInfoList": [{"Addr": "127.0.0.1"}], "DNSServers": []}]})
            base = f"https://127.0.0.1:{server.device_port}/api/v2/edgedevice"
            assert tool.send(f"{base}/ping")["http"] == 200
            certs = tool.send(f"{base}/certs")
            assert certs["http"] == 200 and certs["type"] == eve.PROTO and certs["n"] > 100, certs
            answer = tool.send(f"{base}/id/{d.uuid}/config", body="")
            assert answer["http"] == 200 and answer["type"] == eve.PROTO, answer
            answer = tool.send(f"{base}/id/{d.uuid}/info", body="not a message", bails=True)
            assert answer["error"] == -71 and answer["http"] == 422 and answer["status"] == "None", answer
            counters = tool.ask(metrics=True)["lo"]
            assert counters["SuccessCount"] == 4 and counters["FailureCount"] == 0, counters
            assert sum(u["SessionResume"] for u in counters["URLCounters"].values()) == 3, counters
