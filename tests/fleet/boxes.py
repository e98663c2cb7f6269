# SPDX-License-Identifier: Apache-2.0
"""Devices that live: they fetch what they are told, judge it as EVE would, and report.

    box = Box(server, "first-device", "eve-device.lab1", serial="6654abbcc44")
    box.begin()                                    # registers, sends its certificates
    config = box.until(lambda c: c.get("apps"))    # fetches until the configuration is so; an EdgeDevConfig in protobuf JSON
    box.report()                                   # ZInfoDevice with ports
    box.says("web", "BOOTING")                     # ZInfoApp of one of its applications
    with living(box, other): ...                   # runs whatever it is told to run, by itself

Every configuration that a box fetches is checked by the validator, by itself and as the successor of the one before."""
import base64
import contextlib
import datetime
import json
import re
import threading
import time

import eve
import validator
import wire
from seth import wait_until

GROUP = "/apis/eve.lfedge.org/v1beta1"
CONFIG = "config.EdgeDevConfig"
PATIENCE = 60
STILL = 25     # questions without news
BREATH = 0.05  # between two questions: who asks without end is told 429
GIGABYTE = 1024
VERSION = "14.4.0-kvm-amd64"
PORTS = (("eth0", "PhyIoNetEth"), ("eth1", "PhyIoNetEth"), ("wlan0", "PhyIoNetWLAN"))


# ---- protobuf JSON

def camel(name):
    return re.sub("_(.)", lambda m: m.group(1).upper(), name)


