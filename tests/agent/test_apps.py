# SPDX-License-Identifier: Apache-2.0
"""Applications on a real machine: what zedagent publishes goes in, containers run by crun in namespaces behind a bridge, what they write, measure
and tell the metadata server comes out. The device is a network namespace with a port to an outside."""
import base64
import contextlib
import datetime
import gzip
import hashlib
import http.server
import itertools
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from netns import inside, run
from seth import binary
from test_runtime import busybox_image, limits_memory, tar_of, text_of

SECONDS = 60
TOOL = pathlib.Path(binary()).resolve().parents[1] / "tests/agent/apps_tool"
RUNNING, HALTED, AWAIT_NETWORK = 115, 119, 112
DEVICE, OUTSIDE = "192.0.2.2", "192.0.2.1"
COUNTING = "echo first $$; n=0; while :; do n=$((n + 1)); echo line $n; busybox sleep 0.1; done"
numbers = itertools.count()


def root_certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    now = datetime.datetime.utcnow()
    cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256()))
    return cert.public_bytes(serialization.Encoding.PEM)


def uuid_of(name):
    return str(uuid.UUID(hashlib.sha256(name.encode()).hexdigest()[:32]))


def post(path):
    return f"busybox wget -q -O /dev/null --header 'Content-Type: application/json' --post-file {path} http://169.254.169.254/eve/v1/kubeconfig"


def image_of(script):
    """The first process of a namespace minds no SIGTERM that it has no handler for."""
    return busybox_image(["/bin/sh", "-c", script], StopSignal="SIGKILL")


# ---- the agent ------------------------------------------------------------------------------------------------------------------

class Agent:
    def __init__(self, device):
        command = ["nsenter", f"--net=/run/netns/{device.home}", str(TOOL), str(device.root), device.prefix, device.cgroup]
        self.log = (device.root / "log").open("a")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.queue, self.values, self.history = queue.Queue(), {}, []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.until(lambda: self.history, "it never began")

    def read(self):
        for line in self.process.stdout:
            self.queue.put(json.loads(line))
        self.queue.put(None)

    def until(self, test, what="", seconds=SECONDS):
        end = time.monotonic() + seconds
        while not (result := test()):
            try:
                event = self.queue.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"{what}: {self.values}"[-4000:]) from None
            assert event is not None, f"the agent ended with {self.process.wait()}"
            self.history.append(event)
            if "topic" in event:
                self.values[event["topic"], event["key"]] = event["value"]
                self.values = {k: v for k, v in self.values.items() if v is not None}
        return result

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def publish(self, topic, key, value, agent="zedagent"):
        self.tell(agent=agent, topic=topic, key=key, value=value)

    def status(self, app, topic="AppInstanceStatus"):
        return self.values.get((topic, app))

    def state(self, app, *states, error=False):
        """Waits for a state, without an error unless one is expected."""
        def test():
            s = self.status(app)
            assert error or not s or not s["Error"], s["Error"]
            return s and s["State"] in states and bool(s["Error"]) == error and s
        return self.until(test, f"{app} has no state of {states}")

    def gone(self, topic, key):
        self.until(lambda: (topic, key) not in self.values, f"{topic} {key} is still there")

    def states(self, app):
        states = [e["value"]["State"] for e in self.history if e.get("topic") == "AppInstanceStatus" and e["key"] == app and e["value"]]
        return [s for s, after in zip(states, [*states[1:], None]) if s != after]

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0
        self.reader.join()
        self.log.close()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.log.close()


