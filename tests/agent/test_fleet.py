# SPDX-License-Identifier: Apache-2.0
"""seth-fleet against the real server: devices come in, are configured, run applications, log; with faults; and after a day without a server."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import eve
from fleet import Site
from seth import KUBECTLS, TOP, Server, binary, wait_until

PROGRAM = str(pathlib.Path(binary()).resolve().parents[1] / "agent/fleet/seth-fleet")
SECONDS = 240
PAGE = TOP / "docs/FLEET.md"
# Two applications on every device of the namespace.
APPLICATIONS = """
apiVersion: eve.lfedge.org/v1beta1
kind: NetworkConfig
metadata: {name: office}
spec: {ip: dhcp}
---
apiVersion: eve.lfedge.org/v1beta1
kind: DeviceNetwork
metadata: {name: office}
spec: {networkConfig: office, ports: [eth0]}
---
apiVersion: eve.lfedge.org/v1beta1
kind: Image
metadata: {name: collector}
spec: {ref: 'corp1/collector:1.0', storageClass: eve-quay}
""" + "".join(f"""---
apiVersion: eve.lfedge.org/v1beta1
kind: ApplicationDaemonSet
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 100%}}}}
  template:
    metadata:
      labels: {{app: {name}}}
      annotations: {{k8s.v1.cni.cncf.io/networks: office}}
    spec:
      containers:
      - name: {name}
        image: collector
        resources: {{limits: {{cpu: "1", memory: 256Mi}}}}
