# SPDX-License-Identifier: Apache-2.0
"""seth-agent as a program: its commands, and a whole device under one roof."""
import json
import os
import re
import socket
import subprocess
import tempfile

from agents import AGENT, SECONDS, Place
from seth import KUBECTLS, TOP, binary, wait_until


def agent(*words, check=True):
    done = subprocess.run([str(AGENT), *words], capture_output=True, text=True, timeout=SECONDS)
    assert not check or done.returncode == 0, done
    return done


def test_help_completion_and_manual_know_everything():
    commands = agent("completion").stdout.split()
    assert {"run", "client", "diag", "version", "man"} <= set(commands)
    manual = agent("man").stdout
    for command in commands:
        for option in agent("completion", command).stdout.split()[:-1]:
            assert option in agent(command, "--help").stdout and option.replace("-", "\\-") in manual, (command, option)


def test_what_is_wrong_is_said():
    with tempfile.TemporaryDirectory() as d:
        where = ("--config-dir", d, "--persist-dir", f"{d}/p", "--run-dir", f"{d}/r")
        for words, expected in (((*where,), "server"), ((*where, "--services", "nim,nobody"), "there is no 'nobody'"),
                                ((*where, "--runtime", "magic"), "neither process nor sim"), ((*where, "--log-level", "loud"), "none of error")):
            done = agent("run", *words, check=False)
            assert done.returncode == 1 and expected in done.stderr and done.stderr.startswith("seth-agent: "), done
        done = agent("client", *where, "dance", check=False)
        assert done.returncode == 1 and "neither selfRegister nor getUuid" in done.stderr, done


def test_systemd_hears_of_it():
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(f"{d}/notify")
        notified.settimeout(SECONDS)
        with Place("--runtime", "sim", "--app-networks", "none") as place:
            place.agent.environment = {"NOTIFY_SOCKET": f"{d}/notify", "WATCHDOG_USEC": "200000"}
            place.agent.start()
            assert notified.recv(100) == b"READY=1"
            assert notified.recv(100) == b"WATCHDOG=1" == notified.recv(100)
            place.agent.stop()
            while (last := notified.recv(100)) == b"WATCHDOG=1":
                pass
            assert last == b"STOPPING=1"


def test_a_reboot_is_one_of_the_agent_where_the_machine_must_not():
    with Place("--runtime", "sim", "--app-networks", "none") as place:
        place.agent.start()
        name = place.device()["metadata"]["name"]
        wait_until(lambda: (place.agent.topic("zedagent", "ZedAgentStatus", "zedagent") or {}).get("ConfigGetStatus") == 1, SECONDS, "a configuration")
        # A device takes note of the first counter that it sees.
        noted = place.agent.root / "persist/status/rebootConfig"
        wait_until(lambda: noted.exists() and "reboot" in place.server.ok("GET", place.site.path("deviceconfigs", name))["spec"]["config"], SECONDS,
                   "its counters")
        first = place.agent.topic("nodeagent", "NodeAgentStatus", "nodeagent")
        place.server.ok("PATCH", place.site.path("devices", name), {"metadata": {"annotations": {"eve.lfedge.org/reboot": "now"}}},
                        {"Content-Type": "application/merge-patch+json"})
        again = wait_until(lambda: (s := place.agent.topic("nodeagent", "NodeAgentStatus", "nodeagent")) and
                           s["RestartCounter"] > first["RestartCounter"] and s, SECONDS, "the agent to begin again")
        assert again["BootReason"] == 2, again
        assert place.agent.process.poll() is None
        wait_until(lambda: (place.agent.topic("zedagent", "ZedAgentStatus", "zedagent") or {}).get("ConfigGetStatus") == 1, SECONDS, "its configuration again")


def test_diag_beside_a_running_agent():
    with Place("--runtime", "sim", "--app-networks", "none") as place:
        place.agent.start()
        place.uuid()
        wait_until(lambda: (place.agent.topic("nim", "DeviceNetworkStatus") or {}).get("State") == 3, SECONDS, "the network to be verified")
        done = place.agent.command("diag", "--json")
        assert done.returncode == 0, done
        assert json.loads(done.stdout), done.stdout
        text = place.agent.command("diag")
        assert text.returncode == 0 and "eth0" in text.stdout, text


def commands():
    text = (TOP / "docs/AGENT.md").read_text()
    part = re.search(r"<!-- commands -->(.*?)<!-- /commands -->", text, re.S).group(1)
    return "\n".join(re.findall(r"```sh\n(.*?)```", part, re.S))


def test_the_commands_of_the_page():
    with Place() as place, tempfile.TemporaryDirectory() as d:
        script = "\n".join([f"seth() {{ {binary()} \"$@\"; }}", f"seth-agent() {{ {' '.join(place.network.inside())} {AGENT} \"$@\"; }}", "set -m",
                            commands(), "kill %1; wait %1 || true"])
        environment = {**os.environ, "DATA_DIR": str(place.server.dir), "ADDRESS": place.network.ours, "DEVICE_PORT": str(place.server.device_port),
                       "KUBECONFIG": place.server.kubeconfig, "HOME": d, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=d, env=environment, capture_output=True, text=True, timeout=2 * SECONDS)
        assert done.returncode == 0 and "eth0" in done.stdout, done
        assert place.server.ok("GET", "/apis/eve.lfedge.org/v1beta1/namespaces/default/devices")["items"]
