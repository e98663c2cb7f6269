# SPDX-License-Identifier: Apache-2.0
"""The part `agents` of bench/run: a fleet of whole agents, at the cadence EVE has by default, against one server on the same machine. Every
request is a TLS connection of its own, as on a device."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from agents import Place
from devices import cpu_s
from fleet import Site
from programs import rss_mb
from seth import Server, binary
from table import show, show_most

FLEET = pathlib.Path(binary()).resolve().parents[1] / "agent/fleet/seth-fleet"
CONFIG_P99_MS = 100
# Of the fleet alone: glibc's takes a quarter of its CPU when thousands of devices have left the heap in pieces.
ALLOCATOR = "libjemalloc.so.2"
# Devices that start in a second: a start is a dozen requests and as many writes of objects.
STARTS_PER_SECOND = 20
WARM_UP_S = 120  # until the first reports are over and everybody is within his cadence


def write_files(site, directory):
    for name, text in (("root.pem", site.root_pem), ("onboard.pem", site.onboarding.pem), ("onboard-key.pem", site.onboarding.key_pem())):
        (directory / name).write_bytes(text)


class Steady:
    """What the server uses in the steady phase: its CPU is read when the phase begins, as the fleet's view tells."""

    def __init__(self, server):
        self.server, self.begin, self.most_rss = server, None, 0

    def on_line(self, line):
        self.most_rss = max(self.most_rss, rss_mb(self.server.process.pid))
        if self.begin is None and " steady:" in line:
            self.begin = cpu_s(self.server)


def run_fleet(server, n, seconds):
    """The fleet's report, and the server's CPU in percent and RSS in MB."""
    site, steady = Site(server), Steady(server)
    # In memory: a device's disk is its own, and a machine that simulates thousands should not wait for its own instead.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        directory = pathlib.Path(name)
        write_files(site, directory)
        words = {"server": f"127.0.0.1:{server.device_port}", "root-certificate": directory / "root.pem", "onboarding-certificate": directory / "onboard.pem",
                 "onboarding-key": directory / "onboard-key.pem", "devices": n, "threads": 2, "ramp": f"{max(n // STARTS_PER_SECOND, 1)}s", "warm-up": f"{WARM_UP_S}s",
                 "duration": f"{seconds}s", "state-dir": directory / "state", "json": directory / "report.json"}
        command = [str(FLEET), "run", "--no-view", *(f"--{k}={v}" for k, v in words.items())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LD_PRELOAD": ALLOCATOR}) as process:
            for line in process.stdout:
                steady.on_line(line)
            end = cpu_s(server)
        return json.loads((directory / "report.json").read_text()), 100 * (end - steady.begin) / seconds, steady.most_rss


def measure_fleet(n, seconds):
    with Server("--telemetry-bytes-per-device", "0") as server:
        report, server_cpu, server_rss = run_fleet(server, n, seconds)
    steady, config = report["steady"], report["steady"]["endpoints"]["config"]
    show(f"{n:,} agents for {seconds} s, errors", f"{steady['errors']:,}", f"ramp {report['errors'] - steady['errors']:,}", "", "0", steady["errors"] == 0)
    show_most("  config, p99", config["latency_ms"]["p99"], "ms", CONFIG_P99_MS)
    show("  config, p50 and largest", f"{config['latency_ms']['p50']:.1f} ms", f"{config['latency_ms']['max']:.1f} ms", "", "", None)
    show("  requests, on a resumed session", f"{steady['per_second']:,.0f} /s", f"{100 * steady['resumed'] / steady['answers']:.0f} %", "", "", None)
    show("  CPU of server and of fleet", f"{server_cpu:.0f} %", f"{report['cpu']['steady_percent']:.0f} %", "", "", None)
    show("  RSS of server and of fleet", f"{server_rss:,.0f} MB", f"{report['memory']['rss_bytes'] / 1e6:,.0f} MB", "", "", None)
    show("  RSS of a simulated device", f"{report['memory']['bytes_per_device'] / 1000:.1f} KB", "", "", "", None)


# ---- one agent ------------------------------------------------------------------------------------

AGENT_RSS_MB = 12
IDLE_S = 60
USUAL = {"config.timer.config.interval": "60", "config.timer.metric.interval": "60", "config.newlog.allow.fastupload": "false"}


def measure_agent():
    """With all services, in a network namespace, onboarded and then left alone."""
    with Place(options=USUAL) as place:
        place.agent.start()
        place.uuid()
        time.sleep(IDLE_S)
        show_most("RSS of an agent, idle", rss_mb(place.agent.process.pid), "MB", AGENT_RSS_MB)


def measure(n, seconds):
    measure_fleet(n, seconds)
    measure_agent()
