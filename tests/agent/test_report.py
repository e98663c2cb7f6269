# SPDX-License-Identifier: Apache-2.0
"""What the agent reports, as users of a real server see it: zedagent and the reporter in a process of their own on this machine, all other
services' topics published by the test."""
import base64
import json
import os
import pathlib
import platform
import queue
import shutil
import subprocess
import tempfile
import threading
import time

import eve
from fleet import Site, shared_site as site
from seth import Server, binary, unique, wait_until
from test_status import API, application, condition, make, status, wait_condition

SECONDS = 60
TOOL = str(pathlib.Path(binary()).resolve().parents[1] / "tests/agent/report_tool")
ZERO = "0001-01-01T00:00:00Z"
NO_ERROR = {"Error": "", "ErrorTime": ZERO, "ErrorSeverity": 0, "ErrorRetryCondition": "", "ErrorEntities": None}
# types.SwState
DOWNLOADING, LOADED, CREATED_VOLUME, BOOTING, RUNNING, HALTED = 103, 108, 110, 114, 115, 119


def stamp(offset=0.0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + offset))


class Agent:
    """An onboarded device's directories and a life of the tool on them."""

    def __init__(self, of, device, speed=1):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="report-"))
        for name, content in (("server", f"127.0.0.1:{of.server.device_port}\n".encode()), ("root-certificate.pem", of.root_pem),
                              ("device.cert.pem", device.identity.pem), ("device.key.pem", device.identity.key_pem())):
            (self.root / "config").mkdir(exist_ok=True)
            (self.root / "config" / name).write_bytes(content)
        onboarded = self.root / "persist/status/zedclient/OnboardingStatus"
        onboarded.mkdir(parents=True)
        (onboarded / "global.json").write_text(json.dumps({"DeviceUUID": device.uuid, "HardwareModel": ""}))
        (self.root / "persist/checkpoint").mkdir()
        (self.root / "persist/checkpoint/controllercerts").write_bytes(eve.payload_of(device.certs().body))
        self.process = subprocess.Popen([TOOL, *(str(self.root / d) for d in ("config", "persist", "run")), str(speed)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        self.reader = threading.Thread(target=lambda: [self.events.put(json.loads(line)) for line in self.process.stdout])
        self.reader.start()

    def command(self, **words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def publish(self, topic, key, value, persistent=False):
        self.command(publish=topic, key=key, value=value, persistent=persistent)

    def unpublish(self, topic, key):
        self.command(unpublish=topic, key=key)

    def connect(self):
        """What nim and nodeagent say of a device that reaches its controller."""
        port = {"IfName": "lo", "Phylabel": "eth0", "Logicallabel": "eth0", "IsMgmt": True, "IsL3Port": True, "Up": True, "MTU": 1500,
                "MacAddr": "AhEiM0RV", "AddrInfoList": [{"Addr": "127.0.0.1"}, {"Addr": "192.0.2.77"}],
                "LastFailed": ZERO, "LastSucceeded": stamp(), "LastError": ""}
        config = {"Version": 1, "Key": "zedagent", "TimePriority": stamp(), "LastSucceeded": stamp(), "LastFailed": ZERO, "Ports": [port]}
        self.publish("nodeagent/NodeAgentStatus", "nodeagent", {"Name": "nodeagent", "BootReason": 1, "RestartCounter": 4, "RebootReason": "first boot"})
        self.publish("nim/DevicePortConfigList", "global", {"CurrentIndex": 0, "PortConfigList": [config]}, persistent=True)
        self.publish("nim/DeviceNetworkStatus", "global", {"Version": 1, "State": 3, "Ports": [port]})

    def app(self, uuid, state, **more):
        self.publish("zedmanager/AppInstanceStatus", uuid, {
            "UUIDandVersion": {"UUID": uuid, "Version": "1"}, "DisplayName": "app", "State": state, "Activated": state == RUNNING,
            "BootTime": stamp() if state == RUNNING else ZERO, **NO_ERROR, **more})

    def counts(self):
        self.command(counts=True)
        while True:
            event = self.events.get(timeout=SECONDS)
            assert event["event"] == "counts", event
            return event

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        try:
            code = self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.reader.join(SECONDS)
            shutil.rmtree(self.root)
        assert kind or code == 0, code


def telemetry(of, d, kind):
    """What the server keeps of it, of one kind, oldest first."""
    return [m["message"][kind] for m in of.read(d, "info") if kind in m["message"]]


# ---- the device

def test_this_machine_as_a_device(s):
    d = site(s).onboarded()
    name = site(s).name(d)
    with Agent(site(s), d, speed=10) as agent:
        agent.connect()
        for kind in ("Ready", "BaseOSUpdated", "Healthy", "ConfigAccepted", "ConfigApplied"):
            wait_condition(s, "devices", name, kind, "True")
        wait_until(lambda: "kernelVersion" in status(s, "devices", name).get("nodeInfo", {}), what="the inventory")
        st = status(s, "devices", name)
        assert st["nodeInfo"]["kernelVersion"] == platform.release()
        assert st["capacity"]["cpu"] == str(os.cpu_count()), st["capacity"]
        assert {"memory", "ephemeral-storage"} <= st["capacity"].keys() and "memory" in st["allocatable"]
        assert st["nodeInfo"]["operatingSystem"] == "linux" and st["nodeInfo"]["bootID"]
        assert st["eve-os-version"].startswith("seth-")
        assert {"type": "InternalIP", "address": "192.0.2.77"} in st["addresses"], st["addresses"]
        assert [p["label"] for p in st["ports"]][:1] == ["eth0"] and st["ports"][0]["interface"] == "lo", st["ports"]
        told = telemetry(site(s), d, "dinfo")[-1]
        assert told["lastRebootReason"] == "first boot" and told["restartCounter"] == 4
        # The topic files of a real device are there for EVE's own services, and so are the last messages.
        assert wait_until(lambda: (agent.root / "persist/checkpoint/lastdeviceinfo").exists(), what="the last message")
        assert (agent.root / "persist/checkpoint/lastmetrics").stat().st_size > 0
        assert "True" in s.kubectl("-n", site(s).ns, "get", "edev", name)


def test_a_port_that_does_not_work_is_told(s):
    d = site(s).onboarded()
    name = site(s).name(d)
    with Agent(site(s), d, speed=10) as agent:
        agent.connect()
        wait_condition(s, "devices", name, "ConfigApplied", "True")
        port = {"IfName": "lo", "Logicallabel": "eth0", "Phylabel": "eth0", "IsMgmt": True, "IsL3Port": True, "AddrInfoList": [{"Addr": "127.0.0.1"}]}
        newest = {"Version": 1, "Key": "zedagent", "TimePriority": stamp(), "LastFailed": stamp(), "LastError": "no address by DHCP",
                  "Ports": [{**port, "LastFailed": stamp(), "LastSucceeded": ZERO, "LastError": "no address by DHCP"}]}
        older = {"Version": 1, "Key": "lastresort", "TimePriority": "1970-01-01T00:00:00Z", "LastSucceeded": stamp(), "Ports": [port]}
        agent.publish("nim/DevicePortConfigList", "global", {"CurrentIndex": 1, "PortConfigList": [newest, older]}, persistent=True)
        c = wait_condition(s, "devices", name, "ConfigApplied", "False", "NetworkFallback")
        assert "no address by DHCP" in c["message"]


# ---- applications

def test_an_application_from_download_to_deletion(s):
    d = site(s).onboarded()
    with Agent(site(s), d) as agent:
        agent.connect()
        name, app = application(s, d)
        agent.app(app, DOWNLOADING)
        wait_until(lambda: status(s, "applications", name).get("state") == "DOWNLOAD_STARTED", what="the download")
        agent.app(app, DOWNLOADING, Error="no such image", ErrorTime=stamp(), ErrorSeverity=3)
        c = wait_condition(s, "applications", name, "Ready", "False", "DeviceError")
        assert "no such image" in c["message"]
        agent.app(app, RUNNING, AppNetAdapters=[{"Name": "eth0", "VifUsed": "nbu1x1", "Mac": "AhY+AAAB", "IPv4Assigned": True,
                                                 "AssignedAddresses": {"IPv4Addrs": [{"Address": "10.11.12.13", "AssignedBy": 4}]}}])
        wait_condition(s, "applications", name, "Ready", "True")
        assert {"type": "InternalIP", "address": "10.11.12.13"} in status(s, "applications", name)["addresses"]
        wait_until(lambda: status(s, "devices", site(s).name(d)).get("apps", {}).get("running") == 1, what="it to be counted")
        agent.app(app, HALTED)
        wait_until(lambda: status(s, "applications", name).get("state") == "HALTED", what="the end")
        agent.unpublish("zedmanager/AppInstanceStatus", app)
        wait_condition(s, "applications", name, "Ready", "False", "Deleted")


def test_a_kubeconfig_becomes_a_secret_and_goes_with_it(s):
    d = site(s).onboarded()
    with Agent(site(s), d) as agent:
        agent.connect()
        name, app = application(s, d)
        agent.app(app, RUNNING)
        secret = f"/api/v1/namespaces/{site(s).ns}/secrets/{name}-kubeconfig"

        def content():
            code, body = s.request("GET", secret)
            return base64.b64decode(body["data"]["kubeconfig"]) if code == 200 else None

        def post(data):
            agent.publish("msrv/AppInstMetaData", f"{app}-1", {"AppInstUUID": app, "Type": 1, "Data": base64.b64encode(data).decode()}, persistent=True)

        post(b"apiVersion: v1\nkind: Config\n\xff")
        wait_until(lambda: content() == b"apiVersion: v1\nkind: Config\n\xff", what="the Secret")
        largest = b"x" * 32768
        post(largest)
        wait_until(lambda: content() == largest, what="the largest")
        agent.unpublish("msrv/AppInstMetaData", f"{app}-1")
        wait_until(lambda: content() is None, what="the Secret to go")


def test_a_volume_with_its_size(s):
    d = site(s).onboarded()
    with Agent(site(s), d) as agent:
        agent.connect()
        vol = unique("vol")
        volume = make(s, "volumes", "Volume", vol, {"device": site(s).name(d), "claim": "c", "application": "a"})
        value = {"VolumeID": volume, "DisplayName": "v", "State": CREATED_VOLUME, "MaxVolSize": 10 << 30, "FileLocation": "", "CreateTime": stamp(),
                 "Progress": 100, **NO_ERROR}
        agent.publish("volumemgr/VolumeStatus", f"{volume}#0", value)
        wait_condition(s, "volumes", vol, "Ready", "True")
        assert status(s, "volumes", vol)["capacity"] == {"storage": "10Gi"}
        # Made anew: the old one goes, the new one is what there is.
        agent.publish("volumemgr/VolumeStatus", f"{volume}#1", {**value, "GenerationCounter": 1})
        agent.unpublish("volumemgr/VolumeStatus", f"{volume}#0")
        wait_until(lambda: telemetry(site(s), d, "vinfo")[-1].get("generationCount") == "1", what="the new volume")
        assert condition(s, "volumes", vol, "Ready")["status"] == "True"
        agent.unpublish("volumemgr/VolumeStatus", f"{volume}#1")
        wait_condition(s, "volumes", vol, "Ready", "False", "Deleted")


def test_what_several_devices_share(s):
    d = site(s).onboarded()
    img, net = unique("img"), unique("net")
    content = make(s, "images", "Image", img, {"ref": "nginx:1", "storageClass": "eve-docker"})
    s.ok("POST", site(s).path("networkconfigs"), {"apiVersion": API, "kind": "NetworkConfig", "metadata": {"name": net}, "spec": {"ip": "dhcp"}})
    nowhere = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "no", "operator": "In", "values": ["where"]}]}]}
    network = make(s, "devicenetworks", "DeviceNetwork", net, {
        "networkConfig": net, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nowhere}}})
    site(s).tell(d, {"id": {"uuid": d.uuid, "version": "2"}, "contentInfo": [{"uuid": content, "displayName": "i"}],
                     "networkInstances": [{"uuidandversion": {"uuid": network, "version": "1"}, "displayname": "n"}]})
    with Agent(site(s), d) as agent:
        agent.connect()
        status_of_content = {"ContentID": content, "DisplayName": "i", "IsLocal": True, "CreateTime": stamp(), "TotalSize": 100, **NO_ERROR}
        agent.publish("volumemgr/ContentTreeStatus", content, {**status_of_content, "State": DOWNLOADING, "Progress": 40})
        wait_condition(s, "images", img, "Ready", "False", "Preparing")
        agent.publish("volumemgr/ContentTreeStatus", content, {**status_of_content, "State": LOADED, "Progress": 100})
        wait_condition(s, "images", img, "Ready", "True")
        instance = {"UUID": network, "Version": "1", "DisplayName": "n", "Type": 2, "Activated": True, "Ports": ["eth0"], **NO_ERROR}
        broken = {"Activated": False, "Error": "no uplink", "ErrorTime": stamp(), "ErrorSeverity": 3}
        agent.publish("zedrouter/NetworkInstanceStatus", network, {**instance, **broken})
        c = wait_condition(s, "devicenetworks", net, "Ready", "False", "DeviceError")
        assert "no uplink" in c["message"], c
        agent.publish("zedrouter/NetworkInstanceStatus", network, instance)
        wait_condition(s, "devicenetworks", net, "Ready", "True")


