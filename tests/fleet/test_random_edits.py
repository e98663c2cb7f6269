# SPDX-License-Identifier: Apache-2.0
"""Random edits of all that reaches a device, with reports, deletions and crashes among them: whatever the moment at which the device asks, what it
is told is sound by itself and as the successor of what it was told before, and an application that runs is never absent."""
import random

import golden
from boxes import GROUP, PORTS, Box, app_of, condition, get, settle, wait_condition
from seth import TOP, Server

NS, DEVICE, APP = "complete-application", "edge-node-01", "app-ubuntu"
STEPS, SEEDS = 60, (11, 12)
MERGE = {"Content-Type": "application/merge-patch+json"}
RAW = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "resources": {"requests": {"storage": "8Gi"}}, "storageClassName": "eve-blank"}


class Walk:
    def __init__(self, s, seed):
        self.s, self.random, self.trail, self.n = s, random.Random(seed), [], 60
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        s.ok("POST", f"{GROUP}/namespaces/{NS}/images", {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Image", "metadata": {"name": "other"},
                                                         "spec": {"ref": "corp1/other:1", "storageClass": "eve-quay"}})
        self.box = Box(s, NS, DEVICE, "4CE21370XD").begin()
        self.box.report()
        self.box.until_app(APP)
        self.box.keeps.add(APP)

    def patch(self, kind, name, body):
        """Refusals are fine: they are answers, too."""
        root = f"/api/v1/namespaces/{NS}" if kind in ("secrets", "configmaps") else f"{GROUP}/namespaces/{NS}"
        status, answer = self.s.request("PATCH", f"{root}/{kind}/{name}", body, MERGE)
        assert status in (200, 409, 422), (status, answer)

    def volumes(self):
        choices = [({"name": "pd", "persistentVolumeClaim": {"claimName": "fsclaim"}}, "volumeMounts", {"mountPath": "/pages", "name": "pd"}),
                   ({"name": "ubuntu", "persistentVolumeClaim": {"claimName": "ubuntuclaim"}}, "volumeDevices", {"devicePath": "/dev/sda2", "name": "ubuntu"}),
                   ({"name": "raw", "ephemeral": {"volumeClaimTemplate": {"spec": RAW}}}, "volumeDevices", {"devicePath": "/dev/sda3", "name": "raw"})]
        return [c for c in choices if self.random.random() < 0.5]

    def application(self):
        r, volumes = self.random, self.volumes()
        container = {"name": "frontend", "image": r.choice(["golden-ubuntu-2004", "other"]),
                     "resources": {"limits": {"cpu": str(r.randint(1, 4)), "memory": f"{r.randint(100, 900)}Mi"}},
                     **{kind: [use for _, k, use in volumes if k == kind] for kind in ("volumeMounts", "volumeDevices")},
                     **r.choice([{}, {"ports": [{"containerPort": 80, "hostPort": r.randint(8080, 8083)}]}])}
        self.patch("applications", APP, {
            "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": r.choice(["wlan-local,vpn-corp", "default-ipv4", "vpn-corp", None])}},
            "spec": {"containers": [container], "volumes": [v for v, _, _ in volumes], "activate": r.random() < 0.8, "vnc": r.random() < 0.3,
                     "userData": r.choice([None, "A=1", "B=2"])}})

    def network(self):
        r = self.random
        name, spec = r.choice([("vpn-corp", {"type": "switch"}), ("vpn-corp", {"subnet": r.choice([None, "10.1.0.0/24", "10.2.0.0/24"])}),
                               ("vpn-corp", {"management": r.random() < 0.5}), ("wlan-local", {"management": r.random() < 0.5}),
                               ("default-ipv4", {"ports": r.choice([["eth0"], ["eth0", "eth1"], ["eth2"], None])})])
        self.patch("devicenetworks", name, {"spec": spec})

    def connection(self):
        self.patch("networkconfigs", "corp", {"spec": self.random.choice([{"ip": "dhcp"}, {"ip": "static"}, {"mtu": 1400}, {"mtu": None}])})

    def image(self):
        name, spec = self.random.choice([("golden-ubuntu-2004", {"ref": self.random.choice(["corp1/ubuntu:20.04", "corp1/ubuntu:22.04"])}),
                                         ("golden-disk", {"sha256": self.random.choice(["8", "9"]) * 64})])
        self.patch("images", name, {"spec": spec})

    def secret(self):
        self.patch("secrets", self.random.choice(["wlan", "ftp-creds"]), {"stringData": {"password": self.random.choice(["walls-have-ears", "another-one"])}})

    def device(self):
        r = self.random
        annotations = r.choice([{"reboot": str(r.randint(0, 9))}, {"config.timer.config.interval": str(r.randint(5, 60))},
                                {"network-eth1": r.choice(["vpn-corp", "default-ipv4", None]), "address-eth1": r.choice(["192.168.7.9", None])}])
        self.patch("devices", DEVICE, {"metadata": {"annotations": {f"eve.lfedge.org/{k}": v for k, v in annotations.items()}}})

    def report(self):
        self.box.report(ports=self.random.choice([PORTS, (*PORTS, ("eth2", "PhyIoNetEth"))]))

    def catch_up(self):
        """Until all edits so far are composed."""
        self.n += 1
        self.patch("devices", DEVICE, {"metadata": {"annotations": {"eve.lfedge.org/config.timer.metric.interval": str(self.n)}}})
        self.box.until(lambda c: {"key": "timer.metric.interval", "value": str(self.n)} in c.get("configItems", []), "the last edit")

    def give_back(self):
        """Not while something is only kept as it was: that would go with the DeviceConfig."""
        self.catch_up()
        if condition(get(self.s, NS, "deviceconfigs", DEVICE), "Composed")["status"] == "True":
            self.s.ok("DELETE", f"{GROUP}/namespaces/{NS}/deviceconfigs/{DEVICE}")
            self.catch_up()

    def guard(self):
        """The application that is there now stays."""
        app, there = app_of(self.box.config, APP), get(self.s, NS, "applications", APP)
        if app and app["uuidandversion"]["uuid"] == there["status"]["uuid"]:
            self.box.keeps.add(APP)

    def begin_anew(self):
        self.box.keeps.clear()
        self.s.kubectl("delete", "eapp", APP, "-n", NS)
        self.s.kubectl("apply", "-f", str(TOP / "examples" / NS / "8-application.yaml"))

    def crash(self):
        self.random.choice([self.s.kill, self.s.stop])()
        self.s.start()

    def step(self):
        kinds = [self.application] * 4 + [self.network] * 3 + [self.connection, self.image, self.secret, self.device, self.report, self.give_back]
        action = self.crash if self.random.random() < 0.03 else self.begin_anew if self.random.random() < 0.04 else self.random.choice(kinds)
        self.trail.append(action.__name__)
        action()
        for _ in range(self.random.randint(0, 5)):
            self.box.fetch()
        self.guard()


