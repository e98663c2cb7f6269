# SPDX-License-Identifier: Apache-2.0
"""What the tests of the tools written in C share: the directories of a device, and how a tool is asked.

    class Device(Directories): ...
    with Device("mine-", "127.0.0.1:443", root_pem) as d:
        d.register(site)                     # by the agent's own client
        d.json("run/global/LedBlinkCounter/ledconfig.json")"""
import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import serialization

import eve
from seth import binary, unique

TOOLS = pathlib.Path(binary()).resolve().parents[1] / "tests/agent"
SECONDS = 60
SUCCESS = 3


def network(state=SUCCESS):
    """A DeviceNetworkStatus with which everything of this machine is reached."""
    return {"Version": 1, "State": state, "Ports": [{"IfName": "lo", "IsMgmt": True, "IsL3Port": True, "AddrInfoList": [{"Addr": "127.0.0.1"}]}]}


class Directories:
    """As an installer leaves them."""

    def __init__(self, prefix, server, root_pem):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        (self.root / "config").mkdir()
        self.config("server", server)
        self.config("root-certificate.pem", root_pem)

    def directories(self):
        return [str(self.root / d) for d in ("config", "persist", "run")]

    def config(self, name, content):
        (self.root / "config" / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            return (self.root / name).read_bytes()

    def json(self, name):
        text = self.read(name)
        return json.loads(text) if text else None

    def led(self):
        return (self.json("run/global/LedBlinkCounter/ledconfig.json") or {}).get("BlinkCounter")

    def certificate(self):
        return x509.load_pem_x509_certificate(self.read("config/device.cert.pem"))

    def name(self):
        """Of the Device that its registration makes."""
        return "eve-" + eve.sha256(self.certificate().public_bytes(serialization.Encoding.DER)).hex()[:8]

    def may_register(self, site):
        self.config("onboard.cert.pem", site.onboarding.pem)
        self.config("onboard.key.pem", site.onboarding.key_pem())

    def register(self, site):
        """One whole life of the client; the UUID. Without it there is no use for the directories."""
        self.may_register(site)
        try:
            with subprocess.Popen([TOOLS / "node_tool", *self.directories(), unique("serial"), "register", "uuid"], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, text=True) as process:
                process.stdin.write(json.dumps({"network": network()}) + "\n")
                process.stdin.flush()
                assert process.wait(SECONDS) == 0
            return self.read("persist/status/uuid").decode().strip()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


class Asked:
    """Has a process that answers every line with one."""

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the tool ended with {self.process.wait(SECONDS)}"
        return json.loads(line)

    def ok(self, **command):
        answer = self.ask(**command)
        assert answer["error"] == 0, (command, answer)
        return answer
