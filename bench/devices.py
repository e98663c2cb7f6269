# SPDX-License-Identifier: Apache-2.0
"""The part `device` of bench/run: what devices cost. Polls are signed beforehand and sent again and again: an envelope has no nonce.

CPU is that of the whole server process, telemetry's writer and all."""
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

import eve
import fleet
from programs import PROGRAMS, load, nginx, rss_mb
from seth import Server
from table import show, show_ratio

OPTIONS = ("--threads", "1", "--device-requests-per-second", "0", "--telemetry-bytes-per-device", "0")
FEW = 100
KEEP_ALIVE = ("--http1", "--connections", 64)
POLL_FACTOR, HANDSHAKE_FACTOR = 1.5, 1.3
LOG_BYTES, LOG_SENDERS = 20 * 1024, 32
US = 1e6


def server(*more):
    return Server(*OPTIONS, *more)


# ---- devices -----------------------------------------------------------------------------------


def send(server, path, *arguments):
    """Requests of devices."""
    return load(server, "--file", path, *arguments, port=server.device_port, files=())


def settle(server):
    """Waits until the server has done what it was told: the statuses of devices are written later."""
    idle_s, before = 0.5, -1.0
    while (now := cpu_s(server)) - before > idle_s / 10:
        before = now
        time.sleep(idle_s)