class Device:
    """Two namespaces with a cable between them, and the directories of a device that has been onboarded."""

    def __init__(self):
        self.tag = f"ap{os.getpid() % 10000}{next(numbers)}"
        self.home, self.outside = self.tag + "d", self.tag + "o"
        self.prefix = f"x{os.getpid() % 1000}{next(numbers) % 10}"
        self.cgroup = f"seth-test-{uuid.uuid4().hex[:8]}"
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="apps-"))
        self.agents, self.apps = [], {}
        self.network = uuid_of("network" + self.tag)

    def __enter__(self):
        assert os.geteuid() == 0, "these tests make network namespaces: they need root"
        for namespace in (self.home, self.outside):
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        run("ip", "-n", self.home, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.outside)
        for namespace, address in ((self.home, DEVICE), (self.outside, OUTSIDE)):
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", namespace, "link", "set", "eth0", "up")
        self.write("config/server", b"controller.example\n")
        self.write("config/root-certificate.pem", root_certificate())
        self.write("persist/status/zedclient/OnboardingStatus/global.json", json.dumps({"DeviceUUID": uuid_of(self.tag), "HardwareModel": "T"}).encode())
        return self

    def __exit__(self, kind, *_):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.kill()
        if kind:
            print((self.root / "log").read_text()[-6000:])
        end = time.monotonic() + SECONDS
        while not self.clean_up():
            assert time.monotonic() < end, self.processes()
            time.sleep(0.02)
        for name in self.namespaces():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        for name in (self.home, self.outside):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        shutil.rmtree(self.root)

    def write(self, name, content):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(content)

    def processes(self):
        return [p.name for p in pathlib.Path("/proc").glob("[0-9]*") if self.cgroup in text_of(p / "cgroup")]

    def clean_up(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        groups = [g for pattern in (f"*/{self.cgroup}/**", f"{self.cgroup}/**") for g in pathlib.Path("/sys/fs/cgroup").glob(pattern) if g.is_dir()]
        for group in sorted(groups, reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        return not self.processes() and not any(g.exists() for g in groups)

    def namespaces(self):
        return [p.name for p in pathlib.Path("/run/netns").glob(f"{self.prefix}-*")]

    def links(self):
        return [x.split(":")[1].split("@")[0].strip() for x in run("ip", "-n", self.home, "-o", "link").splitlines() if f" {self.prefix}" in x]

    # ---- what zedagent and others would publish

    def agent(self):
        self.agents.append(Agent(self))
        return self.agents[-1]

    def introduce(self, a):
        a.publish("ZedAgentStatus", "zedagent", {"ConfigGetStatus": 1})
        a.publish("EdgeNodeInfo", "global", {"DeviceName": "edge-7", "DeviceID": "d", "ProjectName": "p", "ProjectID": "p", "EnterpriseName": "e", "EnterpriseID": "e"})
        a.publish("ControllerCert", "c", {"HashAlgo": 1})
        a.publish("EdgeNodeCert", "c", {"CertID": "x"}, agent="tpmmgr")
        a.publish("DeviceNetworkStatus", "global", {"Version": 1, "State": 3, "Ports": [
            {"IfName": "eth0", "Logicallabel": "ethernet0", "IsMgmt": True, "IsL3Port": True, "Cost": 0, "Up": True, "AddrInfoList": [{"Addr": DEVICE}],
             "DNSServers": [OUTSIDE]}]}, agent="nim")
        a.publish("DatastoreConfig", uuid_of("store"), {"UUID": uuid_of("store"), "DsType": "DsHttp", "Fqdn": f"file://{self.root}", "Dpath": "images"})

    def publish_network(self, a, **more):
        a.publish("NetworkInstanceConfig", self.network, {
            "UUID": self.network, "Version": "1", "DisplayName": "local", "Type": 2, "Activate": True, "PortLabel": "uplink", "IpType": 1,
            "Subnet": {"IP": "10.77.0.0", "Mask": base64.b64encode(bytes([255, 255, 255, 0])).decode()}, "Gateway": "10.77.0.1",
            "DhcpRange": {"Start": "10.77.0.2", "End": "10.77.0.254"}, **more})

    def publish_storage(self, a, name, image, generation=0):
        image.write_layout(self.root / "images" / name)
        content, volume = uuid_of("content" + name), uuid_of("volume" + name)
        a.publish("ContentTreeConfig", content, {"ContentID": content, "DatastoreIDList": [uuid_of("store")], "RelativeURL": name, "Format": 8,
                                                 "ContentSha256": "", "MaxDownloadSize": 0, "DisplayName": name})
        a.publish("VolumeConfig", f"{volume}#{generation}", {"VolumeID": volume, "ContentID": content, "VolumeContentOriginType": 2,
                                                             "GenerationCounter": generation, "DisplayName": name, "MaxVolSize": 0})

    def publish_app(self, a, name, **more):
        app = uuid_of(name)
        env = more.pop("env", "")
        rules = more.pop("rules", [{"RuleID": 1, "Matches": [{"Type": "ip", "Value": "0.0.0.0/0"}], "Actions": [{}]}])
        value = {"UUIDandVersion": {"UUID": app, "Version": "1"}, "DisplayName": name, "Activate": True,
                 "FixedResources": {"Memory": 65536, "VCpus": 1, "VirtualizationMode": 1},
                 "VolumeRefConfigList": [{"VolumeID": uuid_of("volume" + name), "GenerationCounter": 0, "AppUUID": app, "MountDir": "/"}],
                 "AppNetAdapterList": [{"Name": "net", "Network": self.network, "ACLs": rules}],
                 "pubsub-large-CloudInitUserData": base64.b64encode(env.encode()).decode(), **more}
        a.publish("AppInstanceConfig", app, value)
        return app

    def deploy(self, a, name, script, **more):
        self.publish_storage(a, name, image_of(script))
        return self.publish_app(a, name, **more)

    def lines(self, a, app):
        """What was collected of it, however far it has come. Files move while they are read: then they are read again."""
        a.tell(rotate=True)

        def files():
            return sorted(path for path in (self.root / "persist/newlog").glob("**/*") if app in str(path) and path.is_file())

        while True:
            found = []
            with contextlib.suppress(FileNotFoundError):
                there = files()
                for path in there:
                    data = path.read_bytes()
                    with contextlib.suppress(OSError, EOFError):
                        data = gzip.decompress(data)
                    for line in data.decode(errors="replace").splitlines():
                        with contextlib.suppress(ValueError):
                            found.append(json.loads(line)["content"])
                if files() == there:
                    return found

    def wait_line(self, a, app, text):
        end = time.monotonic() + SECONDS
        while text not in "\n".join(have := self.lines(a, app)):
            assert time.monotonic() < end, (text, have)
            with contextlib.suppress(AssertionError):
                a.until(lambda: False, seconds=0.2)
        return have


# ---- tests ----------------------------------------------------------------------------------------------------------------------

def test_an_application_runs_writes_and_hands_over_its_kubeconfig():
    script = (f"echo up $COLOUR $MORE; cat /etc/resolv.conf; ip -o -4 addr show eth0; head -c 32768 /dev/zero | busybox tr '\\0' a >/tmp/fits; "
              f"until {post('/tmp/fits')}; do busybox sleep 0.2; done; echo 32768 taken; "
              f"head -c 32769 /dev/zero | busybox tr '\\0' b >/tmp/large; {post('/tmp/large')} || echo 32769 refused; echo wrong >&2; exec sleep 1000")
    with Device() as d:
        a = d.agent()
        d.introduce(a)
        app = d.deploy(a, "web", script, env="MORE=x y\n")
        # Its network instance comes last: until then it waits.
        a.state(app, AWAIT_NETWORK)
        d.publish_network(a)
        status = a.state(app, RUNNING)
        assert a.states(app)[-4:] == [AWAIT_NETWORK, 111, 114, RUNNING], a.states(app)
        assert status["AppNetAdapters"][0]["AssignedAddresses"]["IPv4Addrs"] == [{"Address": "10.77.0.2", "AssignedBy": 4}], status
        assert status["Activated"] and status["BootTime"] > "2025"
        network = a.until(lambda: a.status(d.network, "NetworkInstanceStatus")["Vifs"] and a.status(d.network, "NetworkInstanceStatus"))
        assert network["Activated"] and network["Ports"] == ["ethernet0"] and network["BridgeIPAddr"] == "10.77.0.1", network
        lines = d.wait_line(a, app, "refused")
        assert "up red x y" in lines and f"nameserver {OUTSIDE}" in lines and "32768 taken" in lines and any("10.77.0.2/24" in x for x in lines), lines
        path = d.root / "persist/status/msrv/AppInstMetaData" / f"{app}-1.json"
        assert base64.b64decode(json.loads(path.read_text())["Data"]) == b"a" * 32768
        metric = a.until(lambda: (m := a.status(app, "DomainMetric")) and m["UsedMemory"] >= 0 and m, "no metrics")
        assert metric["Activated"] and (not limits_memory() or metric["AllocatedMB"] == 64), metric
        disk = a.until(lambda: next((v for (topic, _), v in a.values.items() if topic == "AppDiskMetric"), None), "the disk is not measured")
        assert disk["DiskPath"] == a.status(uuid_of("volumeweb") + "#0", "VolumeStatus")["FileLocation"] and disk["UsedBytes"] > 100000, disk
        # All of it goes again.
        for topic, key in (("AppInstanceConfig", app), ("VolumeConfig", uuid_of("volumeweb") + "#0"), ("ContentTreeConfig", uuid_of("contentweb")),
                           ("NetworkInstanceConfig", d.network)):
            a.publish(topic, key, None)
        a.gone("AppInstanceStatus", app)
        for topic, key in (("VolumeStatus", uuid_of("volumeweb") + "#0"), ("ContentTreeStatus", uuid_of("contentweb")), ("NetworkInstanceStatus", d.network)):
            a.gone(topic, key)
        assert not [key for key in a.values if key[0] == "AppDiskMetric"]
        a.end()
        assert not d.namespaces() and not d.links() and not d.processes(), (d.namespaces(), d.links(), d.processes())
        assert not list((d.root / "persist/runtime/volumes").iterdir()) and not list((d.root / "persist/runtime/contents").iterdir())


def test_killed_and_started_again_the_agent_adopts_what_runs():
    with Device() as d:
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        app = d.deploy(a, "web", COUNTING)
        booted = a.state(app, RUNNING)["BootTime"]
        d.wait_line(a, app, "line 3")
        pids = set(d.processes())
        a.kill()
        # A service's topics are still there for it, as in /run of a device.
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        d.publish_storage(a, "web", image_of(COUNTING))
        d.publish_app(a, "web")
        status = a.state(app, RUNNING)
        last = max(int(x.split()[1]) for x in d.lines(a, app) if x.startswith("line"))
        d.wait_line(a, app, f"line {last + 5}")
        assert sum(x.startswith("first") for x in d.lines(a, app)) == 1
        assert min(d.processes()) in pids, (pids, d.processes())
        assert status["AppNetAdapters"][0]["AssignedAddresses"]["IPv4Addrs"][0]["Address"] == "10.77.0.2"
        assert abs(datetime.datetime.fromisoformat(status["BootTime"][:19]) - datetime.datetime.fromisoformat(booted[:19])) < datetime.timedelta(seconds=5)
        # The metadata server is there for it again, and a command reaches it.
        d.publish_app(a, "web", RestartCmd={"Counter": 1})
        a.until(lambda: a.states(app)[-3:] == [HALTED, 114, RUNNING], "no restart")
        d.wait_line(a, app, "first")
        d.publish_app(a, "web", RestartCmd={"Counter": 1}, Activate=False)
        a.state(app, HALTED)
        a.end()
        assert not d.processes() and not d.namespaces(), (d.processes(), d.namespaces())


class Web(http.server.BaseHTTPRequestHandler):
    seen, files = [], {}

    def do_GET(self):
        self.seen.append(self.client_address[0])
        self.send_response(200 if self.path in ("/", *self.files) else 404)
        self.end_headers()
        self.wfile.write(self.files.get(self.path, b"hello from outside\n"))

    def log_message(self, *_):
        pass


def test_rules_decide_what_leads_out_and_in():
    assert shutil.which("nft"), "these tests need nftables"
    allow = {"RuleID": 1, "Matches": [{"Type": "ip", "Value": f"{OUTSIDE}/32"}], "Actions": [{}]}
    into = {"RuleID": 2, "Matches": [{"Type": "protocol", "Value": "tcp"}, {"Type": "lport", "Value": "8080"}], "Actions": [{"PortMap": True, "TargetPort": 80}]}
    fetch = f"busybox timeout 2 busybox wget -q -O - http://{OUTSIDE}:8000/"
    serve = "while :; do echo inside | busybox nc -l -p 80; done & "
    with Device() as d:
        with inside(d.outside):
            server = http.server.HTTPServer((OUTSIDE, 8000), Web)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        app = d.deploy(a, "open", f"{serve} until {fetch}; do busybox sleep 0.2; done; exec sleep 1000", rules=[allow, into])
        closed = d.deploy(a, "closed", f"while :; do if {fetch}; then echo got out; else echo kept in; fi; busybox sleep 0.2; done", rules=[into | {"Matches": []}])
        a.state(app, RUNNING)
        d.wait_line(a, app, "hello from outside")
        assert set(Web.seen) == {DEVICE}, Web.seen
        d.wait_line(a, closed, "kept in")
        with inside(d.outside):
            with socket.create_connection((DEVICE, 8080), SECONDS) as s:
                assert s.makefile().readline() == "inside\n"
        # Rules change while it runs.
        d.publish_app(a, "closed", rules=[allow])
        d.wait_line(a, closed, "got out")
        assert a.states(closed).count(RUNNING) == 1
        server.shutdown()
        a.end()


def test_one_that_ends_by_itself_is_told_and_started_again():
    with Device() as d:
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        app = d.deploy(a, "brief", "echo here; exit 3")
        status = a.state(app, HALTED, error=True)
        assert "exit code 3" in status["Error"] and status["ErrorTime"] > "2025" and status["ErrorSeverity"] == 3, status
        began = time.monotonic()
        a.until(lambda: a.states(app).count(HALTED) >= 2, "it is not started again")
        assert time.monotonic() - began > 5
        # Another command helps it.
        d.publish_app(a, "brief", env="EVE_ECO_CMD=/bin/sh -c 'echo \"well now\"; exec sleep 1000'", RestartCmd={"Counter": 1})
        a.until(lambda: a.status(app)["State"] == RUNNING and not a.status(app)["Error"], "no better with another command")
        d.wait_line(a, app, "well now")
        a.end()


def test_adapters_that_could_be_assigned():
    with Device() as d:
        a = d.agent()
        d.introduce(a)
        address = {"Ifname": "", "PciLong": "", "Irq": "", "Ioports": "", "Serial": "", "UsbAddr": "", "UsbProduct": ""}
        a.publish("PhysicalIOAdapterList", "zedagent", {"Initialized": True, "AdapterList": [
            {"Ptype": 1, "Phylabel": "first", "Logicallabel": "shopfloor", "Assigngrp": "eth", "Usage": 1, "Phyaddr": {**address, "Ifname": "eth0", "PciLong": "0000:01:00.0"}},
            {"Ptype": 1, "Phylabel": "eth7", "Logicallabel": "", "Assigngrp": "", "Usage": 0, "Phyaddr": address},
            {"Ptype": 3, "Phylabel": "COM1", "Logicallabel": "COM1", "Assigngrp": "com", "Usage": 0, "Phyaddr": {**address, "Serial": "/dev/ttyS0"}}]})
        value = a.until(lambda: (v := a.values.get(("AssignableAdapters", "global"))) and v["IoBundleList"][0]["IsPort"] and v, "no adapters")
        first, second, third = value["IoBundleList"]
        mac = json.loads(run("ip", "-n", d.home, "-j", "link", "show", "eth0"))[0]["address"]
        assert value["Initialized"] and (first["Ifname"], first["MacAddr"], first["AssignmentGroup"], first["PciLong"]) == ("eth0", mac, "eth", "0000:01:00.0")
        assert (second["Ifname"], second["IsPort"], second["MacAddr"]) == ("eth7", False, "")
        assert (third["Type"], third["Serial"], third["Ifname"]) == (3, "/dev/ttyS0", "") and not any(b["IsPCIBack"] for b in value["IoBundleList"])
        a.end()


def test_an_image_comes_from_a_web_server():
    image = image_of("echo from the web; exec sleep 1000")
    tar = tar_of(list(image.files().items()))
    with Device() as d:
        with inside(d.outside):
            server = http.server.ThreadingHTTPServer((OUTSIDE, 8000), Web)
        Web.files = {"/images/app.tar": tar}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        a.publish("DatastoreConfig", uuid_of("store"), {"UUID": uuid_of("store"), "DsType": "DsHttp", "Fqdn": f"http://{OUTSIDE}:8000", "Dpath": "images"})
        app = d.deploy(a, "web", "true")
        content = {"ContentID": uuid_of("contentweb"), "DatastoreIDList": [uuid_of("store")], "RelativeURL": "app.tar", "Format": 8, "MaxDownloadSize": 0,
                   "ContentSha256": "0" * 64, "DisplayName": "web"}
        a.publish("ContentTreeConfig", content["ContentID"], content)
        a.until(lambda: (s := a.status(app)) and "its content is not sha256:000" in s["Error"], "it is taken whatever it is")
        a.until(lambda: (b := a.values.get(("BlobStatus", "0" * 64))) and "its content is not" in b["Error"], "the blob has no error")
        sha = hashlib.sha256(tar).hexdigest()
        a.publish("ContentTreeConfig", content["ContentID"], content | {"ContentSha256": sha})
        a.until(lambda: a.status(app)["State"] == RUNNING, "it does not run")
        d.wait_line(a, app, "from the web")
        a.gone("BlobStatus", "0" * 64)
        blob = a.until(lambda: (b := a.values.get(("BlobStatus", sha))) and b["Progress"] == 100 and b, "no blob")
        assert (blob["Sha256"], blob["RefCount"], blob["Error"]) == (sha, 1, "") and blob["State"] == a.values["ContentTreeStatus", content["ContentID"]]["State"]
        assert a.values["ContentTreeStatus", content["ContentID"]]["Blobs"] == [sha]
        # Another content that hangs on the same one is counted, until it goes.
        other = uuid_of("another")
        a.publish("ContentTreeConfig", other, content | {"ContentID": other, "ContentSha256": sha})
        a.until(lambda: a.values["BlobStatus", sha]["RefCount"] == 2, "it is not counted")
        a.publish("ContentTreeConfig", other, None)
        a.until(lambda: a.values["BlobStatus", sha]["RefCount"] == 1, "it is still counted")
        server.shutdown()
        a.end()