""" for name in ("one", "two"))


class Fleet:
    """The program, run for a Site; at the end its report and exit code are there."""

    def __init__(self, site, **options):
        self.dir = tempfile.TemporaryDirectory(prefix="seth-fleet-test-")
        top = pathlib.Path(self.dir.name)
        (top / "root.pem").write_bytes(site.root_pem)
        (top / "onboard.pem").write_bytes(site.onboarding.pem)
        (top / "onboard-key.pem").write_bytes(site.onboarding.key_pem())
        self.json, self.out, self.errors = top / "report.json", top / "out", top / "err"
        words = {"server": f"127.0.0.1:{site.server.device_port}", "root-certificate": top / "root.pem", "onboarding-certificate": top / "onboard.pem",
                 "onboarding-key": top / "onboard-key.pem", "json": self.json, "duration": 0, "state-dir": top / "state", "log-level": "warning", **options}
        arguments = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in words.items()]
        with open(self.out, "wb") as out, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen([PROGRAM, "run", *arguments], stdout=out, stderr=errors)

    def last_line(self):
        lines = self.out.read_text().splitlines()
        return lines[-1] if lines else ""

    def end(self):
        """The report; the exit code is in self.code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.code = self.process.wait(SECONDS)
        errors = self.errors.read_text()
        assert "Sanitizer" not in errors and "runtime error" not in errors, errors[-6000:]
        return json.loads(self.json.read_text())

    def wait(self, condition, what, seconds=SECONDS):
        def is_met():
            assert self.process.poll() is None, f"the fleet ended with {self.process.returncode}: {self.errors.read_text()[-4000:]}"
            return condition()
        try:
            return wait_until(is_met, seconds, what)
        except AssertionError as e:
            raise AssertionError(f"{e}; {self.last_line()}\n{self.errors.read_text()[-3000:]}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.dir.cleanup()


@contextlib.contextmanager
def fleet(site, **options):
    f = Fleet(site, **options)
    try:
        yield f
    finally:
        f.kill()


def items(server, site, plural):
    return server.ok("GET", site.path(plural))["items"]


def running(server, site):
    return sum(a.get("status", {}).get("state") == "RUNNING" for a in items(server, site, "applications"))


def lines_of(site, uuid, **query):
    """Numbers of the device's own lines, as they arrived."""
    status, data = site.server.request("GET", f"/edgenode/{uuid}/log?source=fleet&" + "&".join(f"{k}={v}" for k, v in query.items()), raw=True)
    assert status == 200, data
    return [int(re.search(r"line (\d+) of device", json.loads(line)["content"]).group(1)) for line in data.splitlines()]


def uuids(server, site):
    return [d["status"]["uuid"] for d in items(server, site, "devices") if d.get("status", {}).get("uuid")]


def test_fifty_devices_run_their_applications():
    n = 50
    with Server() as s:
        site = Site(s)
        s.kubectl("apply", "-n", site.ns, "-f", "-", input=APPLICATIONS)
        with fleet(site, devices=n, ramp="5s", speed=10, log_lines_per_minute=2, app_log_lines_per_minute=2, app_step="1s") as f:
            f.wait(lambda: len(items(s, site, "devices")) == n, "all devices to register")
            f.wait(lambda: running(s, site) == 2 * n, "all applications to run")
            f.wait(lambda: all(lines_of(site, u, limit=1) for u in uuids(s, site)), "a log line of every device")
            app = items(s, site, "applications")[0]["status"]["uuid"]
            owner = next(d["status"]["uuid"] for d in items(s, site, "devices") if d["metadata"]["name"] == items(s, site, "applications")[0]["status"]["device"])
            f.wait(lambda: s.request("GET", f"/edgenode/{owner}/log?app={app}", raw=True)[1], "a log line of an application")
            f.wait(lambda: f"running {n};" in f.last_line(), "the view to show it")
            report = f.end()
        assert report["errors"] == 0 and f.code == 0, (f.code, report["total"]["errors_by_kind"])
        assert report["devices"]["running"] == n and report["applications"] == {"all": 2 * n, "running": 2 * n, "failed": 0}, report["devices"]
        endpoints = report["total"]["endpoints"]
        assert endpoints["register"]["answers"] == n and endpoints["config"]["answers"] >= 2 * n, endpoints
        for name in ("info", "metrics", "logs", "app-logs", "attest", "certs", "uuid"):
            assert endpoints[name]["answers"] > 0, (name, endpoints.keys())
        assert endpoints["config"]["latency_ms"]["p50"] > 0
        # A service's second request goes on with the session of its first, however slow the start was.
        assert report["steady"]["answers"] - report["steady"]["resumed"] <= 8 * n < report["steady"]["answers"], report["steady"]
        assert sum(row[1] for row in report["timeline"]["seconds"]) == report["total"]["answers"]
        assert report["info"]["dropped"] == 0 and report["logs"]["device_lines_refused"] == 0


def test_faults():
    """Lost answers, slow requests, wrong clocks, restarts: everybody gets there, and nobody becomes another."""
    n = 20
    with Server() as s:
        site = Site(s)
        s.kubectl("apply", "-n", site.ns, "-f", "-", input=APPLICATIONS)
        options = {"devices": n, "ramp": "2s", "speed": 20, "drop": 10, "slow": 5, "bad_clock": 50, "clock_error": "12h", "reboot_every": "10m", "app_step": "1s", "threads": 2,
                   "app_crashes": 200, "log_lines_per_minute": 2}
        with fleet(site, **options) as f:
            f.wait(lambda: len(uuids(s, site)) == n and running(s, site) >= n, "all devices, and half of the applications")
            before = sorted(uuids(s, site))
            restarts = lambda: int((re.search(r"restarts (\d+)", f.last_line()) or [0, 0])[1])  # noqa: E731
            f.wait(lambda: restarts() >= n, "devices to restart")
            f.wait(lambda: all(lines_of(site, u, limit=1) for u in uuids(s, site)), "a log line of every device")
            report = f.end()
        assert sorted(uuids(s, site)) == before, "a device came back as another"
        assert report["total"]["lost_on_purpose"] > 0 and report["total"]["delayed_on_purpose"] > 0
        assert report["devices"]["restarts"] >= n and report["devices"]["broken"] == 0
        # What is lost is no error of the server. One whose registration is lost asks all the same who it is, and nobody knows it yet.
        strangers = report["total"]["errors_by_kind"].get("http-401", 0)
        assert strangers <= report["total"]["endpoints"]["register"]["lost_on_purpose"], report["total"]["endpoints"]
        assert report["errors"] == strangers and f.code == (strangers > 0), report["total"]["errors_by_kind"]


def test_a_server_that_is_not_there():
    with Server() as s:
        site = Site(s)
        s.stop()
        with fleet(site, devices=3, ramp="0s", duration="2s", quiet=True) as f:
            f.process.wait(SECONDS)
            report = f.end()
            assert f.out.read_text() == "", "it was to be quiet"
        assert f.code == 1 and report["errors"] > 0 and set(report["total"]["errors_by_kind"]) == {"refused"}, report["total"]


def test_what_cannot_start_is_said():
    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory)
        identity = eve.onboarding_identity()
        (top / "cert").write_bytes(identity.pem)
        (top / "key").write_bytes(identity.key_pem())
        (top / "junk").write_text("junk")

        def run(root, certificate, server="127.0.0.1:1"):
            words = [PROGRAM, "run", "--server", server, "--root-certificate", top / root, "--onboarding-certificate", top / certificate, "--onboarding-key",
                     top / "key", "--devices", "3", "--threads", "2", "--ramp", "0", "--duration", "2s"]
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=SECONDS)
            assert done.returncode == 1 and "Sanitizer" not in done.stderr, done
            return done.stderr
        assert "junk" not in run("cert", "cert")  # nobody answers
        assert "No such file" in run("none", "cert")
        assert "--root-certificate" in run("junk", "cert")
        assert run("cert", "junk").count("a device cannot start") == 3
        assert "--server" in run("cert", "cert", server="host.invalid:1")