def cpu_s(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def populate(server, n):
    """n Devices, each of which has fetched its configuration and said so; returns the file of polls that are answered 304."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=server.dir))
    maker = subprocess.Popen([str(PROGRAMS / "make_devices"), str(n), server.namespace(), str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert maker.stdout.readline() == b"ready\n"
    load(server, "--file", directory / "create", "--connections", 8, "--streams", 8)
    settle(server)  # who is created is known a moment later
    send(server, directory / "first", *KEEP_ALIVE, "--answers", directory / "answers")
    maker.communicate(b"\n")
    assert maker.returncode == 0
    for name in ("create", "first", "answers"):
        (directory / name).unlink()
    send(server, directory / "polls", *KEEP_ALIVE)
    settle(server)
    return directory / "polls"


# ---- what a poll costs --------------------------------------------------------------------------


def verify_us():
    """One P-256 verification, in CPU time."""
    done = subprocess.run(["openssl", "speed", "-seconds", "1", "ecdsap256"], capture_output=True, text=True, check=True)
    return US / float(re.search(r"256 bits ecdsa \(nistp256\).* ([\d.]+)$", done.stdout, re.MULTILINE).group(1))


def best_of(rounds, sides):
    """The least microseconds of CPU per request of each side, taken in turn."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, measure in sides.items():
            best[name] = min(best[name], measure())
    return best


def cpu_us(measured):
    return measured["server_cpu_seconds"] / measured["requests"] * US


def show_budget(what, ours, budget):
    show(what, f"{ours:,.1f} us", f"may {budget:,.1f} us", f"{ours / budget:.2f}", "<= 1.00", ours <= budget)


def show_aside(what, ours, peer):
    show(what, f"{ours:,.1f} us", f"{peer:,.1f} us", f"{ours / peer:.2f}", "", None)


def measure_polls(quick):
    """Against nginx that answers 304 to the same bytes, with the same certificate, suite and curve, and one verification."""
    n, n_connections, rounds = (2000, 300, 3) if quick else (5000, 500, 12)
    shapes = {"keep": (*KEEP_ALIVE, "--requests", n, "--warm-up", n // 10), "full": ("--reconnect", "--requests", n_connections, "--warm-up", 50),
              "resumed": ("--resume", "--requests", n_connections, "--warm-up", 50)}
    with server("--device-api-v1", "off") as plain, server("--device-api-v1", "on") as both:
        polls = {s: populate(s, FEW) for s in (plain, both)}
        rules = "ssl_session_tickets on; ssl_session_cache off; location / { return 304; }"
        identity = plain.dir / "pki/server.pem", plain.dir / "pki/server-key.pem"
        with nginx(plain, rules, identity=identity) as (port, worker):
            sides = {"verify": verify_us}
            for shape, arguments in shapes.items():
                for s, name in ((plain, "ours"), (both, "v1")):
                    sides[name, shape] = lambda s=s, a=arguments: cpu_us(send(s, polls[s], *a))
                sides["nginx", shape] = lambda a=arguments: cpu_us(load(plain, "--file", polls[plain], *a, port=port, pid=worker, files=()))
            best = best_of(rounds, sides)
    show_polls(best)


def show_polls(best):
    request = best["nginx", "keep"]
    sum_us = best["verify"] + request
    budget = POLL_FACTOR * sum_us
    show("unchanged poll, CPU", f"{best['ours', 'keep']:,.1f} us", f"{sum_us:,.1f} us", f"{best['ours', 'keep'] / sum_us:.2f}", f"<= {POLL_FACTOR:.2f}",
         best["ours", "keep"] <= budget)
    show("  of the peer: verify, nginx", f"{best['verify']:,.1f} us", f"{request:,.1f} us", "", "", None)
    for shape, what in (("full", "poll with a handshake"), ("resumed", "poll with a resumed session")):
        handshake = best["nginx", shape] - request
        show_budget(f"{what}, CPU", best["ours", shape], HANDSHAKE_FACTOR * handshake + budget)
        show_aside("  against nginx without a poll", best["ours", shape], best["nginx", shape])
        show_aside("  handshake alone", best["ours", shape] - best["ours", "keep"], handshake)
    for shape in ("keep", "full", "resumed"):
        show_aside(f"  API v1 open, against off: {shape}", best["v1", shape], best["ours", shape])


# ---- many devices ---------------------------------------------------------------------------------


def measure_many(quick):
    """All devices poll in turn, so that nothing of them stays in the processor's caches."""
    n, n_all, n_requests, rounds = (2000, 10000, 5000, 3) if quick else (10000, 100000, 20000, 6)
    requests = ("--requests", n_requests, "--warm-up", n_requests // 10)
    with server() as few, server() as many:
        polls_of_few = populate(few, FEW)
        populate(many, FEW)
        before = rss_mb(many.process.pid)
        populate(many, n)
        each_kb = (rss_mb(many.process.pid) - before) * 1000 / n
        show(f"memory of a device, {n:,} of them", f"{each_kb:.1f} KB", "", "", "< 20 KB", each_kb < 20)
        polls_of_many = populate(many, n_all - n - FEW)
        best = best_of(rounds, {"few": lambda: cpu_us(send(few, polls_of_few, *KEEP_ALIVE, *requests)),
                                "many": lambda: cpu_us(send(many, polls_of_many, *KEEP_ALIVE, *requests))})
    ratio = best["many"] / best["few"]
    show(f"poll, {n_all:,} devices in turn", f"{best['many']:,.1f} us", f"{best['few']:,.1f} us", f"{ratio:.2f}", "<= 1.10", ratio <= 1.1)


# ---- logs -----------------------------------------------------------------------------------------


def log_upload(site):
    """Of a new device: a prepared newlogs request with 20 KB of gzip, the lines as varied as those of EVE."""
    device, lines, payload = site.onboarded(), [], b""
    while len(payload) < LOG_BYTES:
        for _ in range(100):
            word = random.randbytes(6).hex()
            lines.append(eve.entry(f'{{"level":"info","msg":"domainmgr handled {word} after {random.random():.6f} s","pid":1804}}', iid=str(random.randrange(4096)), msgid=len(lines)))
        payload = eve.gzip_member(eve.log_lines(lines))
    body = eve.seal(device.identity, payload)
    return f"POST {device.path('newlogs')} {eve.PROTO} {len(body)}\n".encode() + body + b"\n"


def disk_rates(directory, seconds):
    """Uploads of 20 KB that the disk takes each second: one by one, and in groups of 64."""
    done = subprocess.run([str(PROGRAMS / "telemetry"), str(directory), str(seconds), str(LOG_BYTES)], capture_output=True, text=True, check=True)
    return [float(re.search(rf"the disk, {how}:\s+(\d+) uploads/s", done.stdout).group(1)) for how in ("one by one", "groups of 64")]


def measure_logs(quick):
    """Stored uploads of several devices against what the same disk takes; in turn, so that a slow minute is slow for both."""
    n, rounds = (500, 2) if quick else (3000, 4)
    with server() as s:
        site, path = fleet.Site(s), s.dir / "uploads"
        path.write_bytes(b"".join(log_upload(site) for _ in range(LOG_SENDERS)))
        singles, groups, ours = [], [], []
        for _ in range(rounds):
            single, group = disk_rates(s.dir, 2)
            singles.append(single)
            groups.append(group)
            ours.append(send(s, path, "--http1", "--connections", LOG_SENDERS, "--requests", n))
    rate = statistics.mean(r["requests"] / r["seconds"] for r in ours)
    show_ratio("20 KB logs, disk one by one", rate, statistics.mean(singles), "/s", 0.5)
    show("  disk in groups of 64", f"{rate:,.0f} /s", f"{statistics.mean(groups):,.0f} /s", f"{rate / statistics.mean(groups):.2f}", "", None)
    show("  its CPU and latency", f"{min(map(cpu_us, ours)):.0f} us", f"p50 {ours[-1]['answer_us']['p50'] / 1000:.1f} ms",
         f"p99 {ours[-1]['answer_us']['p99'] / 1000:.1f}", "", None)


def measure(quick):
    measure_polls(quick)
    measure_logs(quick)
    measure_many(quick)
