# SPDX-License-Identifier: Apache-2.0
"""Onboarding by the agent's own client against a real server: a node in a process of its own, whose network the test describes."""
import contextlib
import json
import os
import pathlib
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import serialization

import eve
import wire
from fleet import Site
from seth import unique, wait_until
from tool import TOOLS, Directories, network

SECONDS = 60
FAIL = 1
CONNECTED, BAD_CERT, NOT_FOUND, CONFLICT = 3, 14, 18, 17


class Device(Directories):
    """A device's directories, as an installer leaves them."""

    def __init__(self, site, onboarding=True, server=None, root_pem=None, serial=None):
        super().__init__("client-", server or f"127.0.0.1:{site.server.device_port}\n", root_pem or site.root_pem)
        self.serial = serial or unique("serial")
        if onboarding:
            self.may_register(site)

    def status(self):
        return self.json("persist/status/zedclient/OnboardingStatus/global.json")

    def run(self, *words, network=None, environment=None):
        return Run(self, words, network, environment)

    def onboard(self):
        """One whole life; the UUID."""
        with self.run("register", "uuid", network=network()) as r:
            assert r.end() == 0
        return self.read("persist/status/uuid").decode().strip()


class Run:
    """A life of the tool."""

    def __init__(self, device, words, network, environment):
        command = [TOOLS / "node_tool", *device.directories(), device.serial, *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        self.events = queue.Queue()
        self.reader = threading.Thread(target=lambda: [self.events.put(json.loads(line)) for line in self.process.stdout])
        self.reader.start()
        if network:
            self.network(network)

    def network(self, status):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"network": status}) + "\n")
            self.process.stdin.flush()

    def end(self):
        """Its exit code, when it has come to its end by itself."""
        code = self.process.wait(SECONDS)
        self.reader.join(SECONDS)
        return code

    def said(self):
        self.reader.join(SECONDS)
        return list(self.events.queue)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait(SECONDS)
        self.reader.join(SECONDS)
        self.process.stdout.close()


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- the way it should go

def test_a_device_registers_and_learns_who_it_is(server):
    site = Site(server)
    with Device(site) as d:
        with d.run("register", "uuid", network=network()) as r:
            assert r.end() == 0
            said = r.said()
        o = server.ok("GET", site.path("devices", d.name()))
        mine = d.read("persist/status/uuid").decode()
        assert mine == o["status"]["uuid"] + "\n"
        assert said == [{"event": "hostname", "name": mine.strip()}, {"event": "done", "code": 0}]
        assert d.status() == {"DeviceUUID": mine.strip(), "HardwareModel": "Tool.One"}
        assert d.read("persist/status/hardwaremodel") == b"Tool.One"
        assert d.led() == CONNECTED
        certs = wire.decode("certs.ZControllerCert", d.read("persist/checkpoint/controllercerts"))
        assert {c["type"] for c in certs["certs"]} >= {1, 3}
        counted = d.json("run/zedclient/MetricsMap/global.json")["lo"]
        assert counted["FailureCount"] == 0 and {u.split("/")[-1] for u in counted["URLCounters"]} == {"certs", "register", "uuid"}


def test_one_who_is_registered_needs_no_onboarding_identity(server):
    site = Site(server)
    with Device(site) as d:
        mine = d.onboard()
        for name in ("onboard.cert.pem", "onboard.key.pem"):
            (d.root / "config" / name).unlink()
        with d.run("register", "uuid", network=network()) as r:
            assert r.end() == 0
        assert d.status()["DeviceUUID"] == mine
        assert d.read("persist/checkpoint/controllercerts.bak") is None, "the same certificates were saved again"


def test_a_serial_number_is_refused_until_it_is_allowed(server):
    site = Site(server, serials=["somebody-else"])
    with Device(site, serial="mine-1") as d, d.run("register", "uuid", network=network()) as r:
        wait_until(lambda: d.led() == NOT_FOUND, what="the LED to say that nobody knows the device")
        assert d.status() is None and d.read("persist/status/uuid") is None
        server.ok("PATCH", site.path("onboardcertificates", "onboard"), {"spec": {"serials": ["somebody-else", "mine-1"]}},
                  {"Content-Type": "application/merge-patch+json"})
        # A change of the network is worth an attempt at once.
        for n in range(100):
            r.network({**network(), "CurrentIndex": n})
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert r.process.wait(0.2) == 0
                break
        assert d.status()["DeviceUUID"] == server.ok("GET", site.path("devices", d.name()))["status"]["uuid"]
        assert d.led() == CONNECTED


# ---- a controller that is not where it was