# ---- a day without the server

DAY_S = 86400
SLOW, DRAINING, FAST = 20, 100, 1440  # simulated seconds in a second
# When the server is back, its busiest second has at most so many times the answers of the busiest before; so many devices at once would be more.
MOST_AT_ONCE = 4


def rows(report, begin, end):
    """What was answered in each second; what is refused while there is no server goes on until time is slow again."""
    return [row[1] for row in report["timeline"]["seconds"][int(begin):int(end)]]


def test_a_day_without_the_server():
    """Nothing that must be kept is lost, and the devices do not come back all at once."""
    n = 5
    with Server("--telemetry-bytes-per-device", "0") as s:
        site = Site(s)
        s.kubectl("apply", "-n", site.ns, "-f", "-", input=APPLICATIONS)
        options = {"devices": n, "ramp": "2s", "speed": f"{SLOW},{DRAINING},{FAST}", "log_lines_per_minute": 1, "app_log_lines_per_minute": 0, "app_step": "1s"}
        with fleet(site, **options) as f:
            begin = time.monotonic()
            f.wait(lambda: running(s, site) == 2 * n, "all applications to run")
            steady_begin = time.monotonic() - begin + 5
            f.wait(lambda: time.monotonic() - begin > steady_begin + 20, "what is usual to be seen")
            down = time.monotonic() - begin
            s.stop()
            for _ in range(2):
                f.process.send_signal(signal.SIGUSR2)
                time.sleep(0.2)  # two signals at once are one
            f.wait(lambda: time.monotonic() - begin > down + DAY_S / FAST, "a day to pass")
            for _ in range(2):
                f.process.send_signal(signal.SIGUSR1)
                time.sleep(0.2)
            back = time.monotonic() - begin
            s.start()
            f.wait(lambda: time.monotonic() - begin > back + 20, "everybody to be back")
            watched = time.monotonic() - begin
            f.process.send_signal(signal.SIGUSR2)
            a_day_of_lines = DAY_S // 60 * 8 // 10  # one in a minute, by chance

            def missing():
                """Of each device: how many lines there are, and which are missing below the last."""
                for lines in (lines_of(site, u) for u in uuids(s, site)):
                    gaps = sorted(set(range(max(lines, default=0))) - set(lines))
                    if len(lines) <= a_day_of_lines or gaps:
                        yield len(lines), len(gaps), gaps[:3]
            try:
                f.wait(lambda: not list(missing()), "every log line to arrive", 400)
            except AssertionError as e:
                raise AssertionError(f"{e}\nlines there, missing, which: {list(missing())}") from None
            f.wait(lambda: running(s, site) == 2 * n, "all applications to run")
            report = f.end()
        # While it is away it refuses. Besides that a device may be cut off when it ends, asked to wait when it is back, or find its time over, which passes
        # so fast here.
        kinds = dict(report["total"]["errors_by_kind"])
        assert kinds.pop("refused") > n and sum(kinds.values()) <= n and not any(kind.startswith("http-4") for kind in kinds), kinds
        assert report["info"]["dropped"] == 0 and report["info"]["waiting"] <= 20 * n, report["info"]
        assert report["logs"]["device_lines_refused"] == 0 and report["devices"]["running"] == n, report
        usual, first = max(rows(report, steady_begin, down)), rows(report, back, watched)
        assert sum(first) > 0 and max(first) <= MOST_AT_ONCE * usual, f"{max(first)} answers in a second after the server's return, {usual} before: {first}"


def test_the_page_runs_as_written():
    blocks = re.findall(r"```sh\n(.*?)```", re.search(r"<!-- commands -->(.*?)<!-- /commands -->", PAGE.read_text(), re.S).group(1), re.S)
    assert len(blocks) == 3, "the page has lost its commands"
    with Server() as s, tempfile.TemporaryDirectory() as directory:
        for name, target in (("seth", binary()), ("seth-fleet", PROGRAM)):
            (pathlib.Path(directory) / name).symlink_to(pathlib.Path(target).resolve())
        environment = {**os.environ, "PATH": f"{directory}:{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(s.dir), "KUBECONFIG": s.kubeconfig,
                       "DATA_DIR": str(s.dir), "DEVICE_PORT": str(s.device_port)}
        done = [subprocess.run(["bash", "-euo", "pipefail", "-c", b], env=environment, cwd=directory, capture_output=True, text=True, timeout=120) for b in blocks]
        assert all(d.returncode == 0 for d in done), "".join(d.stdout[-1000:] + d.stderr[-3000:] for d in done)
        assert done[2].stdout.count("eve-") == 20 and "p99" in done[2].stdout, done[2].stdout
