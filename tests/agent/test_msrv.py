# SPDX-License-Identifier: Apache-2.0
"""The metadata server on 169.254.169.254 of a bridge in a network namespace; applications in namespaces of their own ask it with curl."""
import base64
import contextlib
import http.client
import io
import itertools
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import zipfile

from netns import inside, run
from seth import binary

SECONDS = 60
TOOL = pathlib.Path(binary()).resolve().parents[1] / "tests/agent/msrv_tool"
SERVER = "169.254.169.254"
NETWORK = "00000000-0000-4000-8000-00000000000a"
# The last has no address that the device has assigned.
APPS = {"web": ("10.11.0.2", "11111111-1111-4111-8111-111111111111"),
        "db": ("10.11.0.3", "22222222-2222-4222-8222-222222222222"),
        "stranger": ("10.11.0.9", None)}
numbers = itertools.count()


def envelope(root, files):
    """A patch envelope for the application "web", of files that are there."""
    directory = root / "patchEnvelopesCache"
    directory.mkdir()
    blobs = []
    for name, content in files.items():
        (directory / name).write_bytes(content)
        blobs.append({"fileName": name, "fileSha": "", "fileMetaData": "", "artifactMetaData": "", "url": str(directory / name), "size": len(content)})
    return {"PatchID": "p1", "Version": "1", "State": 5, "AllowedApps": [APPS["web"][1]], "BinaryBlobs": blobs}


def topics(envelopes):
    """What the other services would publish."""
    status, config = {}, {}
    for name, (address, uuid) in APPS.items():
        if uuid:
            adapter = {"Name": "net", "Network": NETWORK, "Vif": "nbu1x1", "AllowToDiscover": name == "web",
                       "AssignedAddresses": {"IPv4Addrs": [{"Address": address, "AssignedBy": 2}], "IPv6Addrs": []}}
            status[uuid] = {"UUIDandVersion": {"UUID": uuid, "Version": "1"}, "DisplayName": name, "AppNetAdapterList": [adapter]}
            config[uuid] = {"UUIDandVersion": {"UUID": uuid, "Version": "1"}, "DisplayName": name, "MetaDataType": 2 if name == "web" else 0,
                            "pubsub-large-CloudInitUserData": base64.b64encode(b"#cloud-config\n").decode()}
    return {
        "zedagent": {
            "EdgeNodeInfo": {"global": {"DeviceName": "edge-7", "DeviceID": "d-1", "ProjectName": "p", "ProjectID": "p-1", "EnterpriseName": "e", "EnterpriseID": "e-1"}},
            "ControllerCert": {"c": {"HashAlgo": 1}},
            "PatchEnvelopeInfoList": {"global": {"Envelopes": envelopes}},
            "ConfigItemValueMap": {"global": {"GlobalSettings": {"msrv.prometheus.metrics.burst": {"Key": "msrv.prometheus.metrics.burst", "ItemType": 1, "IntValue": 2}}}},
        },
        "tpmmgr": {"EdgeNodeCert": {"c": {"CertID": "x"}}},
        "nim": {"DeviceNetworkStatus": {"global": {"Ports": [
            {"IfName": "eth0", "Logicallabel": "uplink", "Up": True, "AddrInfoList": [{"Addr": "192.0.2.7"}, {"Addr": "169.254.3.4"}, {"Addr": "fe80::1"}]},
            {"IfName": "eth1", "Logicallabel": "other", "Up": False, "AddrInfoList": [{"Addr": "192.0.2.8"}]}]}}},
        "wwan": {"WwanLocationInfo": {"global": {"LogicalLabel": "modem", "Latitude": 48.5, "UTCTimestamp": 1}}},
        "zedmanager": {"AppNetworkConfig": config},
        "zedrouter": {
            "NetworkInstanceStatus": {NETWORK: {"Ports": ["uplink"]}},
            "NetworkMetrics": {"global": {"MetricList": [{"IfName": "eth0", "TxBytes": 7}]}},
            # The last: applications are known when everything is.
            "AppNetworkStatus": status,
        },
    }


