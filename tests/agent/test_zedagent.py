# SPDX-License-Identifier: Apache-2.0
"""The agent's zedagent in a process of its own: against a real server, and against one that answers what no good controller answers."""
import contextlib
import json
import os
import pathlib
import queue
import random
import shutil
import subprocess
import threading
import time
import uuid

import eve
import wire
from controller import Controller, Reply
from fleet import Site, shared_site
from seth import TOP, Server, binary, wait_until
from tool import TOOLS, Directories, network

SECONDS = 60
SUCCESS, FAIL, TEMPORARY, SAVED = 1, 2, 3, 4
CONNECTING, CONNECTED, ONBOARDED, BAD_ENVELOPE = 2, 3, 4, 15
POWER_CUTS = 40
KILLS = 25


class Life:
    """Of the tool; network() is there from the start."""

    def __init__(self, device, speed, environment=None):
        command = [TOOLS / "zedagent_tool", *device.directories(), str(speed)]
        self.log = open(device.root / "log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        self.events = queue.Queue()
        self.reader = threading.Thread(target=lambda: [self.events.put(json.loads(line)) for line in self.process.stdout])
        self.reader.start()
        self.say(nodeagent={"Name": "nodeagent", "BootReason": 2})
        self.say(network=network())

    def say(self, **command):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()

    def ask(self, what):
        self.say(**{what: True})
        return self.hear(what)

    def hear(self, event):
        """The next of that name; others are passed over."""
        while True:
            try:
                said = self.events.get(timeout=SECONDS)
            except queue.Empty:
                raise AssertionError(f"no {event} comes") from None
            if said["event"] == event:
                return said

    def kill(self):
        self.process.kill()
        self.close()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            return self.process.wait(SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.reader.join(SECONDS)
            self.process.stdout.close()
            self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.stdout.closed:
            return
        code = self.close()
        if kind or code:
            print(pathlib.Path(self.log.name).read_text(errors="replace")[-6000:])
        assert kind or code == 0, f"the tool ends with {code}"


class Zed(Directories):
    """A device's directories."""

    def __init__(self, port, root_pem):
        super().__init__("zedagent-", f"127.0.0.1:{port}\n", root_pem)

    def topic(self, name, key=None):
        if key:
            return self.json(f"run/zedagent/{name}/{key}.json")
        return {p.stem: json.loads(p.read_text()) for p in (self.root / "run/zedagent" / name).glob("*.json")}

    def status(self):
        return self.topic("ZedAgentStatus", "zedagent") or {}

    def config_status(self):
        return self.status().get("ConfigGetStatus")

    def device_name(self):
        return (self.topic("EdgeNodeInfo", "global") or {}).get("DeviceName")

    def live(self, speed=20, environment=None):
        return Life(self, speed, environment)

    def wipe(self):
        """As a reboot does."""
        shutil.rmtree(self.root / "run", ignore_errors=True)


class Registered(Zed):
    """One of a real server's."""

    def __init__(self, site):
        super().__init__(site.server.device_port, site.root_pem)
        self.site = site
        self.uuid = self.register(site)

    def patch(self, **metadata):
        return self.site.server.ok("PATCH", self.site.path("devices", self.name()), {"metadata": metadata},
                                   {"Content-Type": "application/merge-patch+json"})

    def tell(self, config):
        """A whole configuration in place of what is composed; the device has asked for one before."""
        path = self.site.path("deviceconfigs", self.name())

        def is_written():
            status, o = self.site.server.request("GET", path)
            if status != 200:
                return False
            o["metadata"].setdefault("annotations", {})["eve.lfedge.org/composed"] = "false"
            o["spec"] = {"config": config}
            return self.site.server.request("PUT", path, o)[0] == 200

        wait_until(is_written, what="the configuration to be written")


class Strange(Zed):
    """One of a Controller's, onboarded before."""

    def __init__(self, controller):
        super().__init__(controller.port, controller.root_pem)
        self.uuid = controller.uuid = str(uuid.uuid4())
        path = self.root / "persist/status/zedclient/OnboardingStatus/global.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"DeviceUUID": self.uuid, "HardwareModel": "a.b"}))
        controller.configure({"device_name": "first"})

    def until(self, condition, what):
        wait_until(condition, seconds=SECONDS, what=what)


# ---- against a real server

def test_what_users_apply_is_published(s):
    site = shared_site(s)
    with Registered(site) as d, d.live():
        example = lambda path: path.read_text().replace("namespace: first-device", f"namespace: {site.ns}").replace("eve-device.lab1", d.name())
        wait_until(lambda: d.config_status() == SUCCESS, what="a first configuration")
        assert d.led() == ONBOARDED
        d.patch(labels={"site": "lab1", "kubernetes.io/arch": "amd64"}, annotations={"eve.lfedge.org/config.timer.config.interval": "30"})
        for path in sorted((TOP / "examples/first-device").glob("[2-5]*.yaml")):
            s.kubectl("apply", "-f", "-", input=example(path))
        wait_until(lambda: d.topic("AppInstanceConfig"), seconds=SECONDS, what="the application")
        (key, app), = d.topic("AppInstanceConfig").items()
        assert app["UUIDandVersion"]["UUID"] == key and app["DisplayName"] and app["Activate"] is True
        adapter, = app["AppNetAdapterList"]
        instance = d.topic("NetworkInstanceConfig")[adapter["Network"]]
        assert instance["Activate"] and instance["Subnet"]["IP"] and instance["DhcpRange"]["Start"]
        volume, = d.topic("VolumeConfig").values()
        assert app["VolumeRefConfigList"][0]["VolumeID"] == volume["VolumeID"] and volume["HasNoAppReferences"] is False
        content = d.topic("ContentTreeConfig")[volume["ContentID"]]
        assert set(content["DatastoreIDList"]) <= set(d.topic("DatastoreConfig"))
        ports = d.topic("DevicePortConfig", "zedagent")
        assert ports["Version"] == 1 and any(p.get("IsMgmt") for p in ports["Ports"]) and not ports.get("LastError")
        assert d.topic("PhysicalIOAdapterList", "zedagent")["Initialized"]
        assert d.topic("EdgeNodeInfo", "global")["DeviceID"] == d.uuid and d.device_name() == d.name()
        assert d.topic("EdgeNodeClusterConfig", "global") == {"Initialized": True, "Valid": False}
        assert {c["Type"] for c in d.topic("ControllerCert").values()} >= {eve.SIGNING, eve.ECDH}
        items = d.topic("ConfigItemValueMap", "global")["GlobalSettings"]
        assert items["timer.config.interval"]["IntValue"] == 30 and items["debug.enable.usb"]["BoolValue"] is False
        # What is taken away goes.
        s.kubectl("delete", "-f", "-", input=example(TOP / "examples/first-device/5-application.yaml"))
        wait_until(lambda: not d.topic("AppInstanceConfig"), seconds=SECONDS, what="the application to go")


def test_a_reboot_is_acted_on_once(s):
    with Registered(shared_site(s)) as d:
        reboot = lambda n: d.tell({"id": {"version": str(n)}, "reboot": {"counter": n, "desiredState": True}})
        with d.live():
            wait_until(lambda: d.config_status() == SUCCESS, what="a first configuration")
            reboot(4)
            wait_until(lambda: (d.json("persist/status/rebootConfig") or {}).get("Counter") == 4, seconds=SECONDS, what="the counter to be kept")
            assert d.status()["RebootCmd"] is False
            reboot(5)
            wait_until(lambda: d.status()["RebootCmd"], seconds=SECONDS, what="the reboot")
            assert d.status()["RequestedBootReason"] == 2
        for _ in range(2):
            d.wipe()
            with d.live() as life:
                wait_until(lambda: d.config_status() == SUCCESS, seconds=SECONDS, what="the configuration after the reboot")
                assert d.status()["RebootCmd"] is False
                assert life.ask("facts")["facts"]["reboot"] == 5


def test_items_out_of_bounds_are_reported(s):
    with Registered(shared_site(s)) as d, d.live() as life:
        wait_until(lambda: d.config_status() == SUCCESS, what="a first configuration")
        d.tell({"configItems": [{"key": "timer.metric.interval", "value": "1"}, {"key": "timer.config.interval", "value": "20"}, {"key": "no.such", "value": "x"}]})
        wait_until(lambda: d.topic("ConfigItemValueMap", "global")["GlobalSettings"]["timer.config.interval"]["IntValue"] == 20, seconds=SECONDS, what="the items")
        items = {i["name"]: i for i in life.ask("items")["list"]}
        assert items["timer.metric.interval"]["error"] and items["no.such"]["error"] and not items["timer.config.interval"]["error"]
        assert d.topic("ConfigItemValueMap", "global")["GlobalSettings"]["timer.metric.interval"]["IntValue"] == 60


def test_maintenance_keeps_everything_as_it_is(s):
    store = {"id": str(uuid.uuid4()), "dType": "DsHttp", "fqdn": "x.test"}
    with Registered(shared_site(s)) as d, d.live():
        wait_until(lambda: d.config_status() == SUCCESS, what="a first configuration")
        d.tell({"maintenanceMode": True, "datastores": [store], "deviceName": "kept away"})
        wait_until(lambda: d.status().get("MaintenanceMode"), seconds=SECONDS, what="maintenance")
        assert d.status()["MaintenanceModeReasons"] == [1] and d.status()["DeviceState"] == 3
        assert store["id"] not in d.topic("DatastoreConfig") and d.device_name() != "kept away"
        d.tell({"datastores": [store], "deviceName": "back"})
        wait_until(lambda: d.device_name() == "back", seconds=SECONDS, what="the end of maintenance")
        assert store["id"] in d.topic("DatastoreConfig") and d.status()["DeviceState"] == 1


def test_the_last_configuration_serves_while_the_server_is_gone():
    with Server() as s:
        with Registered(Site(s)) as d:
            with d.live():
                wait_until(lambda: d.config_status() == SUCCESS, seconds=SECONDS, what="a first configuration")
                d.tell({"deviceName": "last"})
                wait_until(lambda: d.device_name() == "last", seconds=SECONDS, what="the configuration")
            s.kill()
            d.wipe()
            with d.live():
                wait_until(lambda: d.config_status() == SAVED, seconds=SECONDS, what="the saved configuration")
                assert d.device_name() == "last" and d.led() != ONBOARDED
                s.start()
                wait_until(lambda: d.config_status() == SUCCESS, seconds=SECONDS, what="the server to be found again")
                assert d.led() == ONBOARDED


def test_new_certificates_of_the_controller_are_fetched():
    with Server() as s:
        with Registered(Site(s)) as d, d.live():
            wait_until(lambda: d.config_status() == SUCCESS, seconds=SECONDS, what="a first configuration")
            before = set(d.topic("ControllerCert"))
            s.stop()
            subprocess.run([binary(), "rotate-certs", "--data-dir", str(s.dir)], check=True, capture_output=True)
            s.start()
            d.patch(annotations={"eve.lfedge.org/config.timer.metric.interval": "90"})
            wait_until(lambda: d.topic("ConfigItemValueMap", "global")["GlobalSettings"]["timer.metric.interval"]["IntValue"] == 90, seconds=2 * SECONDS,
                       what="a configuration by the new certificate")
            assert set(d.topic("ControllerCert")) - before


# ---- power cuts

def check_files(device):
    """Everything that is kept is whole."""
    for path in (device.root / "persist").rglob("*"):
        if path.name in ("lastconfig", "lastconfig.bak"):
            response = wire.decode("config.ConfigResponse", eve.payload_of(path.read_bytes()))
            assert response["config"]["id"]["uuid"] == device.uuid
        elif path.name.startswith("controllercerts") and path.suffix in ("", ".bak"):
            assert wire.decode("certs.ZControllerCert", path.read_bytes())["certs"]
        elif path.suffix == ".json" or path.name in ("rebootConfig", "shutdownConfig"):
            json.loads(path.read_text())


def saved_name(device):
    data = device.read("persist/checkpoint/lastconfig")
    return wire.decode("config.ConfigResponse", eve.payload_of(data))["config"].get("device_name") if data else None


def check_saved(device, controller):
    """A life without a controller has what the last one has kept."""
    expected = saved_name(device)
    device.wipe()
    controller.stop()
    try:
        with device.live(speed=50):
            if expected:
                wait_until(lambda: device.config_status() == SAVED, seconds=SECONDS, what="the saved configuration")
                assert device.device_name() == expected
            else:
                wait_until(lambda: device.status().get("ConfigGetStatus") == FAIL, seconds=SECONDS, what="a start without anything")
    finally:
        controller.start()


def test_a_power_cut_leaves_no_half_of_a_file():
    """At every change of a file, one after the other."""
    with Controller() as c, Strange(c) as d:
        n_cuts = 0
        for n in range(1, POWER_CUTS + 1):
            c.configure({"device_name": f"cut-{n}", "reboot": {"counter": 3}, "patchEnvelopes": [
                {"uuid": "e", "artifacts": [{"inline": {"base64Data": "YQ==", "fileNameToUse": f"f{n % 3}"}}]}]})
            before = saved_name(d)
            d.wipe()
            with d.live(speed=50, environment={**os.environ, "POWER_CUT": str(n), "ASAN_OPTIONS": "detect_leaks=0"}) as life:
                wait_until(lambda: life.process.poll() is not None or (d.config_status() == SUCCESS and d.device_name() == f"cut-{n}"), seconds=SECONDS,
                           what="the end or the configuration")
                n_cuts += life.process.poll() is not None
                life.kill()
            check_files(d)
            assert saved_name(d) in (before, f"cut-{n}")
        assert n_cuts > 5, n_cuts
        check_saved(d, c)


def test_kills_at_random_lose_no_configuration():
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Controller() as c, Strange(c) as d:
        newest, floor = 0, None
        for _ in range(KILLS):
            begun = d.device_name()
            with d.live(speed=200) as life:
                for _ in range(chance.randrange(1, 4)):
                    newest += 1
                    c.configure({"device_name": f"n{newest:05}", "configItems": [{"key": "timer.config.interval", "value": "5"}]})
                    time.sleep(chance.random() * 0.15)
                published = d.device_name()
                life.kill()
            check_files(d)
            kept = saved_name(d)
            # Nothing older than what was kept before; and what is published is, unless that came in this life and was just about to be.
            assert floor is None or (kept and kept >= floor), (floor, kept)
            assert not published or (kept and kept >= published) or published != begun or floor == kept, (begun, published, kept, floor)
            floor = kept
        with d.live(speed=50):
            wait_until(lambda: saved_name(d) == f"n{newest:05}", seconds=SECONDS, what="the newest configuration")
        check_saved(d, c)


# ---- every row of the table of events

def test_304_and_the_same_hash():
    with Controller() as c, Strange(c) as d, d.live(speed=100):
        d.until(lambda: d.config_status() == SUCCESS and d.device_name() == "first", "a first configuration")
        assert c.asked[0] == ("config", "") or ("config", "") in c.asked
        n = c.count("config")
        d.until(lambda: c.count("config") > n + 1, "further polls")
        assert c.asked[-1][1] in (c.hash, None) and d.config_status() == SUCCESS and d.led() == ONBOARDED
        # 200 with what it has already: no parsing, and no success either.
        c.answer = lambda request: c.response()
        d.until(lambda: d.config_status() == FAIL, "the same again")
        assert d.device_name() == "first" and d.led() == ONBOARDED
        c.configure({"device_name": "second"})
        d.until(lambda: d.config_status() == SUCCESS and d.device_name() == "second", "another")


def test_answers_that_are_not_believed():
    with Controller() as c, Strange(c) as d, d.live(speed=100) as life:
        d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
        c.config = {"device_name": "bad"}
        c.hash = "bad"
        # No type, another type.
        for kind in ("", "text/html"):
            c.answer = lambda request: c.response(type=kind)
            d.until(lambda: d.config_status() == FAIL and d.led() == CONNECTED, f"the type {kind!r} to be refused")
            c.answer = lambda request: Reply(304)
            d.until(lambda: d.config_status() == SUCCESS and d.led() == ONBOARDED, "a good answer")
        # No envelope, half a signature, a stranger's.
        for answer in (lambda r: Reply(200, b"\xff"), lambda r: Reply(200, c.response().body[:-9]), lambda r: c.response(signer=eve.issue("signing"))):
            n = c.count("certs")
            c.answer = answer
            d.until(lambda: d.config_status() == FAIL and d.led() == BAD_ENVELOPE, "the envelope to be refused")
            c.answer = lambda request: Reply(304)
            d.until(lambda: d.config_status() == SUCCESS and d.led() == ONBOARDED, "a good answer")
        # Who signed it was looked up.
        life.hear("certs")
        d.until(lambda: c.count("certs") > n, "certificates to be fetched")
        # A configuration of somebody else.
        c.config = {"device_name": "other", "id": {"uuid": str(uuid.uuid4())}}
        c.answer = lambda request: c.response()
        d.until(lambda: d.config_status() == FAIL, "the other's to be refused")
        assert d.device_name() == "first"


def test_refusals_and_what_they_mean():
    with Controller() as c, Strange(c) as d, d.live(speed=100) as life:
        def refused(answer, led, status=FAIL):
            c.answer = answer
            d.until(lambda: d.config_status() == status and d.led() == led, f"LED {led}, status {status}")
            c.answer = lambda request: Reply(304)
            d.until(lambda: d.config_status() == SUCCESS and d.led() == ONBOARDED, "a good answer")

        d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
        refused(lambda r: Reply(503), CONNECTED)
        refused(lambda r: Reply(404), CONNECTED)
        refused(lambda r: Reply(400), CONNECTED)
        refused(lambda r: Reply(500), CONNECTING)
        refused(lambda r: Reply(403), ONBOARDED)
        life.hear("forbidden")
        # While an update is being tested the same failures are not held against it.
        life.say(nodeagent={"Name": "nodeagent", "BootReason": 3, "UpdateInprogress": True})
        refused(lambda r: Reply(503), CONNECTED, TEMPORARY)
        refused(lambda r: Reply(403), ONBOARDED, TEMPORARY)
        refused(lambda r: Reply(500), CONNECTING)
        # Nobody there at all.
        c.stop()
        d.until(lambda: d.config_status() == TEMPORARY and d.led() == CONNECTED, "a refused connection")
        c.start()
        d.until(lambda: d.config_status() == SUCCESS and d.led() == ONBOARDED, "the controller to be found again")
        assert d.device_name() == "first"


def test_a_device_that_is_not_known_asks_who_it_is():
    """At most every ten minutes of its own time, and not at once."""
    with Controller() as c, Strange(c) as d, d.live(speed=200):
        d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
        begin = time.monotonic()
        c.answer = lambda request: Reply(404)
        d.until(lambda: c.count("uuid"), "the client")
        assert time.monotonic() - begin > 1.5
        n, begin = c.count("uuid"), time.monotonic()
        # A client ticks five times, and a change of the network lets it ask once more.
        d.until(lambda: c.count("uuid") > n + 7, "the client again")
        assert time.monotonic() - begin > 2.4
        assert c.count("config") > 10


def test_an_operator_console_hands_on_what_the_controller_has_signed():
    with Controller() as c, Controller() as loc, Strange(c) as d:
        d.config("root-certificate.pem", c.root_pem + loc.root_pem)  # its TLS, too
        where = {"loc_config": {"loc_url": f"https://127.0.0.1:{loc.port}"}}
        c.configure({"device_name": "first", "config_timestamp": {"seconds": 1000}, **where})
        with d.live(speed=100):
            d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
            assert d.topic("LOCConfig", "global")["LocURL"] == where["loc_config"]["loc_url"] and not loc.count("compound-config")
            c.configure({"device_name": "handed on", "config_timestamp": {"seconds": 2000}, **where})
            loc.compound = c.response().body
            c.answer = lambda request: Reply(500)
            d.until(lambda: d.device_name() == "handed on" and d.config_status() == SUCCESS, "the console's")
            # Not what anybody else has signed, and nothing older.
            c.configure({"device_name": "forged", "config_timestamp": {"seconds": 3000}, **where})
            c.answer = lambda request: Reply(500)
            loc.compound = c.response(signer=eve.issue("signing")).body
            n = loc.count("compound-config")
            d.until(lambda: loc.count("compound-config") > n + 1 and d.config_status() == FAIL, "the forged one to be refused")
            c.configure({"device_name": "old", "config_timestamp": {"seconds": 500}, **where})
            c.answer = lambda request: Reply(500)
            loc.compound = c.response().body
            n = loc.count("compound-config")
            d.until(lambda: loc.count("compound-config") > n + 1, "the old one to be passed over")
            assert d.device_name() == "handed on"


def test_an_operator_console_commands():
    app = "0a000000-0000-4000-8000-000000000001"
    with Controller() as c, Controller() as loc, Strange(c) as d:
        d.config("root-certificate.pem", c.root_pem + loc.root_pem)
        config = {"config_timestamp": {"seconds": 1000}, "loc_config": {"loc_url": f"https://127.0.0.1:{loc.port}"},
                  "apps": [{"uuidandversion": {"uuid": app, "version": "1"}, "displayname": "one"}]}
        counter = lambda: (d.topic("AppInstanceConfig", app) or {}).get("LocalRestartCmd", {}).get("Counter")
        c.configure(config)
        with d.live(speed=100):
            d.until(lambda: counter() == 0, "an application")
            # Who cannot show what the controller has signed commands nothing.
            loc.compound = c.response(signer=eve.issue("signing")).body
            loc.commands = {"timestamp": 5, "app_cmd_list": {"app_commands": [{"id": app, "command": 1, "timestamp": 7}]}}
            c.answer = lambda request: Reply(500)
            d.until(lambda: loc.count("compound-config") > 1, "the console to be asked")
            assert counter() == 0 and set(loc.acknowledged) == {0}
            loc.compound = c.response().body
            d.until(lambda: counter() == 1 and 5 in loc.acknowledged, "the restart, acknowledged")
            n = loc.count("compound-config")
            d.until(lambda: loc.count("compound-config") > n + 2, "the same again")
            assert counter() == 1
            # What is older than what is in force is passed over with its commands.
            c.configure({**config, "device_name": "old", "config_timestamp": {"seconds": 500}})
            c.answer = lambda request: Reply(500)
            loc.compound = c.response().body
            loc.commands = {"timestamp": 6, "dev_cmd": {"command": 1, "timestamp": 9}}
            n = loc.count("compound-config")
            d.until(lambda: loc.count("compound-config") > n + 1, "the old one to be passed over")
            assert not d.topic("ZedAgentStatus", "zedagent")["ShutdownCmd"] and 6 not in loc.acknowledged
            c.configure(config)
            c.answer = lambda request: Reply(500)
            loc.commands = {"timestamp": 6, "radio_config": {"radio_silence": True}, "dev_cmd": {"command": 1, "timestamp": 9}}
            loc.compound = c.response().body
            d.until(lambda: d.topic("ZedAgentStatus", "zedagent")["ShutdownCmd"], "the shutdown")
            assert d.topic("ZedAgentStatus", "zedagent")["RadioSilence"]["Imposed"]


def test_an_operator_console_hands_on_certificates_that_are_not_older():
    with Controller() as c, Controller() as loc, Strange(c) as d:
        d.config("root-certificate.pem", c.root_pem + loc.root_pem)
        c.configure({"loc_config": {"loc_url": f"https://127.0.0.1:{loc.port}"}})
        known = lambda: {p.read_text() for p in (d.root / "run/zedagent/ControllerCert").glob("*.json")}
        with d.live(speed=100):
            d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
            first = known()
            # The controller has another certificate, and is gone: the console has it.
            c.signing = eve.issue("signing", issuer=c.authority)
            c.configure({"device_name": "signed anew", "loc_config": {"loc_url": f"https://127.0.0.1:{loc.port}"}})
            loc.signing, loc.exchange, loc.compound = c.signing, c.exchange, c.response().body
            c.reply = lambda path, body: Reply(500)
            d.until(lambda: d.device_name() == "signed anew", "what is signed by the new certificate")
            assert known() != first
            # One that is older than what is known leads nowhere back.
            c.signing = loc.signing = eve.issue("signing", issuer=c.authority, minutes_ago=60)
            newest, n, loc.compound = known(), loc.count("certs"), c.response().body
            d.until(lambda: loc.count("certs") > n, "the console to be asked again")
            n = loc.count("compound-config")
            d.until(lambda: loc.count("compound-config") > n + 1, "it to go on")
            assert known() == newest
            del c.reply


def test_the_integrity_token_goes_with_the_request():
    tokens = []
    with Controller() as c, Strange(c) as d:
        def answer(request):
            tokens.append(request.token)
            return Reply(304) if request.hash == c.hash else c.response()

        with d.live(speed=100):
            c.answer = answer
            d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
            (d.root / "run/eve.integrity_token").write_bytes(b"token-1")
            d.until(lambda: tokens and tokens[-1] == b"token-1", "the token")
        assert b"" in tokens


def test_polls_are_spread_and_follow_the_interval():
    times = []
    with Controller() as c, Strange(c) as d:
        c.configure({"configItems": [{"key": "timer.config.interval", "value": "100"}]})
        known = c.answer
        c.answer = lambda request: (times.append(time.monotonic()), known(request))[1]
        with d.live(speed=100):
            d.until(lambda: len(times) > 12, "polls")
        gaps = [b - a for a, b in zip(times[3:], times[4:])]
        # 0.3 to 1.0 of a second here; some room for a busy machine.
        assert all(0.25 < g < 1.9 for g in gaps) and max(gaps) - min(gaps) > 0.02, gaps


def test_recovery_of_the_network_hurries():
    with Controller() as c, Strange(c) as d:
        with d.live(speed=1) as life:
            d.until(lambda: d.config_status() == SUCCESS, "a first configuration")
            n = c.count("config")
            life.say(hurry=True)
            d.until(lambda: c.count("config") > n, "a hurried poll")
            c.stop()
            life.say(hurry=True)
            d.until(lambda: d.config_status() == FAIL, "a failure")
            life.say(network={**network(), "State": 1})
            c.start()
            life.say(network=network())
            # The next poll by itself is 18 seconds away at least.
            wait_until(lambda: d.config_status() == SUCCESS, seconds=12, what="a poll when the network is back")
