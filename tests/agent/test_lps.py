# SPDX-License-Identifier: Apache-2.0
"""A real device whose local profile server is an application of its own: a real server names it, a real agent asks it over the application's
bridge, and obeys."""
import contextlib
import ctypes
import http.server
import json
import os
import socket
import subprocess
import threading

import wire
from agents import SECONDS, Place
from seth import wait_until

PROTO = "application/x-proto-binary"
MERGE = {"Content-Type": "application/merge-patch+json"}
TOKEN = "let me in"
RESTART, PURGE, REBOOT = 1, 2, 3
RUNNING, HALTED = 115, 119
SCRIPT = """#!/bin/sh
trap 'exit 0' TERM
while :; do sleep 60 & wait $!; done
"""
REQUESTS = {"radio": "profile.RadioStatus", "appinfo": "profile.LocalAppInfoList", "devinfo": "profile.LocalDevInfo",
            "network": "profile.NetworkInfo", "appbootinfo": "profile.AppBootInfoList"}
REPLIES = {"local_profile": "profile.LocalProfile", "radio": "profile.RadioConfig", "appinfo": "profile.LocalAppCmdList",
           "devinfo": "profile.LocalDevCmd", "network": "profile.LocalNetworkConfig", "appbootinfo": "profile.AppBootConfigList"}


def listen_in(space, address):
    """A socket stays in the network namespace it was made in."""
    made = []

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{space}", "rb") as f:
            assert libc.setns(f.fileno(), 0x40000000) == 0, os.strerror(ctypes.get_errno())
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, 8888))
        s.listen(64)
        made.append(s)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]


class ProfileServer:
    """Answers each endpoint as it is told: None is 204, a number that status, bytes themselves, else a message. With signals, their stream stays
    open."""

    def __init__(self, listening, has_signals=False):
        self.answers, self.said, self.counts, self.lock = {}, {}, {}, threading.Lock()
        self.streams, self.is_over = [], threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                endpoint = self.path.removeprefix("/api/v1/")
                if endpoint == "signal" and has_signals:
                    self.hold()
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, reply = owner.take(endpoint, body, self.headers)
                self.send_response(status)
                if status in (200, 201):
                    self.send_header("Content-Type", PROTO)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(reply)

            def hold(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/x-ndjson")
                self.end_headers()
                self.close_connection = True
                owner.streams.append(self)
                owner.is_over.wait()

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket, self.server.daemon_threads = listening, True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, endpoint, body, headers):
        with self.lock:
            self.counts[endpoint] = self.counts.get(endpoint, 0) + 1
            if endpoint in REQUESTS:
                assert headers["Content-Type"] == PROTO
                self.said[endpoint] = wire.decode(REQUESTS[endpoint], body)
            answer = self.answers.get(endpoint)
        if answer is None or isinstance(answer, int):
            return answer or 204, b""
        return 200, answer if isinstance(answer, bytes) else wire.encode(REPLIES[endpoint], {"server_token": TOKEN, **answer})

    def until_asked(self, endpoint, more=2):
        """That often again: what was answered before the last of them is in force."""
        n = self.counts.get(endpoint, 0)
        wait_until(lambda: self.counts.get(endpoint, 0) >= n + more, SECONDS, f"{endpoint} to be asked")

    def signal(self, *endpoints):
        self.write(json.dumps({"pendingChanges": [f"CONFIG_ENDPOINT_{e}" for e in endpoints]}).encode() + b"\n")

    def write(self, line):
        wait_until(lambda: self.streams, SECONDS, "the stream of signals")
        assert len(self.streams) == 1, "one is enough"
        self.streams[0].wfile.write(line)

    def close(self):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()


