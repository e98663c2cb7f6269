# SPDX-License-Identifier: Apache-2.0
"""Devices and users at once under ThreadSanitizer: devices that onboard, attest, poll and post, others that are switched off, deleted and come
back, options and certificates that change under them, readers of what they send, and the end under load. Bounded by counts, not by time."""
import concurrent.futures
import http.client
import os
import subprocess
import threading

import seth
from eve import entry
from fleet import Site
from seth import Server
from test_load_tsan import tsan_binary
from tpm import PaperTpm

OPTIONS = ("--threads", "4", "--device-requests-per-second", "0")
N_DEVICES, N_ROUNDS = 12, 8
N_RESTLESS, N_CHANGES = 4, 6
USUAL = (200, 201, 304, 429, 503)
LOST = (401, 403)  # of one that is switched off or gone
GONE = (http.client.HTTPException, OSError)


def work(site, statuses):
    """One device's life; what it was answered goes to `statuses`."""
    d, tpm, app = site.onboarded(), PaperTpm(), "8c3bb3f8-0d5d-4f0c-9f8e-0e2f6a6f0001"
    d.own_certs(tpm.public_key)
    d.refetches = True
    for i in range(N_ROUNDS):
        statuses += [d.attest_certs()[0].status, d.quote(*tpm.quote(d.nonce()))[0].status, d.store_keys([b"key %d" % i])[0].status]
        statuses += [d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": "x86_64", "ncpu": i}}).status, d.metrics().status, d.logs([entry(f"line {i}")]).status,
                     d.newlogs([entry(f"line {i}")]).status, d.app_newlogs(app, [entry("x")]).status, d.flowlog().status, d.hardwarehealth().status,
                     d.post("config", b"").status, d.ping().status]
    return d


def be_restless(site, statuses):
    """A device that users switch off, delete and let back."""
    d = site.onboarded()
    d.refetches = True
    for _ in range(N_CHANGES):
        site.annotate(d, activate="false")
        statuses.append(d.info({"ztype": 1}).status)
        site.annotate(d, activate="true", **{"config.timer.config.interval": "100"})
        statuses.append(d.post("config", b"").status)
        site.delete(d)
        statuses.append(d.post("config", b"").status)
        d.onboard()


def use(s, site, stop):
    """Users: options, readers, figures, other certificates of the controller."""
    options = f"/api/v1/namespaces/{site.ns}/configmaps"
    s.ok("POST", options, {"metadata": {"name": "eve-options"}, "data": {"config.timer.metric.interval": "60"}})
    n = 0
    while not stop.is_set():
        n += 1
        s.ok("PATCH", f"{options}/eve-options", {"data": {"config.timer.metric.interval": str(60 + n)}}, {"Content-Type": "application/merge-patch+json"})
        for o in s.ok("GET", site.path("devices"))["items"]:
            for stream in ("log", "info", "metrics", "requests"):
                status = s.request("GET", f"/edgenode/{o['status']['uuid']}/{stream}?limit=20", raw=True)[0]
                assert status in (200, 404), status  # gone meanwhile
        s.request("GET", "/metrics", raw=True)
        if n % 3 == 0:
            subprocess.run([seth.binary(), "rotate-certs", "--data-dir", str(s.dir)], check=True, capture_output=True)


def test_devices_and_users_at_once():
    os.environ["SETH"] = tsan_binary()
    with Server(*OPTIONS, environment={"TSAN_OPTIONS": "halt_on_error=0:exitcode=66"}) as s:
        site, statuses, restless, stop = Site(s), [], [], threading.Event()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            user = pool.submit(use, s, site, stop)
            others = [pool.submit(be_restless, site, restless) for _ in range(N_RESTLESS)]
            working = [pool.submit(work, site, statuses) for _ in range(N_DEVICES)]
            concurrent.futures.wait([*others, *working])
            stop.set()
            devices = [f.result() for f in working]
            for f in [*others, user]:
                f.result()
            assert set(statuses) <= set(USUAL), sorted(set(statuses))
            assert set(restless) <= {*USUAL, *LOST}, sorted(set(restless))

            def post_until_gone(d):
                try:
                    while True:
                        d.newlogs([entry("to the end")])
                except GONE:
                    pass

            ending = [pool.submit(post_until_gone, d) for d in devices]
            assert s.stop(60) == 0  # the end, under load
            for f in ending:
                f.result()