def walk(seed):
    with Server() as s:
        w = Walk(s, seed)
        try:
            for _ in range(STEPS):
                w.step()
            ends_well(s, w)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}, after {w.trail[-6:]}: {e}") from None


def ends_well(s, w):
    """As soon as nothing is edited any more everything comes to rest, and to the same as if it were composed for the first time."""
    w.patch("devices", DEVICE, {"metadata": {"annotations": {"eve.lfedge.org/network-eth1": None, "eve.lfedge.org/address-eth1": None}}})
    w.patch("devicenetworks", "vpn-corp", {"spec": {"subnet": None}})
    s.kubectl("apply", "-f", str(TOP / "examples" / NS))
    w.begin_anew()
    w.box.until_app(APP)
    settle(w.box)
    wait_condition(s, NS, "deviceconfigs", DEVICE, "Delivered", "True")
    before = w.box.config
    w.box.keeps.add(APP)
    s.ok("DELETE", f"{GROUP}/namespaces/{NS}/deviceconfigs/{DEVICE}")
    settle(w.box)
    strip = lambda c: {k: v for k, v in c.items() if k not in ("id", "configTimestamp")}
    assert strip(w.box.config) == strip(before), f"what is composed depends on what was there:\n{golden.difference(strip(before), strip(w.box.config))}"


def test_random_edits():
    for seed in SEEDS:
        walk(seed)