class Home(contextlib.ExitStack):
    """A device with two applications, `server` and `guest`."""

    def __init__(self, **options):
        super().__init__()
        self.place = self.enter_context(Place(options={
            **{f"config.timer.lps.{name}": "1" for name in ("profile", "radio", "appinfo", "devinfo", "network", "appbootinfo")}, **options}))
        self.server = None

    def begin(self):
        place = self.place
        place.offer("idle", SCRIPT)
        for name in ("server", "guest"):
            place.post("Application", name, {"containers": [{"name": name, "image": "idle",
                                                             "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]})
        place.agent.start()
        self.device = place.device()["metadata"]["name"]
        self.callback(self.end)
        self.ids = {name: wait_until(lambda n=name: place.server.ok("GET", place.site.path("applications", n)).get("status", {}).get("uuid"),
                                     SECONDS, "its UUID") for name in ("server", "guest")}
        for name in self.ids:
            self.until(name, "State", RUNNING)
        return self

    def end(self):
        """Applications outlive the agent: they are deleted, and go."""
        if self.server:
            self.server.close()
        for name in self.ids:
            self.place.server.ok("DELETE", self.place.site.path("applications", name))
        wait_until(lambda: not any((self.place.agent.root / "run/apps/crun").iterdir()), SECONDS, "the applications to end")
        wait_until(lambda: not self.spaces(), SECONDS, "their networks to go")

    def spaces(self, *names):
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()
        return [s for s in listed for name in names or self.ids if self.ids[name] in s]

    def status(self, name):
        return self.place.agent.topic("zedmanager", "AppInstanceStatus", self.ids[name]) or {}

    def counter(self, name, command):
        return self.place.agent.topic("zedagent", "AppInstanceConfig", self.ids[name])[command]["Counter"]

    def agent_status(self):
        return self.place.agent.topic("zedagent", "ZedAgentStatus", "zedagent") or {}

    def until(self, name, member, value):
        wait_until(lambda: self.status(name).get(member) == value, SECONDS, f"{name} to have {member} {value}: {self.status(name)}")

    def address(self):
        adapters = self.place.agent.topic("zedrouter", "AppNetworkStatus", self.ids["server"])["AppNetAdapterList"]
        return adapters[0]["AssignedAddresses"]["IPv4Addrs"][0]["Address"]

    def configure(self, **config):
        """Of the configuration, what users have taken over."""
        self.place.server.ok("PATCH", self.place.site.path("deviceconfigs", self.device), {"spec": {"config": config}}, MERGE)

    def take_over(self, **config):
        """Within lists, where a patch would replace the whole."""
        self.place.server.ok("PATCH", self.place.site.path("deviceconfigs", self.device) + "?fieldManager=user", {
            "apiVersion": "eve.lfedge.org/v1beta1", "kind": "DeviceConfig", "metadata": {"name": self.device}, "spec": {"config": config}},
            {"Content-Type": "application/apply-patch+yaml"})

    def serve(self, **options):
        [space] = self.spaces("server")
        self.server = ProfileServer(listen_in(space, self.address()), **options)
        return self.server


def test_a_local_profile_server_is_obeyed():
    with Home().begin() as home:
        server = home.serve()
        server.answers["local_profile"] = {"local_profile": "night"}
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN, globalProfile="day")
        wait_until(lambda: home.agent_status().get("CurrentProfile") == "night", SECONDS, "the local profile")
        # What it is told.
        for endpoint in REQUESTS:
            server.until_asked(endpoint, 1)
        apps = {a["name"]: a for a in server.said["appinfo"]["apps_info"]}
        assert {home.ids[n] for n in home.ids} == {a["id"] for a in apps.values()}, apps
        assert server.said["devinfo"]["device_uuid"] == home.place.uuid()
        assert not server.said["radio"].get("radio_silence") and "cellular_status" not in server.said["radio"]
        assert [p for p in server.said["network"]["port_status"] if p.get("ip_addresses")], server.said["network"]
        # A wrong token, too much, or no message at all.
        server.answers["local_profile"] = {"local_profile": "forged", "server_token": "guess"}
        server.until_asked("local_profile")
        server.answers["local_profile"] = {"local_profile": "x" * 300000}
        server.until_asked("local_profile")
        server.answers["local_profile"] = b"\x0a\xff\xff\xff"
        server.until_asked("local_profile")
        assert home.agent_status()["CurrentProfile"] == "night"
        # A restart is one, however often it is asked for.
        before = home.status("guest")["BootTime"]
        server.answers["appinfo"] = {"app_commands": [{"id": home.ids["guest"], "command": RESTART, "timestamp": 1000}]}
        wait_until(lambda: any(a.get("last_cmd_timestamp") == 1000 for a in server.said["appinfo"]["apps_info"]), SECONDS, "the restart to be done")
        wait_until(lambda: home.status("guest")["BootTime"] > before and home.status("guest")["State"] == RUNNING, SECONDS, "the guest to run again")
        again = home.status("guest")["BootTime"]
        server.until_asked("appinfo", 3)
        assert home.status("guest")["BootTime"] == again and home.counter("guest", "LocalRestartCmd") == 1
        # An agent that dies knows all of it: the profile without the server, and the command that was carried out.
        home.place.agent.kill()
        server.close()
        home.server = None
        home.place.agent.start()
        wait_until(lambda: home.agent_status().get("ConfigGetStatus") == 1, SECONDS, "a configuration again")
        assert home.agent_status()["CurrentProfile"] == "night"
        server = home.serve()
        server.answers["appinfo"] = {"app_commands": [{"id": home.ids["guest"], "command": RESTART, "timestamp": 1000}]}
        server.until_asked("appinfo", 3)
        assert home.status("guest")["State"] == RUNNING and home.counter("guest", "LocalRestartCmd") == 1
        # A purge makes the volumes anew.
        volumes = {p.name for p in (home.place.agent.root / "run/zedagent/VolumeConfig").iterdir()}
        server.answers["appinfo"] = {"app_commands": [{"id": home.ids["guest"], "command": PURGE, "timestamp": 2000}]}
        wait_until(lambda: any(a.get("last_cmd_timestamp") == 2000 for a in server.said["appinfo"]["apps_info"]), SECONDS, "the purge to be done")
        home.until("guest", "State", RUNNING)
        assert volumes != {p.name for p in (home.place.agent.root / "run/zedagent/VolumeConfig").iterdir()}
        server.answers["appinfo"] = None
        # Without a server the controller's profile counts.
        home.configure(localProfileServer=None, profileServerToken=None)
        wait_until(lambda: home.agent_status().get("CurrentProfile") == "day", SECONDS, "the global profile")


def test_the_profile_decides_what_runs():
    with Home().begin() as home:
        server = home.serve()
        server.answers["local_profile"] = {"local_profile": "night"}
        home.take_over(apps=[{"displayname": home.status("guest")["DisplayName"], "profileList": ["day", "noon"]}])
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN, globalProfile="day")
        home.until("guest", "State", HALTED)
        assert home.status("server")["State"] == RUNNING
        server.answers["local_profile"] = {"local_profile": "noon"}
        home.until("guest", "State", RUNNING)
        # A server that has no opinion leaves it to the controller.
        server.answers["local_profile"] = {"local_profile": ""}
        wait_until(lambda: home.agent_status()["CurrentProfile"] == "day", SECONDS, "the global profile")
        home.configure(globalProfile="holiday")
        home.until("guest", "State", HALTED)


def test_a_graceful_reboot_is_acknowledged_and_not_repeated():
    with Home().begin() as home:
        server = home.serve()
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN)
        server.until_asked("devinfo", 1)
        counter = home.place.agent.topic("nodeagent", "NodeAgentStatus", "nodeagent")["RestartCounter"]
        server.answers["devinfo"] = {"command": REBOOT, "timestamp": 7}
        again = wait_until(lambda: (s := home.place.agent.topic("nodeagent", "NodeAgentStatus", "nodeagent")) and
                           s["RestartCounter"] > counter and s, SECONDS, "the agent to begin again")
        assert again["BootReason"] == 2 and "local profile" in again["RebootReason"], again
        server.close()
        home.server = None
        for name in home.ids:
            home.until(name, "State", RUNNING)
        wait_until(lambda: home.spaces("server"), SECONDS, "its network")
        server = home.serve()
        server.answers["devinfo"] = {"command": REBOOT, "timestamp": 7}
        home.configure(localProfileServer=home.address())
        server.until_asked("devinfo", 3)
        assert server.said["devinfo"]["last_cmd_timestamp"] == 7
        assert home.place.agent.topic("nodeagent", "NodeAgentStatus", "nodeagent")["RestartCounter"] == again["RestartCounter"]


def test_a_signal_is_obeyed_long_before_the_next_poll():
    def until_profile(name):
        wait_until(lambda: home.agent_status().get("CurrentProfile") == name, SECONDS, f"profile {name}")

    a_day = {f"config.timer.lps.{name}": "86400" for name in ("profile", "radio", "appinfo", "devinfo", "network", "appbootinfo")}
    with Home(**a_day).begin() as home:
        server = home.serve(has_signals=True)
        server.answers["local_profile"] = {"local_profile": "night"}
        home.configure(localProfileServer=home.address(), profileServerToken=TOKEN, globalProfile="day")
        until_profile("night")
        assert server.counts["local_profile"] == 1
        server.answers["local_profile"] = {"local_profile": "noon"}
        server.signal("LOCAL_PROFILE")
        until_profile("noon")
        # What makes no sense is passed over, and the stream goes on.
        n = server.counts["network"]
        server.write(b"\n{broken\n[]\n{\"unknown\":1,\"pendingChanges\":[\"CONFIG_ENDPOINT_NEW\",77,6]}\n")
        wait_until(lambda: server.counts["network"] > n, SECONDS, "the network to be asked")
        assert server.counts["local_profile"] == 2
        # Whoever comes back is followed again.
        server.close()
        home.server = None
        server = home.serve(has_signals=True)
        server.answers["local_profile"] = {"local_profile": "late"}
        server.signal("LOCAL_PROFILE")
        until_profile("late")
        assert server.counts["local_profile"] == 1
        # And left when there is none.
        home.configure(localProfileServer=None, profileServerToken=None)
        until_profile("day")
        connection = server.streams[0].connection
        connection.settimeout(SECONDS)
        assert connection.recv(1) == b""