def _value(kind, value):
    if kind == "google.protobuf.Timestamp":
        moment = datetime.datetime.fromtimestamp(value.get("seconds", 0), datetime.timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{value.get('nanos', 0):09d}Z"
    if kind in wire.MESSAGES:
        return protojson(kind, value)
    if kind in wire.ENUMS:
        return next((n for n, v in wire.ENUMS[kind].items() if v == value), value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def protojson(message, values):
    """What wire.decode() gives, by the names of protobuf JSON; 64-bit numbers stay numbers."""
    assert "?" not in values, f"{message} has fields that its table does not know: {values['?']}"
    fields = {f.name: f for f in wire.MESSAGES[message].values()}
    out = {}
    for name, value in values.items():
        kind = fields[name].kind
        out[camel(name)] = dict(value) if fields[name].is_map else [_value(kind, v) for v in value] if fields[name].is_repeated else _value(kind, value)
    return out


# ---- looking

def get(server, namespace, plural, name):
    status, body = server.request("GET", f"{GROUP}/namespaces/{namespace}/{plural}/{name}")
    return body if status == 200 else None


def condition(thing, kind):
    for c in (thing or {}).get("status", {}).get("conditions", []):
        if c["type"] == kind:
            return c
    return {"status": None, "reason": None, "message": None}


def wait_condition(server, namespace, plural, name, kind, status, reason=None, seconds=PATIENCE):
    """Until the condition is so; the condition."""
    found = {}

    def holds():
        found["object"] = get(server, namespace, plural, name)
        c = condition(found["object"], kind)
        return c["status"] == status and reason in (None, c["reason"])

    try:
        wait_until(holds, seconds, f"{kind}={status} of {plural}/{name}")
    except AssertionError as e:
        raise AssertionError(f"{e}: {json.dumps((found['object'] or {}).get('status'), indent=1)}") from None
    return condition(found["object"], kind)


def counter(app, name):
    return app.get(name, {}).get("counter", 0)


def app_of(config, name):
    return next((a for a in config.get("apps", []) if a["displayname"] == name), None)


# ---- devices

class Box:
    def __init__(self, server, namespace, name, serial, onboarding=None):
        self.server, self.namespace, self.name = server, namespace, name
        self.root_pem = (server.dir / "ca.pem").read_bytes()
        self.device = eve.Device("127.0.0.1", server.device_port, self.root_pem, onboarding=onboarding or eve.onboarding_identity(), serial=serial)
        self.config, self.raw, self.n_fetched, self.version = None, None, 0, VERSION
        self.keeps = set()  # applications that may not be gone from one configuration to the next: a device deletes what is absent
        self.lock = threading.Lock()

    def begin(self, with_certificates=True):
        self.device.onboard()
        if with_certificates:
            self.send_certificates()
        return self

    def send_certificates(self):
        answer, _ = self.device.attest_certs()
        assert answer.status in (200, 201), answer

    def fetch(self):
        """Asks once; the configuration it has then."""
        with self.lock:
            answer, response = self.device.config()
            assert answer.status in (200, 304, 429, 503), answer
            if response is not None:
                self._take(answer, response)
            return self.config

    def _take(self, answer, response):
        self.raw, self.decoded = answer.body, response["config"]
        config = protojson(CONFIG, response["config"])
        # Commands come when it has reported, so that it forgets what another controller counted; then they stay, by commands_stay.
        findings = [f for f in validator.validate(config) if f.rule != "commands_are_there_from_the_start"]
        findings += validator.validate_change(self.config, config) if self.config else []
        assert not findings, f"{self.name} is told what a device does not take: {findings}\n{json.dumps(config, indent=1)}"
        assert config["id"]["uuid"] == self.device.uuid, config["id"]
        gone = self.keeps - {a["displayname"] for a in config.get("apps", [])}
        assert not gone, f"{self.name} is told to delete {gone}\n{json.dumps(config, indent=1)}"
        self.config, self.n_fetched = config, self.n_fetched + 1

    def until(self, holds, what="a configuration", seconds=PATIENCE):
        """Asks until the configuration is so."""
        def is_so():
            is_told = (c := self.fetch()) is not None and holds(c)
            return is_told or time.sleep(BREATH)

        try:
            wait_until(is_so, seconds, f"{what} on {self.name}")
        except AssertionError as e:
            raise AssertionError(f"{e}: {json.dumps(self.config, indent=1)}") from None
        return self.config

    def until_app(self, name, holds=lambda app: True, seconds=PATIENCE):
        """Until it is told of that application so; the application."""
        return app_of(self.until(lambda c: (app := app_of(c, name)) is not None and holds(app), f"application {name}", seconds), name)

    def decrypt(self, block):
        """The EncryptionBlock in a cipher block of the last configuration, as protobuf JSON has blocks."""
        found = next(b for _, b in _blocks(self.decoded) if base64.b64encode(b["cipherData"]).decode() == block["cipherData"])
        plain = self.device.decrypt(self.decoded, found)
        return {k: v for k, v in wire.decode("common.EncryptionBlock", plain).items() if v}

    # -- reports

    def _told(self, send):
        def accepted():
            answer = send()
            assert answer.status in (201, 429, 503), answer
            return answer.status == 201 or time.sleep(BREATH)

        wait_until(accepted, PATIENCE, "the controller to have time")

    def info(self, kind, member, content):
        self._told(lambda: self.device.info({"ztype": kind, member: content}))

    def report(self, software=None, ports=PORTS, **more):
        """ZInfoDevice: what the device is."""
        self.info("ZiDevice", "dinfo", {
            "machineArch": "x86_64", "ncpu": 8, "memory": 16 * GIGABYTE, "storage": 200 * GIGABYTE, "HostName": self.name, "state": "ZDEVICE_STATE_ONLINE",
            "network": [{"IPAddrs": ["192.0.2.10"], "uplink": True}], "minfo": {"manufacturer": "ACME", "serialNumber": self.device.serial},
            "assignableAdapters": [{"type": kind, "name": name, "members": [name]} for name, kind in ports],
            "swList": software or [{"shortVersion": self.version, "userStatus": "UPDATED", "activated": True, "partitionState": "active"}], **more})

    def metrics(self):
        self._told(lambda: self.device.metrics({"dm": {
            "last_received_config": wire.timestamp(), "last_processed_config": wire.timestamp(), "deviceMemory": {"memoryMB": 16 * GIGABYTE, "allocated_eveMB": GIGABYTE}}}))

    def says(self, name, state, **more):
        """ZInfoApp of an application that it has been told of."""
        app = app_of(self.config, name)
        self.info("ZiApp", "ainfo", {"AppID": app["uuidandversion"]["uuid"], "AppName": name, "appVersion": app["uuidandversion"].get("version", ""), "state": state, **more})

    def volume(self, volume, state, **more):
        self.info("ZiVolume", "vinfo", {"uuid": volume, "displayName": "volume", "state": state, **more})


def settle(box):
    """Until it has been told nothing new for a while."""
    same = [0, box.n_fetched]

    def is_still():
        box.fetch()
        same[:] = [same[0] + 1, same[1]] if same[1] == box.n_fetched else [0, box.n_fetched]
        return same[0] > STILL * 4 and box.config

    wait_until(is_still, PATIENCE, f"{box.name} to be told nothing new")


def _blocks(value, path=""):
    if isinstance(value, list):
        for item in value:
            yield from _blocks(item, path)
    elif isinstance(value, dict):
        if {"cipherContextId", "cipherData"} <= value.keys() and isinstance(value["cipherData"], bytes):
            yield path, value
        for key, below in value.items():
            yield from _blocks(below, key)


@contextlib.contextmanager
def living(*boxes, period=0.2):
    """Meanwhile they ask, and run what they are told: every application that is new to them is reported as running."""
    stop, trouble, running = threading.Event(), [], {}

    def step(box):
        config = box.fetch() or {}
        wanted = {a["uuidandversion"]["uuid"]: (a["displayname"], counter(a, "restart"), counter(a, "purge")) for a in config.get("apps", []) if a.get("activate")}
        for uuid, how in wanted.items():
            if running.get((box.name, uuid)) != how:
                for state in ("BOOTING", "RUNNING"):
                    box.info("ZiApp", "ainfo", {"AppID": uuid, "AppName": how[0], "state": state})
                running[box.name, uuid] = how

    def live(box):
        while not stop.is_set() and not trouble:
            try:
                step(box)
            except Exception as e:
                trouble.append(e)
            stop.wait(period)

    threads = [threading.Thread(target=live, args=(box,), daemon=True) for box in boxes]
    for t in threads:
        t.start()
    try:
        yield trouble
    finally:
        stop.set()
        for t in threads:
            t.join(eve.SECONDS)
    if trouble:
        raise trouble[0]