# ---- when and how often

def test_everything_is_told_again_when_the_controller_begins_a_new_epoch(s):
    d = site(s).onboarded()
    with Agent(site(s), d, speed=10) as agent:
        agent.connect()
        _, app = application(s, d)
        agent.app(app, RUNNING)
        wait_until(lambda: telemetry(site(s), d, "ainfo") and telemetry(site(s), d, "hwinfo"), what="the first reports")
        before = {kind: len(telemetry(site(s), d, kind)) for kind in ("ainfo", "hwinfo", "dinfo")}
        site(s).tell(d, {"id": {"uuid": d.uuid, "version": "77"}, "controllerEpoch": "5"})
        wait_until(lambda: all(len(telemetry(site(s), d, kind)) > n for kind, n in before.items()), what="everything again")


def test_after_an_outage_the_newest_of_each_arrives():
    with Server() as s:
        here = Site(s)
        d = here.onboarded()
        with Agent(here, d, speed=20) as agent:
            agent.connect()
            wait_until(lambda: agent.counts()["delivered"] >= 2, what="the first reports")
            s.kill()
            apps = [f"aaaaaaaa-0000-4000-8000-{i:012}" for i in range(20)]
            for state in (DOWNLOADING, BOOTING, RUNNING, HALTED):
                for app in apps:
                    agent.app(app, state)
                time.sleep(0.1)
            wait_until(lambda: agent.counts()["waiting"] >= 20, what="reports to wait")
            assert agent.counts()["waiting"] <= 22  # one of each application, the device, its hardware
            wait_until(lambda: agent.counts()["lost"] >= 1, what="metrics to be lost")
            s.start()
            wait_until(lambda: agent.counts()["waiting"] == 0, SECONDS, what="all to arrive")
            told = telemetry(here, d, "ainfo")
            assert sorted(m["AppID"] for m in told) == apps and {m["state"] for m in told} == {"HALTED"}, told