def test_the_file_server_is_read_again(server):
    site = Site(server)
    with Device(site, server=f"127.0.0.1:{closed_port()}") as d, d.run("register", "uuid", network=network()) as r:
        wait_until(lambda: d.led() == BAD_CERT, what="the first attempt to fail")
        d.config("server", f"127.0.0.1:{server.device_port}\n")
        assert r.end() == 0
        assert d.status()["DeviceUUID"]


def test_a_wrong_root_certificate_ends_it(server):
    site = Site(server)
    with Device(site, root_pem=eve.issue("another root", is_ca=True).pem) as d, d.run("register", "uuid", "max=2", network=network()) as r:
        assert r.end() == 1
        assert r.said() == [{"event": "done", "code": 1}]
        assert d.led() == BAD_CERT
        assert d.read("persist/checkpoint/controllercerts") is None and d.status() is None


def test_trust_in_the_machines_anchors_is_not_trust_in_the_controllers_signature(server):
    """TLS is believed by the machine's own anchors, but the chain of the signing certificate does not lead to root-certificate.pem."""
    site = Site(server)
    with Device(site, root_pem=eve.issue("another root", is_ca=True).pem) as d, tempfile.TemporaryDirectory() as anchors:
        number = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", str(server.dir / "ca.pem")], capture_output=True, text=True, check=True)
        pathlib.Path(anchors, number.stdout.strip() + ".0").write_bytes(site.root_pem)
        with d.run("register", "uuid", "max=1", network=network(), environment={"SSL_CERT_DIR": anchors}) as r:
            assert r.end() == 1
        counted = d.json("run/zedclient/MetricsMap/global.json")["lo"]
        assert counted["SuccessCount"] > 0 and counted["FailureCount"] == 0, "certs were to be delivered"
        assert d.led() == BAD_CERT
        assert d.read("persist/checkpoint/controllercerts") is None and d.status() is None


# ---- without a controller

def test_an_onboarded_device_starts_without_its_controller(server):
    site = Site(server)
    with Device(site) as d:
        mine = d.onboard()
        for status in (None, network(FAIL)):
            shutil.rmtree(d.root / "run")  # as a new start of the machine does
            with d.run("uuid", network=status) as r:
                assert r.end() == 0
                assert r.said() == [{"event": "hostname", "name": mine}, {"event": "done", "code": 0}]
            assert d.status()["DeviceUUID"] == mine


def test_a_device_that_never_was_onboarded_waits(server):
    site = Site(server)
    with Device(site, server=f"127.0.0.1:{closed_port()}") as d, d.run("uuid", "max=2", network=network(FAIL)) as r:
        assert r.end() == 1
        assert d.status() is None and d.read("persist/status/uuid") is None


# ---- power cuts

def check_whole(d):
    """Whatever is there is whole; leftovers of an unfinished write have names that nobody reads."""
    for name in (d.root / "config").glob("device.cert.pem"):
        x509.load_pem_x509_certificate(name.read_bytes())
        serialization.load_pem_private_key(d.read("config/device.key.pem"), None)
    for name in ("persist/checkpoint/controllercerts", "persist/checkpoint/controllercerts.bak"):
        if d.read(name) is not None:
            assert {c["type"] for c in wire.decode("certs.ZControllerCert", d.read(name))["certs"]} >= {1, 3}
    if d.read("persist/status/uuid") is not None:
        uuid.UUID(d.read("persist/status/uuid").decode().removesuffix("\n"))
    assert d.read("persist/status/hardwaremodel") in (None, b"Tool.One")
    if d.status() is not None:
        assert d.status()["DeviceUUID"] == d.read("persist/status/uuid").decode().strip()


def test_a_power_cut_at_any_change_of_a_file_leaves_no_half(server):
    site = Site(server)
    with Device(site) as d:
        n = 0
        while True:
            n += 1
            with d.run("register", "uuid", network=network(), environment={"POWER_CUT": str(n)}) as r:
                code = r.end()
            check_whole(d)
            if code == 0:
                break
            assert code == -9, code
            # The next life is a first one again, so that every change has its turn.
            for part in ("persist", "run"):
                shutil.rmtree(d.root / part, ignore_errors=True)
            (d.root / "config/device.cert.pem").unlink(missing_ok=True)
            d.serial = unique("serial")
        assert n > 15, f"only {n - 1} places were tried"


def test_after_a_power_cut_the_next_start_succeeds(server):
    site = Site(server)
    with Device(site) as d:
        n = 1
        while True:
            with d.run("register", "uuid", network=network(), environment={"POWER_CUT": str(n)}) as r:
                code = r.end()
            check_whole(d)
            if code == 0:
                break
            n += 2
            if n > 200:
                raise AssertionError("it never came to its end")
        before = d.read("config/device.cert.pem")
        mine = d.status()["DeviceUUID"]
        assert d.onboard() == mine and d.read("config/device.cert.pem") == before
