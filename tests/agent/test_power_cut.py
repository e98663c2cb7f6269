# SPDX-License-Identifier: Apache-2.0
"""The agent dies at any moment, fifty times, while its configuration changes and logs flow: nothing that it had taken is lost, nothing is stored
twice, its last configuration is there, no file is half written."""
import gzip
import json
import random
import re
import socket
import threading
import time

from agents import SECONDS, Place
from seth import wait_until

KILLS = 50
PATIENCE = 600  # a file is uploaded every three seconds, and each life leaves one
LINES_PER_SECOND = 100
LINE = re.compile(r"word (\d+) of many")


class Talker(threading.Thread):
    """Says numbered lines to the agent's log socket, whoever listens there."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.ended, self.n = path, threading.Event(), 0

    def run(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            while not self.ended.wait(1 / LINES_PER_SECOND):
                try:
                    s.sendto(f"<14>talker[7]: word {self.n + 1} of many".encode(), str(self.path))
                    self.n += 1
                except OSError:
                    pass  # nobody listens at the moment


class Editor(threading.Thread):
    """Changes what the device is told, again and again."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.ended, self.value = place, threading.Event(), 0

    def run(self):
        path = self.place.site.path("devices", self.place.device()["metadata"]["name"])
        while not self.ended.wait(0.5):
            self.value = 300 + self.value % 100 + 1
            self.place.server.ok("PATCH", path, {"metadata": {"annotations": {"eve.lfedge.org/config.timer.deviceinfo.interval": str(self.value)}}},
                                 {"Content-Type": "application/merge-patch+json"})


def entries(persist):
    """What the agent has taken and not yet sent, from its files; each of them must be whole."""
    found = []
    for path in sorted((persist / "newlog").rglob("*")):
        if not path.is_file() or path.name == "msgids.json" or "tmp" in path.name:
            continue
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        for line in text.decode().splitlines():
            if "word" in line:
                found.append(json.loads(line)["content"])
    return found


def words(contents):
    return [int(m.group(1)) for c in contents if (m := LINE.search(c))]


def check_files(persist):
    """Whatever moment it was: files are whole."""
    for path in persist.rglob("*.json"):
        assert isinstance(json.loads(path.read_text()), dict), path
    for name in ("lastconfig", "controllercerts", "lastconfig.bak"):
        path = persist / "checkpoint" / name
        assert not path.exists() or path.stat().st_size > 50, path
    for name in ("uuid", "rebootConfig", "shutdownConfig"):
        path = persist / "status" / name
        assert not path.exists() or path.read_text().strip(), path


def interval(agent):
    items = (agent.topic("zedagent", "ConfigItemValueMap") or {}).get("GlobalSettings") or {}
    return items.get("timer.deviceinfo.interval", {}).get("IntValue")


def test_fifty_power_cuts():
    chance = random.Random(6)
    with Place("--runtime", "sim", "--app-networks", "none") as place:
        agent = place.agent
        agent.words = (*agent.words, "--syslog", str(agent.root / "syslog"))
        agent.start()
        place.uuid()
        wait_until(lambda: interval(agent), SECONDS, "a first configuration")
        talker, editor = Talker(agent.root / "syslog"), Editor(place)
        talker.start(), editor.start()
        taken = set()
        for _ in range(KILLS):
            before = talker.n
            wait_until(lambda: talker.n > before, SECONDS, "the agent to listen")
            time.sleep(chance.uniform(0, 1.2))
            agent.kill()
            check_files(agent.root / "persist")
            taken |= set(words(entries(agent.root / "persist")))
            agent.start()
        talker.ended.set(), editor.ended.set()
        talker.join(), editor.join()
        assert len(taken) > KILLS, taken

        def stored():
            return place.read("log", source="talker", limit=1000000)

        wait_until(lambda: not taken - set(words(e["content"] for e in stored())), PATIENCE, "all that was taken to arrive")
        wait_until(lambda: not words(entries(agent.root / "persist")), SECONDS, "nothing to be left")
        heard = stored()
        assert len({e["content"] for e in heard}) == len(heard), "a line is stored twice"
        by_id = {}
        for e in place.read("log", app="none", limit=1000000):
            assert e["msgid"] not in by_id, ("two lines have one id", e, by_id[e["msgid"]])
            by_id[e["msgid"]] = e
        wait_until(lambda: interval(agent) == editor.value, SECONDS, "the last configuration")
        agent.kill()
        place.server.kill()
        agent.start()
        status = wait_until(lambda: (s := agent.topic("zedagent", "ZedAgentStatus", "zedagent")) and s["ConfigGetStatus"] == 4 and s, SECONDS,
                            "the saved configuration")
        assert status and interval(agent) == editor.value
        agent.stop()
        place.server.start()
