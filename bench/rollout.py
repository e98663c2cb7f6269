# SPDX-License-Identifier: Apache-2.0
"""The part `fleet` of bench/run: from applied objects to configurations that are ready.

Objects come as kubectl's server-side apply sends them, 64 under way. A configuration is ready when what is to be delivered is settled: its status
speaks of its generation and it holds what it is to hold. The peer is raw SQLite with as many rows of the same mean size, 64 to a commit."""
import json
import sqlite3
import time

from gadget import prepared
from devices import cpu_s
from programs import load, raw_rate, rss_mb
from seth import Server
from table import show, show_most

NAMESPACE = "fleet"
GROUP = "/apis/eve.lfedge.org/v1beta1"
API_VERSION = "eve.lfedge.org/v1beta1"
WRITES_FACTOR, EDIT_SECONDS, DEVICE_KB = 3, 10, 30
IMAGES = {"web": "nginx:1.27", "cache": "redis:7"}
QUIET_SECONDS, POLL_SECONDS, LIMIT_SECONDS = 1.0, 0.02, 600


def manifest(plural, kind, name, spec):
    """As a prepared request of server-side apply."""
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
    path = f"{GROUP}/namespaces/{NAMESPACE}/{plural}/{name}?fieldManager=kubectl&force=true"
    return prepared("PATCH", path, "application/apply-patch+yaml", body)


def name_of(i):
    return f"edge-{i:05d}"


def network_config(ntp):
    return manifest("networkconfigs", "NetworkConfig", "wired", {"ip": "dhcp", "ntp": [ntp]})


def shared_objects():
    yield network_config("0.pool.ntp.org")
    yield manifest("devicenetworks", "DeviceNetwork", "local", {"networkConfig": "wired"})
    for name, ref in IMAGES.items():
        yield manifest("images", "Image", name, {"ref": ref, "storageClass": "eve-docker"})


def application(i, image):
    container = {"name": image, "image": image, "resources": {"limits": {"cpu": "1", "memory": "256Mi"}}}
    return manifest("applications", "Application", f"{image}-{i:05d}", {"nodeSelector": {"name": name_of(i)}, "containers": [container]})


def fleet_objects(n):
    """First all devices, then what runs on them."""
    for i in range(n):
        yield manifest("devices", "Device", name_of(i), {"serial": f"S{i:08d}"})
    for image in IMAGES:
        for i in range(n):
            yield application(i, image)


def send(server, requests, shape=("--connections", 8, "--streams", 8)):
    path = server.dir / "requests"
    path.write_bytes(b"".join(requests))
    load(server, "--file", path, *shape)


# ---- when it is ready ------------------------------------------------------------------------------------


def revision(server):
    return int(server.ok("GET", "/api/v1/namespaces?limit=1")["metadata"]["resourceVersion"])


def pages(server):
    more = ""
    while True:
        page = server.ok("GET", f"{GROUP}/namespaces/{NAMESPACE}/deviceconfigs?limit=500&continue={more}")
        yield from page["items"]
        more = page["metadata"].get("continue", "")
        if not more:
            return


def is_ready(config, ntp):
    spec = config["spec"]["config"]
    return (config.get("status", {}).get("observedGeneration") == config["metadata"]["generation"]
            and len(spec.get("apps", ())) == len(IMAGES) and ntp in json.dumps(spec["networks"]))


def count_ready(server, ntp):
    return sum(is_ready(config, ntp) for config in pages(server))


def wait_ready(server, n, ntp, begin):
    """Seconds from begin until the last write after which all are ready. Whether they are is looked at when writes cease: looking costs."""
    last, changed = revision(server), time.monotonic()
    while time.monotonic() - begin < LIMIT_SECONDS:
        time.sleep(POLL_SECONDS)
        now = revision(server)
        if now != last:
            last, changed = now, time.monotonic()
        elif time.monotonic() - changed > QUIET_SECONDS:
            if count_ready(server, ntp) == n:
                return changed - begin
            changed = time.monotonic()
    raise AssertionError(f"only {count_ready(server, ntp)} of {n} configurations are ready")


def writes_since(server, first):
    """How many writes were made since this revision, and their mean size; of those that are superseded some are gone from the file by now."""
    with sqlite3.connect(f"file:{server.dir}/objects.db?mode=ro", uri=True) as db:
        size = db.execute("SELECT avg(length(text)) FROM log WHERE revision > ?", (first,)).fetchone()[0]
    return revision(server) - first, int(size)


# ---- what is measured ------------------------------------------------------------------------------------


def measure(n):
    with Server() as server:
        server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        send(server, shared_objects(), shape=())  # one after the other: they refer to each other
        before_mb, first, requests = rss_mb(server.process.pid), revision(server), list(fleet_objects(n))
        cpu_before, begin = cpu_s(server), time.monotonic()
        send(server, requests)
        sent_s = time.monotonic() - begin
        seconds = wait_ready(server, n, "0.pool.ntp.org", begin)
        rows, size = writes_since(server, first)
        raw_s = rows / raw_rate(server.dir, rows, size)
        show(f"{n:,} devices, {len(IMAGES) * n:,} apps ready", f"{seconds:.1f} s", f"{raw_s:.1f} s", f"{seconds / raw_s:.2f}", f"<= {WRITES_FACTOR}",
             seconds <= WRITES_FACTOR * raw_s)
        show("  applied; writes and their size", f"{sent_s:.1f} s", f"{rows:,} rows", f"{size} B", "", None)
        show("  CPU of a device, all of it", f"{(cpu_s(server) - cpu_before) / n * 1e6:,.0f} us", "", "", "", None)
        each_kb = (rss_mb(server.process.pid) - before_mb) * 1000 / n
        show("  memory of a device, all of it", f"{each_kb:.1f} KB", "", "", f"< {DEVICE_KB} KB", each_kb < DEVICE_KB)
        first, cpu_before, begin = revision(server), cpu_s(server), time.monotonic()
        send(server, [network_config("1.pool.ntp.org")])
        show_most(f"one edit, {n:,} configs ready", wait_ready(server, n, "1.pool.ntp.org", begin), "s", EDIT_SECONDS)
        rows, size = writes_since(server, first)
        show("  CPU; writes and their size", f"{(cpu_s(server) - cpu_before) / n * 1e6:,.0f} us", f"{rows:,} rows", f"{size} B", "", None)
