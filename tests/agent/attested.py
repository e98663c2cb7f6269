# SPDX-License-Identifier: Apache-2.0
"""A device that is onboarded, and lives of it in attest_tool: zedagent, attest and nodeagent in one process in which time may run fast.

    with Attested(site) as d:
        with d.live() as life:
            wait_until(lambda: d.state() == COMPLETE, what="attestation")"""
import base64
import contextlib
import json
import os
import pathlib
import queue
import shutil
import subprocess
import threading

from tool import TOOLS, Directories, network

COMPLETE = 7
SPEED = 20
SECONDS = 60


class Attested(Directories):
    """Its directories, as an installer leaves them and the client after it."""

    def __init__(self, site):
        super().__init__("attest-", f"127.0.0.1:{site.server.device_port}\n", site.root_pem)
        self.site = site
        self.uuid = self.register(site)

    # -- topics

    def topic(self, agent, name, key=None, directory="run"):
        """The value of a key, or of all."""
        if key:
            return self.json(f"{directory}/{agent}/{name}/{key}.json")
        return {p.stem: json.loads(p.read_text()) for p in (self.root / directory / agent / name).glob("*.json")}

    def status(self):
        return self.topic("zedagent", "ZedAgentStatus", "zedagent") or {}

    def state(self):
        return self.status().get("AttestState")

    def node(self):
        return self.topic("nodeagent", "NodeAgentStatus", "nodeagent") or {}

    def certs(self):
        return {c["CertType"]: c for c in self.topic("tpmmgr", "EdgeNodeCert", directory="persist/status").values()}

    def token(self):
        return self.read("run/eve.integrity_token")

    # -- what users see

    def object(self):
        return self.site.server.ok("GET", self.site.path("devices", self.name()))

    def attested(self):
        return {c["type"]: c["status"] for c in self.object()["status"].get("conditions", [])}.get("Attested")

    def annotate(self, **annotations):
        body = {"metadata": {"annotations": {f"eve.lfedge.org/{k}": v for k, v in annotations.items()}}}
        return self.site.server.ok("PATCH", self.site.path("devices", self.name()), body, {"Content-Type": "application/merge-patch+json"})

    def kept(self):
        """The device's state as the server keeps it: {key: bytes}."""
        secret = self.site.server.ok("GET", f"/api/v1/namespaces/{self.site.ns}/secrets/{self.name()}.eve-device")
        return {k: base64.b64decode(v) for k, v in secret.get("data", {}).items()}

    # -- lives

    def live(self, speed=SPEED, tcti=None):
        """From a boot on, which forgets what is in memory."""
        shutil.rmtree(self.root / "run", ignore_errors=True)
        return Life(self, speed, tcti)


class Life:
    def __init__(self, device, speed, tcti):
        command = [TOOLS / "attest_tool", *device.directories(), str(speed), *([tcti] if tcti else [])]
        self.log = open(device.root / "log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, "TSS2_LOG": "all+none"})
        self.events = queue.Queue()
        self.reader = threading.Thread(target=lambda: [self.events.put(json.loads(line)) for line in self.process.stdout])
        self.reader.start()
        self.say(network=network())

    def say(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def hear(self, event=None):
        try:
            said = self.events.get(timeout=SECONDS)
        except queue.Empty:
            raise AssertionError("the tool says nothing") from None
        assert event is None or said["event"] == event, said
        return said

    def ask(self, event, **command):
        self.say(**command)
        return self.hear(event)

    def end(self):
        """When it comes to its end by itself."""
        assert self.process.wait(SECONDS) == 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            code = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = "late"
            self.process.kill()
            self.process.wait(SECONDS)
        self.reader.join(SECONDS)
        self.process.stdout.close()
        self.log.close()
        if kind or code:
            print((pathlib.Path(self.log.name)).read_text(errors="replace")[-6000:])
        assert kind or code == 0, f"the tool ends with {code}"