class Device:
    """A bridge with the server's address, and an application behind each of its ports."""

    def __init__(self, files=None):
        self.files = files
        self.tag = f"ms{os.getpid()}-{next(numbers)}"
        self.home = self.tag + "d"
        self.made = []
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="msrv-"))
        self.process = None

    def namespace(self, app):
        return f"{self.tag}{app}"

    def ip(self, namespace, text):
        run("ip", "-n", namespace, *text.split())

    def add_namespace(self, name):
        run("ip", "netns", "add", name)
        self.made.append(name)
        self.ip(name, "link set lo up")

    def connect(self, number, app, address):
        self.add_namespace(self.namespace(app))
        self.ip(self.home, f"link add port{number} type veth peer name eth0 netns {self.namespace(app)}")
        self.ip(self.home, f"link set port{number} master br0 up")
        self.ip(self.namespace(app), f"addr add {address}/24 dev eth0")
        self.ip(self.namespace(app), "link set eth0 up")
        self.ip(self.namespace(app), "route add default via 10.11.0.1")

    def __enter__(self):
        assert os.geteuid() == 0, "these tests make network namespaces: they need root"
        try:
            self.add_namespace(self.home)
            self.ip(self.home, "link add br0 type bridge")
            self.ip(self.home, "addr add 10.11.0.1/24 dev br0")
            self.ip(self.home, f"addr add {SERVER}/32 dev br0")
            self.ip(self.home, "link set br0 up")
            for number, (app, (address, _)) in enumerate(APPS.items()):
                self.connect(number, app, address)
            (self.root / "topics.json").write_text(json.dumps(topics([envelope(self.root, self.files)] if self.files else [])))
            self.start()
            return self
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def start(self, exporter_port=1):
        command = ["ip", "netns", "exec", self.home, TOOL, self.root, NETWORK, SERVER, "80", str(exporter_port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert select.select([self.process.stdout], [], [], SECONDS)[0], "the server is not ready"
        assert self.process.stdout.readline() == "80\n"

    def stop(self):
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self.process.stdout.close()
        self.process = None
        assert code == 0, f"the server ended with {code}"

    def __exit__(self, kind, *_):
        try:
            if self.process:
                if kind:
                    self.process.kill()
                    self.process.wait(SECONDS)
                else:
                    self.stop()
        finally:
            for namespace in self.made:
                subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
            shutil.rmtree(self.root)

    def curl(self, app, path, *options, data=None):
        """(status, content type, body) as Debian's curl sees it from the application's namespace."""
        command = ["ip", "netns", "exec", self.namespace(app), "curl", "-sS", "--max-time", str(SECONDS), "-w", "\n%{http_code} %{content_type}",
                   *options, f"http://{SERVER}{path}"]
        done = subprocess.run(command, input=data, capture_output=True)
        assert done.returncode == 0, done.stderr
        body, _, last = done.stdout.rpartition(b"\n")
        status, _, content_type = last.decode().partition(" ")
        return int(status), content_type, body

    def post(self, app, path, data, content_type="application/json"):
        return self.curl(app, path, "-H", f"Content-Type: {content_type}", "--data-binary", "@-", data=data)

    def published(self, app, number):
        """The value that the controller's side reads, also after a reboot."""
        path = self.root / "persist/status/msrv/AppInstMetaData" / f"{APPS[app][1]}-{number}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def socket(self, app):
        with inside(self.namespace(app)):
            s = socket.create_connection((SERVER, 80), SECONDS)
        return s


def test_the_source_address_tells_who_asks():
    with Device() as d:
        for app in ("web", "db"):
            assert d.curl(app, "/eve/v1/hostname") == (200, "text/plain", APPS[app][1].encode() + b"\n")
        assert d.curl("stranger", "/eve/v1/hostname")[0] == 204
        status, content_type, body = d.curl("web", "/eve/v1/network.json")
        assert (status, content_type) == (200, "application/json")
        network = json.loads(body)
        assert network.pop("caller-ip").startswith("10.11.0.2:")
        uuid = APPS["web"][1]
        assert network == {"app-instance-uuid": uuid, "hostname": uuid, "device-name": "edge-7", "device-uuid": "d-1", "enterprise-id": "e-1",
                           "enterprise-name": "e", "external-ipv4": "192.0.2.7", "project-name": "p", "project-uuid": "p-1"}
        assert d.curl("db", "/eve/v1/external_ipv4") == (200, "text/plain; charset=utf-8", b"192.0.2.7\n")
        assert json.loads(d.curl("stranger", "/eve/v1/location.json")[2])["Latitude"] == 48.5
        assert json.loads(d.curl("stranger", "/eve/v1/networks/metrics.json")[2])[0]["TxBytes"] == 7
        assert json.loads(d.curl("web", "/eve/v1/discover-network.json")[2]) == {APPS["db"][1]: [{"port": "nbu1x1", "network-address": "10.11.0.3"}]}
        assert d.curl("db", "/eve/v1/discover-network.json")[0] == 403
        assert d.curl("web", "/openstack/latest/user_data") == (200, "text/yaml", b"#cloud-config\n")
        assert json.loads(d.curl("web", "/openstack/latest/meta_data.json")[2])["hostname"] == "web"
        assert [d.curl(app, "/openstack")[0] for app in ("web", "db", "stranger")] == [200, 404, 501]
        assert d.curl("web", "/eve/v1/hostname", "-X", "DELETE")[0] == 405
        assert d.curl("web", "/eve/v2/hostname")[0] == 404


def test_a_kubeconfig_of_32_kib_holds_and_one_byte_more_is_refused():
    with Device() as d:
        path = "/eve/v1/kubeconfig"
        whole = bytes(i * 7 % 251 for i in range(32768))
        assert d.post("web", path, whole) == (200, "", b"")
        value = d.published("web", 1)
        assert base64.b64decode(value.pop("Data")) == whole
        assert value == {"AppInstUUID": APPS["web"][1], "Type": 1}
        for n_more in (1, 5000, 40000, 1 << 21):
            assert d.post("web", path, whole + b"x" * n_more)[0] == 500, n_more
        assert d.post("web", path, whole, "text/plain")[0] == 415
        assert d.post("web", path, b"{}", "application/json; charset=utf-8")[0] == 415
        assert d.post("stranger", path, b"{}")[0] == 204
        assert base64.b64decode(d.published("web", 1)["Data"]) == whole
        assert d.published("db", 1) is None
        assert d.post("web", path, b"{}")[0] == 200
        assert d.post("web", "/eve/v1/app/appCustomStatus", b'{"s":1}')[0] == 200
        assert base64.b64decode(d.published("web", 1)["Data"]) == b"{}"
        assert base64.b64decode(d.published("web", 2)["Data"]) == b'{"s":1}'
        # A restart forgets nothing and disturbs nothing.
        d.stop()
        d.start()
        assert base64.b64decode(d.published("web", 2)["Data"]) == b'{"s":1}'
        assert d.post("web", path, b"[]")[0] == 200
        assert base64.b64decode(d.published("web", 1)["Data"]) == b"[]"


def test_idle_connections_of_one_application_do_not_stop_another():
    with Device() as d, contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(d.socket("db")).sendall(b"GET /eve/v1/ho")
        begin = time.monotonic()
        assert d.curl("web", "/eve/v1/hostname")[0] == 200
        assert d.curl("db", "/eve/v1/hostname")[0] == 200
        # Far below the five seconds after which the idle ones would have gone by themselves.
        assert time.monotonic() - begin < 4


def test_a_slow_reader_is_given_up_and_hurts_nobody():
    large = os.urandom(1 << 20) * 32
    with Device({"large": large}) as d:
        with d.socket("web") as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(b"GET /eve/v1/patch/download/p1/large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert slow.recv(12) == b"HTTP/1.1 200"
            assert d.curl("db", "/eve/v1/hostname")[0] == 200
            poll = select.poll()
            poll.register(slow, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
            assert poll.poll(SECONDS * 1000), "the server waits for ever"
        status, _, body = d.curl("web", "/eve/v1/patch/download/p1/large")
        assert status == 200 and body == large


def test_patches_are_downloaded_whole_in_part_and_as_an_archive():
    files = {"a.bin": os.urandom(200000), "empty": b"", "b.txt": b"text\n"}
    with Device(files) as d:
        status, content_type, body = d.curl("web", "/eve/v1/patch/download/p1")
        assert (status, content_type) == (200, "application/zip")
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            assert archive.testzip() is None
            assert {name: archive.read(name) for name in archive.namelist()} == files
        assert d.curl("web", "/eve/v1/patch/download/p1/a.bin", "-r", "1000-1999")[::2] == (206, files["a.bin"][1000:2000])
        assert d.curl("web", "/eve/v1/patch/download/p1/empty")[::2] == (200, b"")
        assert {b["fileName"] for b in json.loads(d.curl("web", "/eve/v1/patch/description.json")[2])[0]["BinaryBlobs"]} == set(files)
        assert d.curl("db", "/eve/v1/patch/download/p1")[0] == 404
        assert d.curl("stranger", "/eve/v1/patch/download/p1")[0] == 204
        d.stop()
        usage = json.loads((d.root / "persist/status/msrv/PatchEnvelopeUsage" / f"patchEnvelopeUsage:p1-v-1-app-{APPS['web'][1]}.json").read_text())
        assert (usage["PatchAPICallCount"], usage["DownloadCount"]) == (1, 3)


def test_the_signer_seals_what_it_is_given():
    with Device() as d:
        payload = os.urandom(65535)
        status, content_type, body = d.post("web", "/eve/v1/tpm/signer", payload, "application/octet-stream")
        assert (status, content_type) == (200, "application/x-proto-binary")
        assert payload in body and len(body) > len(payload) + 64
        assert d.post("web", "/eve/v1/tpm/signer", payload + b"x", "application/octet-stream")[0] == 400
        assert d.post("stranger", "/eve/v1/tpm/signer", b"x", "application/octet-stream")[0] == 403


class Exporter(threading.Thread):
    """A node exporter in the device's namespace."""

    def __init__(self, device):
        super().__init__(daemon=True)
        with inside(device.home):
            self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.text = b"node_up 1\n" * 100000
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(4096)
                assert request.startswith(b"GET /metrics HTTP/1.0\r\n"), request
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n" + self.text)


def test_metrics_are_the_exporters_at_a_rate():
    with Device() as d:
        assert d.curl("db", "/metrics/")[0] == 502
        d.stop()
        exporter = Exporter(d)
        d.start(exporter.port)
        # Both of one turn of the rate, whose burst the configuration sets to two: the third comes too early unless a second has passed.
        begin = time.monotonic()
        answers = [d.curl("web", "/metrics/") for _ in range(3)]
        assert answers[0] == answers[1] == (200, "text/plain; version=0.0.4", exporter.text)
        assert answers[2][0] == 429 or time.monotonic() - begin > 1
        assert d.curl("stranger", "/metrics/")[0] == 200
        exporter.socket.shutdown(socket.SHUT_RDWR)
        exporter.socket.close()


def test_many_requests_at_once_are_all_answered():
    with Device() as d:
        failures = []

        def ask(app):
            for _ in range(40):
                with d.socket(app) as s:
                    s.sendall(b"GET /eve/v1/hostname HTTP/1.1\r\nHost: x\r\n\r\n")
                    response = http.client.HTTPResponse(s)
                    response.begin()
                    if response.status != 200 or response.read() != APPS[app][1].encode() + b"\n":
                        failures.append(app)

        threads = [threading.Thread(target=ask, args=(app,)) for app in ("web", "db") for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(SECONDS)
        assert not failures and not any(t.is_alive() for t in threads)
