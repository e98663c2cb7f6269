# SPDX-License-Identifier: Apache-2.0
"""A real agent in a network namespace of its own, with all its services, and a real server that it reaches.

    with Place() as place:
        place.agent.start()
        place.device()                        # its Device, once it has registered
"""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import types

from fleet import Site
from seth import TOP, Server, binary, unique, wait_until

SECONDS = 120
AGENT = pathlib.Path(binary()).resolve().parents[1] / "agent/program/seth-agent"


def load_demo():
    """tools/demo as a module: its network, its registry, its image."""
    loader = importlib.machinery.SourceFileLoader("demo", str(TOP / "tools/demo"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
    loader.exec_module(module)
    return module


demo = load_demo()


class Agent:
    """The process and its directories."""

    def __init__(self, root, network, words=()):
        self.root, self.network, self.words, self.environment, self.process = root, network, words, {}, None

    def start(self):
        assert AGENT.exists(), f"{AGENT} is not built"
        command = [*self.network.inside(), str(AGENT), "run", *self.directories(), *self.words]
        with open(self.root / "agent.log", "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ, **self.environment})

    def directories(self):
        return [w for d in ("config", "persist", "run") for w in (f"--{d}-dir", str(self.root / d))]

    def command(self, *words):
        return subprocess.run([*self.network.inside(), str(AGENT), words[0], *self.directories(), *words[1:]], capture_output=True,
                              text=True, timeout=SECONDS)

    def log(self):
        return (self.root / "agent.log").read_text(errors="replace")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """An agent that is asked to ends well."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(SECONDS) == 0, self.log()[-4000:]

    def topic(self, agent, topic, key="global", persistent=False):
        """A published value, None while there is none."""
        path = self.root / ("persist/status" if persistent else "run") / agent / topic / f"{key}.json"
        return json.loads(path.read_text()) if path.exists() else None


class Place:
    """A server, a namespace of Kubernetes with an onboarding certificate, and an agent that may register with it."""

    def __init__(self, *words, options=None):
        self.words, self.options, self.stack = words, options or {}, contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.network = stack.enter_context(demo.Network(os.getpid() * 10 + int(unique()[2:4], 16) % 10))
            self.server = stack.enter_context(Server("--bind-address", "0.0.0.0", "--tls-san", self.network.ours))
            self.site = Site(self.server)
            self.server.ok("POST", f"/api/v1/namespaces/{self.site.ns}/configmaps", {"metadata": {"name": "eve-options"}, "data": {
                "config.timer.config.interval": "5", "config.timer.metric.interval": "5", "config.newlog.allow.fastupload": "true", **self.options}})
            root = pathlib.Path(tempfile.mkdtemp(prefix="agent-"))
            stack.callback(shutil.rmtree, root, ignore_errors=True)
            self.agent = Agent(root, self.network, self.words)
            self.install(root / "config")
            stack.callback(self.agent.stop)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, kind, *_):
        log = self.agent.log() if self.agent.process else ""
        self.stack.close()
        log = log or ""
        assert "Sanitizer" not in log, log[-6000:]

    def install(self, config):
        """As an installer leaves it."""
        config.mkdir()
        (config / "server").write_text(f"{self.network.ours}:{self.server.device_port}\n")
        (config / "root-certificate.pem").write_bytes(self.site.root_pem)
        (config / "onboard.cert.pem").write_bytes(self.site.onboarding.pem)
        (config / "onboard.key.pem").write_bytes(self.site.onboarding.key_pem())

    def offer(self, image, script):
        """An Image that runs the script, of a registry here; and a network for its applications, `net`."""
        port, certificate = demo.registry(self.network.ours, self.agent.root, script)
        self.server.ok("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "registry"}, "provisioner": "eve",
            "parameters": {"type": "container", "URL": f"https://{self.network.ours}:{port}", "certificate": certificate}})
        self.post("NetworkConfig", "net", {"ip": "dhcp"})
        self.post("DeviceNetwork", "net", {"networkConfig": "net"})
        self.post("Image", image, {"ref": "demo/hello:1", "storageClass": "registry"})

    def device(self):
        """The one Device of the place, once it is there."""
        items = wait_until(lambda: self.server.ok("GET", self.site.path("devices"))["items"], SECONDS, "the device to register")
        return items[0]

    def uuid(self):
        """Once those who read what it sends know it, too: they learn of it by an event."""
        uuid = wait_until(lambda: self.device().get("status", {}).get("uuid"), SECONDS, "its UUID")
        wait_until(lambda: self.server.request("GET", f"/edgenode/{uuid}/lastseen", raw=True)[0] == 200, SECONDS, "it to be known")
        return uuid

    def read(self, stream, **query):
        return self.site.read(types.SimpleNamespace(uuid=self.uuid()), stream, **query)

    def post(self, kind, name, spec):
        """An object of ours."""
        return self.server.ok("POST", self.site.path(f"{kind.lower()}s"), {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind,
                                                                          "metadata": {"name": name}, "spec": spec})
